"""What a demo still works out of its past when its first page is there already: pages say so where it will
stand.

Kept in a file of the demo's folder, since another process works it out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings

NAME = "later.json"
MONTHS, STARTS = "months", "starts"
"""Demand of the months before, with what it forecasts; start forecasts of the last week, with what came."""


@dataclass(frozen=True, slots=True)
class Later:
    """``done`` of so many steps, since a real moment."""

    since: datetime
    done: int
    of: int


def unfinished(kind: str) -> Later | None:
    """None where nothing is left of it, as everywhere but in a demo's first minutes."""
    folder = settings.WEIR_DEMO_FOLDER
    found = progress(Path(folder)).get(kind) if folder else None
    if found is None:
        return None
    return Later(datetime.fromisoformat(found["since"]), found["done"], found["of"])


def progress(folder: Path) -> Mapping[str, Any]:
    """By kind, with ``since``, ``done`` and ``of``."""
    try:
        found: dict[str, Any] = json.loads((folder / NAME).read_text())
    except FileNotFoundError:
        return {}
    return found


def note(folder: Path, kinds: Mapping[str, Any]) -> None:
    """Keep that these are left, in place of what was noted before; none ends it."""
    if not kinds:
        (folder / NAME).unlink(missing_ok=True)
        return
    fresh = folder / f"{NAME}.new"
    fresh.write_text(json.dumps(kinds))
    fresh.replace(folder / NAME)
