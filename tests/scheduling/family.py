"""Program for test_children: a family of which each child writes its number into a folder."""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from django.conf import settings

from scheduling.services.worker.children import ChildPart, Family


def note(folder: Path, name: str) -> None:
    whole = folder / f".{name}"
    whole.write_text(str(os.getpid()))
    whole.rename(folder / name)
    while not (folder / f"end-{name}").exists():
        time.sleep(0.02)
    sys.exit(int((folder / f"end-{name}").read_text()))


def main(folder: Path) -> int:
    settings.configure()

    def part(name: str, **options: object) -> ChildPart:
        return ChildPart(name, partial(note, folder, name), **options)  # type: ignore[arg-type] # each is one

    first = [part("portal", is_vital=True)]
    others = [part("engine"), part("worker"), part("studies", is_wanted=(folder / "wanted").exists)]
    return Family(first, others, is_open=(folder / "portal").exists).run()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
