"""How commands in a second terminal find the demo that runs: a note of its environment, in var/running.

Read before Django's settings are, so it needs nothing but Python.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

NOTES = Path(__file__).resolve().parents[2] / "var" / "running"
NAMED = ("DATABASE_URL", "WEIR_DEMO", "WEIR_ADDRESS", "WEIR_WEBHOOK_INSIDE", "WEIR_WEBHOOK_HTTP")
"""What a command needs to be in the demo's world. None of it is a secret."""


def note(environment: Mapping[str, str], notes: Path = NOTES) -> Path:
    """Until this process ends, commands that name no database of their own read that of ``environment``."""
    notes.mkdir(parents=True, exist_ok=True)
    made = notes / f"{os.getpid()}.json"
    made.write_text(json.dumps({name: environment[name] for name in NAMED if name in environment}))
    atexit.register(made.unlink, missing_ok=True)
    return made


def join(notes: Path = NOTES) -> None:
    """Take over the environment of the demo that runs, and say so; one that is given already stays."""
    if "DATABASE_URL" in os.environ:
        return
    found = _youngest(notes)
    if found is None:
        return
    os.environ.update(found)
    sys.stderr.write(
        f"The demo at {found.get('WEIR_ADDRESS', 'an unknown address')} runs here: its database is read;"
        " DATABASE_URL names another.\n"
    )


def _youngest(notes: Path) -> dict[str, str] | None:
    """The note of the demo that was started last of those that run."""
    for each in sorted(notes.glob("*.json"), key=_written, reverse=True):
        if _runs(int(each.stem)):
            found: dict[str, str] = json.loads(each.read_text())
            return found
        each.unlink(missing_ok=True)  # it was killed
    return None


def _written(made: Path) -> float:
    try:
        return made.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
