"""The kinds of studies: how many of each may be open, how long they are kept, and how a failing life counts.

What each kind lives is in ``running.LIVES``; a further kind is a row in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from scheduling.models import StudyKind

NOW, REPLAY, EDIT = StudyKind.NOW, StudyKind.REPLAY, StudyKind.EDIT
CAPACITY, EXPERIMENT, ADAPTING = StudyKind.CAPACITY, StudyKind.EXPERIMENT, StudyKind.ADAPTING
WHAT_IFS = (NOW, REPLAY)
EXPERIMENTS = (EXPERIMENT, ADAPTING)


@dataclass(frozen=True, slots=True)
class StudyRules:
    most_open: int
    """Studies of a cluster that wait or run, those of ``beside`` among them."""
    beside: tuple[StudyKind, ...]
    busy: str
    retention: timedelta
    """Cluster time after which it is forgotten, unless somebody keeps it or promoted a variant."""
    is_awaited: bool = False
    """Somebody looks at the page: it waits for no turn of others."""
    is_compared: bool = False
    """A variant that cannot be lived fails alone, and people's choices among them are in the audit log."""


KINDS: Mapping[StudyKind, StudyRules] = {
    NOW: StudyRules(20, WHAT_IFS, "Too many questions wait.", timedelta(days=30), is_awaited=True),
    REPLAY: StudyRules(
        20, WHAT_IFS, "Too many questions wait.", timedelta(days=30), is_awaited=True
    ),
    # Apart, so that a day of edits keeps no operator from asking.
    EDIT: StudyRules(20, (EDIT,), "Too many questions wait.", timedelta(days=30), is_awaited=True),
    CAPACITY: StudyRules(1, (CAPACITY,), "A study is being made already.", timedelta(days=400)),
    EXPERIMENT: StudyRules(
        5, EXPERIMENTS, "Too many experiments run.", timedelta(days=180), is_compared=True
    ),
    ADAPTING: StudyRules(
        5, EXPERIMENTS, "Too many experiments run.", timedelta(days=180), is_compared=True
    ),
}
AWAITED = [name for name, kind in KINDS.items() if kind.is_awaited]


def kind_of(name: str) -> StudyRules:
    return KINDS[StudyKind(name)]
