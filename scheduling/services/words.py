"""What is said on the objects that wait: reason, sentence, position, earliest start.

Thousands wait and all of their positions move when one of them starts. What a person acts on, a new
reason, is said at once; a moved figure only when it is worth a look, at most so often on one object,
and the longest unsaid first, so that a bounded rate reaches everybody.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from scheduling.cluster import labels
from scheduling.cluster.adapters import Adapter, Observed
from scheduling.cluster.enforcement import Act
from scheduling.cluster.events import Event
from scheduling.cluster.rate import Allowance
from scheduling.engine import model as m

Json = dict[str, Any]
Words = tuple[str, ...]
"""The values of ``labels.STATUS``, in its order; empty where there is nothing to say."""

STATUS_AT_ONCE, STATUS_PER_S = 100, 10.0
"""Objects that are told their status at once, and a second in the long run; the rest waits."""
WORTH_A_LOOK = 10
"""A line longer than what may be said is looked through for so many words, not for one or two."""
STATUS_EVERY_S = 10.0
"""Wall seconds between two status writes on one object, unless its reason changed."""
WARNED = (m.Reason.MISROUTED, m.Reason.NEVER_FITS)
"""Reasons that only a person can remove."""
NEAR = 10
"""Positions up to here are said exactly; further back a move counts from a tenth of the way."""


@dataclass(slots=True)
class Spoken:
    """When (monotonic) each object was told its status last: positions move faster than people read."""

    at: dict[str, float] = field(default_factory=dict)
    allowance: Allowance = field(default_factory=lambda: Allowance(STATUS_PER_S, STATUS_AT_ONCE))

    def may_repeat(self, uid: str) -> bool:
        return time.monotonic() - self.last(uid) >= STATUS_EVERY_S

    def last(self, uid: str) -> float:
        return self.at.get(uid, float("-inf"))

    def note(self, told: Iterable[str], alive: Iterable[str]) -> None:
        tick = time.monotonic()
        self.at = {uid: self.at[uid] for uid in alive if uid in self.at}
        self.at |= dict.fromkeys(told, tick)


def status_acts(
    waiting: Iterable[tuple[m.Decision, Observed]],
    adapters: Mapping[str, Adapter],
    spoken: Spoken,
    *,
    alive: Sequence[str],
    now: datetime,
) -> list[Act]:
    """Acts that tell those who wait: new reasons first, then who was told longest ago.

    ``alive`` are the uids of all workloads: of others ``spoken`` forgets.
    """
    waiting = list(waiting)
    room = spoken.allowance.left()
    if room < min(len(waiting), WORTH_A_LOOK):
        return []
    chosen = [
        Act(
            adapters[observed.kind],
            observed,
            _telling(decision),
            before=(_event(decision, observed, adapters[observed.kind], now),) if is_new else (),
        )
        for decision, observed, is_new in _chosen(waiting, spoken, room)
    ]
    spoken.allowance.spend(len(chosen))
    spoken.note((act.target.uid for act in chosen), alive)
    return chosen


def _chosen(
    waiting: Iterable[tuple[m.Decision, Observed]], spoken: Spoken, room: int
) -> list[tuple[m.Decision, Observed, bool]]:
    """At most ``room`` of those whose words are news, and whether their reason is."""
    urgent: list[tuple[m.Decision, Observed, bool]] = []
    later: list[tuple[m.Decision, Observed, bool]] = []
    for decision, observed in waiting:
        if len(urgent) == room:
            return urgent
        if observed.deleting:
            continue
        if observed.said[0] != decision.reason.value:
            urgent.append((decision, observed, True))
        elif spoken.may_repeat(observed.uid) and is_news(observed.said, words_of(decision)):
            later.append((decision, observed, False))
    later.sort(key=lambda told: (spoken.last(told[1].uid), told[1].uid))
    return (urgent + later)[:room]


def is_news(said: Words, words: Words) -> bool:
    """Whether ``words`` differ from what stands on the object by more than a small move in a long line.

    The sentence quotes figures that move with the position, so it is renewed with it.
    """
    if said == words:
        return False
    before, after = said[2], words[2]
    if said[0] != words[0] or not (before.isdigit() and after.isdigit()):
        return True
    if int(after) <= NEAR:
        return True
    return abs(int(after) - int(before)) * 10 >= int(before)


def words_of(decision: m.Decision) -> Words:
    """The status as it stands in annotations."""
    position = "" if decision.position is None else str(decision.position)
    waits = decision.action not in (m.Action.ADMIT, m.Action.GROW, m.Action.SHRINK)
    eta = decision.until.astimezone(UTC) if decision.until and waits else None
    return (
        decision.reason.value,
        decision.sentence,
        position,
        "" if eta is None else eta.strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def say(patch: Json, decision: m.Decision) -> Json:
    """``patch`` with the status annotations; an empty one is removed."""
    notes = patch.setdefault("metadata", {}).setdefault("annotations", {})
    notes |= {
        key: word or None for key, word in zip(labels.STATUS, words_of(decision), strict=True)
    }
    return patch


def _telling(decision: m.Decision) -> Any:
    def decide(obj: Json) -> Json | None:
        notes = obj["metadata"].get("annotations")
        return say({}, decision) if is_news(labels.status_of(notes), words_of(decision)) else None

    return decide


def _event(decision: m.Decision, observed: Observed, adapter: Adapter, now: datetime) -> Event:
    misrouted = decision.reason is m.Reason.MISROUTED
    return Event(
        observed,
        adapter.api_version,
        "Misrouted" if misrouted else "Pending",
        decision.sentence,
        now,
        f"{decision.reason} {observed.queue_label}",
        warning=decision.reason in WARNED,
    )
