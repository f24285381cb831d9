"""Program: plant one fault after the other in a copy of the tree, and see that its tests fail.

``python -m tests.mutants [WORDS …]``: those whose name holds one of the words, or all. First the tests run on
the copy as it is: what fails there notices nothing. Exits with 1 where a fault went unnoticed, with 2 where
its text is no longer what it replaces.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.mutants.planted import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = (".git", ".venv", "var", "node_modules", ".pytest_cache")
NOTHING_RAN = frozenset({2, 3, 4, 5})
"""Exit codes of pytest that say nothing about a fault: it was interrupted, misused or found no test."""


def main(words: Sequence[str]) -> int:
    chosen = [one for one in MUTANTS if not words or any(word in one.fault for word in words)]
    with tempfile.TemporaryDirectory(prefix="weir-mutants-") as folder:
        tree = Path(folder) / "weir"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
        stale = [one for one in chosen if not _is_there(tree, one)]
        for one in stale:
            _say(f"stale      {one.fault}: {one.path} does not hold its text {one.times} times")
        if stale:
            return 2
        if _sound(tree, chosen):
            return 1
        unnoticed = [one for one in chosen if not _is_noticed(tree, one)]
    _say(f"{len(chosen) - len(unnoticed)} of {len(chosen)} faults are noticed")
    return 1 if unnoticed else 0


def _is_there(tree: Path, mutant: Mutant) -> bool:
    return (tree / mutant.path).read_text().count(mutant.old) == mutant.times


def _sound(tree: Path, chosen: Sequence[Mutant]) -> int:
    """What the tests of all ``chosen`` exit with where nothing is planted: those of the engine apart."""
    code = 0
    for plain in (False, True):
        tests = dict.fromkeys(test for one in chosen if one.plain == plain for test in one.tests)
        code = code or (_run(tree, tuple(tests), plain=plain) if tests else 0)
    if code:
        _say("A test fails where nothing is planted.")
    return code


def _is_noticed(tree: Path, mutant: Mutant) -> bool:
    with _planted(tree, mutant):
        code = _run(tree, mutant.tests, plain=mutant.plain, quiet=True)
    noticed = code != 0 and code not in NOTHING_RAN
    _say(f"{'noticed' if noticed else 'UNNOTICED':<10} {mutant.fault}")
    return noticed


@contextmanager
def _planted(tree: Path, mutant: Mutant) -> Iterator[None]:
    path = tree / mutant.path
    text, stat = path.read_text(), path.stat()
    path.write_text(text.replace(mutant.old, mutant.new))
    yield
    path.write_text(text)
    # As old as what was compiled from it, which is valid again.
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def _run(tree: Path, tests: Sequence[str], *, plain: bool, quiet: bool = False) -> int:
    """Exit code. Nothing that is compiled from a fault is kept."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    if plain:
        environment["NUMBA_DISABLE_JIT"] = "1"
    words = [sys.executable, "-m", "pytest", "-n", "0", "-x", *tests]
    out = subprocess.DEVNULL if quiet else None
    return subprocess.run(words, cwd=tree, env=environment, stdout=out, check=False).returncode


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
