"""What a variant may change: all of a what-if but work that arrives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scheduling.engine import model as m
from scheduling.services.studies.whatif.answers import title
from scheduling.services.studies.whatif.changes import read
from scheduling.services.studies.whatif.kinds import ChangeError, PriorityChange, QueueChange

Document = Sequence[Mapping[str, Any]]
CHANGED = ("policy", "queue", "quota", "capacity", "class", "priority")


def world(snapshot: m.Snapshot, document: Document) -> m.Snapshot:
    """With the changes of a variant; A has none. Raises ChangeError."""
    return read(document).applied(snapshot) if document else snapshot


def check(snapshot: m.Snapshot, document: Document) -> None:
    """Raises ChangeError for what no variant changes, and at a name that is not there."""
    changes = read(document if isinstance(document, list | tuple) else None)
    for number, one in enumerate(document):
        if one.get("kind") not in CHANGED:
            raise ChangeError(
                f"changes.{number}.kind", "A variant has no such change.", f"Use {', '.join(CHANGED)}."
            )  # fmt: skip
    for number, change in enumerate(changes.each):
        is_new = isinstance(change, QueueChange) and "parent" in document[number]
        is_of_one = isinstance(change, PriorityChange) and "workload" in document[number]
        if is_new or is_of_one:
            raise ChangeError(
                f"changes.{number}", "No work of the past was in it.", "Change what was there then."
            )
    changes.applied(snapshot)


def differs(document: Document) -> str:
    """What it changes, in words. Raises ChangeError."""
    return title(read(document)) if document else "as in force"


def kinds_changed(document: Document) -> Iterable[str]:
    """Each once, in the order of ``CHANGED``."""
    found = {str(one.get("kind")) for one in document}
    return [kind for kind in CHANGED if kind in found]
