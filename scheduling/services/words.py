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
from scheduling.engine import model as m

Json = dict[str, Any]
Words = tuple[str, ...]
"""The values of ``labels.STATUS``, in its order; empty where there is nothing to say."""

STATUS_WRITES = 100
"""Status annotations written per cycle at most; the rest waits for the next cycle."""
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
    urgent: list[Act] = []
    later: list[Act] = []
    for decision, observed in waiting:
        words = words_of(decision)
        if observed.deleting or not is_news(observed.said, words):
            continue
        adapter = adapters[observed.kind]
        if observed.said[0] != words[0]:
            event = _event(decision, observed, adapter, now)
            urgent.append(Act(adapter, observed, _telling(decision), before=(event,)))
        elif spoken.may_repeat(observed.uid):
            later.append(Act(adapter, observed, _telling(decision)))
    later.sort(key=lambda act: (spoken.last(act.target.uid), act.target.uid))
    chosen = (urgent + later)[:STATUS_WRITES]
    spoken.note((act.target.uid for act in chosen), alive)
    return chosen


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
