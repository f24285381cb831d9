"""What is said on the objects that wait: reason, sentence, position, earliest start.

Thousands wait and all of their positions move when one of them starts. What a person acts on, a new
reason, is said at once; a moved figure only when it is worth a look, at most so often on one object,
and the longest unsaid first, so that a bounded rate reaches everybody.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from scheduling.cluster.adapters import Adapter, Sighting
from scheduling.cluster.connection.rate import Allowance
from scheduling.cluster.enforcement.enforcer import Act
from scheduling.cluster.enforcement.events import Event
from scheduling.cluster.vocabulary import labels
from scheduling.engine import Waits
from scheduling.engine import model as m

Json = dict[str, Any]
Words = tuple[str, ...]
"""The values of ``labels.STATUS``, in its order; empty where there is nothing to say."""

STATUS_AT_ONCE, STATUS_PER_S = 100, 10.0
"""Objects that are told their status at once, and a second in the long run; the rest waits."""
HURRIED_PER_S = 4.0
"""The same while cycles follow each other: what an API server writes then had better be acts."""
WORTH_A_LOOK = 10
"""A line longer than what may be said is looked through for so many words, not for one or two."""
STATUS_EVERY_S = 10.0
"""Wall seconds between two status writes on one object, unless its reason changed."""
NO_ETAS: Mapping[str, str] = {}
WARNED = (m.Reason.MISROUTED, m.Reason.NEVER_FITS, m.Reason.NOT_ALLOWED)
"""Reasons that only a person can remove."""
NEAR = 10
"""Positions up to here are said exactly; further back a move counts from a tenth of the way."""


@dataclass(slots=True)
class LastStatus:
    """When (monotonic) each object was told its status last: positions move faster than people read."""

    at: dict[str, float] = field(default_factory=dict)
    allowance: Allowance = field(default_factory=lambda: Allowance(STATUS_PER_S, STATUS_AT_ONCE))
    hurried: Allowance = field(default_factory=lambda: Allowance(HURRIED_PER_S, WORTH_A_LOOK))

    def room(self, *, hurried: bool) -> int:
        """How many objects may be told now."""
        room = self.allowance.left()
        return min(room, self.hurried.left()) if hurried else room

    def spend(self, number: int) -> None:
        self.allowance.spend(number)
        self.hurried.spend(min(number, self.hurried.left()))

    def last(self, uid: str) -> float:
        return self.at.get(uid, float("-inf"))

    def note(self, names: Iterable[str], alive: Iterable[str]) -> None:
        tick = time.monotonic()
        self.at = {uid: self.at[uid] for uid in alive if uid in self.at}
        self.at |= dict.fromkeys(names, tick)


def status_acts(
    waits: Waits,
    find: Callable[[str], Sighting | None],
    adapters: Mapping[str, Adapter],
    spoken: LastStatus,
    *,
    alive: Collection[str],
    now: datetime,
    hurried: bool = False,
    etas: Mapping[str, str] = NO_ETAS,
) -> list[Act]:
    """Acts that tell those who wait: new reasons first, then who was told longest ago.

    ``find`` gives who may be told, by the engine's name; ``alive`` are the uids of all workloads: of
    others ``spoken`` forgets. ``hurried`` says that the next cycle is called for already. ``etas`` are
    predicted starts by the engine's name, as they are said.
    """
    room = spoken.room(hurried=hurried)
    if room < min(len(waits), WORTH_A_LOOK):
        return []
    chosen = [
        Act(
            adapters[observed.kind],
            observed,
            _telling(decision, etas.get(decision.workload, "")),
            before=(_event(decision, observed, adapters[observed.kind], now),) if is_new else (),
            is_foreseen=True,
        )
        for decision, observed, is_new in _chosen(waits, find, spoken, room, etas)
    ]
    spoken.spend(len(chosen))
    spoken.note((act.target.uid for act in chosen), alive)
    return chosen


Candidate = tuple[int, Sighting]
"""A place among the waits, and whom it is about."""


def _chosen(
    waits: Waits,
    find: Callable[[str], Sighting | None],
    spoken: LastStatus,
    room: int,
    etas: Mapping[str, str],
) -> list[tuple[m.Decision, Sighting, bool]]:
    """At most ``room`` of those whose words are news, and whether their reason is."""
    urgent: list[Candidate] = []
    later: list[Candidate] = []
    tick = time.monotonic() - STATUS_EVERY_S
    for place, (name, reason) in enumerate(zip(waits.names, waits.reasons, strict=True)):
        observed = find(name)
        if observed is None or observed.deleting:
            continue
        if observed.said[0] != reason:
            urgent.append((place, observed))
            if len(urgent) == room:
                break
        elif spoken.last(observed.uid) <= tick and is_far(observed.said, waits.positions[place]):
            later.append((place, observed))
    choice = [(decision, observed, True) for decision, observed in _spelled(waits, urgent)]
    later.sort(key=lambda candidate: (spoken.last(candidate[1].uid), candidate[1].uid))
    while later and len(choice) < room:
        batch, later = later[:room], later[room:]
        choice += [
            (decision, observed, False)
            for decision, observed in _spelled(waits, batch)
            if is_news(observed.said, words_of(decision, etas.get(decision.workload, "")))
        ]
    return choice[:room]


def _spelled(
    waits: Waits, candidates: Sequence[Candidate]
) -> Iterator[tuple[m.Decision, Sighting]]:
    decisions = waits.spell([place for place, _ in candidates])
    return zip(decisions, (observed for _, observed in candidates), strict=True)


def is_far(said: Words, position: int) -> bool:
    """Whether words of the same reason may be news at ``position``: what a glance tells of ``is_news``."""
    before = said[2]
    if position <= NEAR or not before.isdigit():
        return True
    return abs(position - int(before)) * 10 >= int(before)


def is_news(said: Words, words: Words) -> bool:
    """Whether ``words`` differ from what stands on the object by more than a small move in a long line.

    The sentence quotes figures that move with the position, so it is renewed with it.
    """
    if said == words:
        return False
    after = words[2]
    return said[0] != words[0] or not after.isdigit() or is_far(said, int(after))


def words_of(decision: m.Decision, eta: str = "") -> Words:
    """The status as it stands in annotations; without a predicted start the earliest that the plan names."""
    position = "" if decision.position is None else str(decision.position)
    waits = decision.action not in (m.Action.ADMIT, m.Action.GROW, m.Action.SHRINK)
    earliest = decision.until.astimezone(UTC) if decision.until and waits else None
    if earliest and not eta:
        eta = f"{earliest:%Y-%m-%dT%H:%M:%SZ}"
    return (decision.reason.value, public(decision), position, eta if waits else "")


def public(decision: m.Decision) -> str:
    """The sentence for an object of the cluster: whoever may read its namespace sees its queue and those
    above, and not the work of others."""
    return decision.sealed or decision.sentence


def say(patch: Json, decision: m.Decision, eta: str = "") -> Json:
    """``patch`` with the status annotations; an empty one is removed."""
    notes = patch.setdefault("metadata", {}).setdefault("annotations", {})
    notes |= {
        key: word or None for key, word in zip(labels.STATUS, words_of(decision, eta), strict=True)
    }
    return patch


def _telling(decision: m.Decision, eta: str) -> Any:
    def decide(obj: Json) -> Json | None:
        notes = obj["metadata"].get("annotations")
        is_other = is_news(labels.status_of(notes), words_of(decision, eta))
        return say({}, decision, eta) if is_other else None

    return decide


def _event(decision: m.Decision, observed: Sighting, adapter: Adapter, now: datetime) -> Event:
    misrouted = decision.reason is m.Reason.MISROUTED
    return Event(
        observed,
        adapter.api_version,
        "Misrouted" if misrouted else "Pending",
        public(decision),
        now,
        f"{decision.reason} {observed.queue_label}",
        warning=decision.reason in WARNED,
    )
