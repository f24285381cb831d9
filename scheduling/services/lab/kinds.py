"""The kinds of variants: what each does to the world that is lived in, and on which periods it may be judged.

A further kind is one more row of ``KINDS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduling.engine import model as m
from scheduling.services.errors import ServiceError
from scheduling.services.whatif.changes import read
from scheduling.services.whatif.kinds import ChangeError, PriorityChange, QueueChange
from scheduling.services.whatif.told import title

Json = dict[str, Any]
Document = Sequence[Mapping[str, Any]]
IN_FORCE, CHANGES = "in_force", "changes"
CHANGED = ("policy", "queue", "quota", "capacity", "class", "priority")
"""Kinds of changes that a variant may make: all of a what-if but work that arrives."""


@dataclass(frozen=True, slots=True)
class Kind:
    """``world`` puts the variant into a snapshot and raises ChangeError; ``differs`` says in words what it
    changes; ``refuses`` raises ServiceError where it must not be judged on [begin, end)."""

    name: str
    world: Callable[[m.Snapshot, Document], m.Snapshot]
    differs: Callable[[Document], str]
    refuses: Callable[[Document, datetime, datetime], None]


def kind_of(name: str) -> Kind:
    """Raises ServiceError for a kind that there is not."""
    if name not in KINDS:
        raise ServiceError(
            "unknown_kind", f"There is no kind of variant {name}.", f"Use {' or '.join(KINDS)}.", field="kind"
        )  # fmt: skip
    return KINDS[name]


def _same(snapshot: m.Snapshot, _document: Document) -> m.Snapshot:
    return snapshot


def _changed(snapshot: m.Snapshot, document: Document) -> m.Snapshot:
    _check(document)
    return read(document).applied(snapshot)


def _check(document: Document) -> None:
    each = read(document if isinstance(document, list | tuple) else None).each
    for number, one in enumerate(document):
        kind = one.get("kind") if isinstance(one, Mapping) else None
        if kind not in CHANGED:
            raise ChangeError(
                f"changes.{number}.kind", "A variant has no such change.", f"Use {', '.join(CHANGED)}."
            )  # fmt: skip
    for number, change in enumerate(each):
        is_new = isinstance(change, QueueChange) and "parent" in document[number]
        is_of_one = isinstance(change, PriorityChange) and "workload" in document[number]
        if is_new or is_of_one:
            raise ChangeError(
                f"changes.{number}", "No work of the past was in it.", "Change what was there then."
            )


def _told(document: Document) -> str:
    return title(read(document))


def _never(_document: Document, _begin: datetime, _end: datetime) -> None:
    """Nothing was learned from any period."""


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(IN_FORCE, _same, lambda _document: "as in force", _never),
        Kind(CHANGES, _changed, _told, _never),
    )
}


def kinds_changed(document: Document) -> Iterable[str]:
    """Each once, in the order of ``CHANGED``."""
    found = {str(one.get("kind")) for one in document}
    return [kind for kind in CHANGED if kind in found]
