"""Workloads that no plan may start now, whatever room there is: why, until when, and the remedy.

The engine sees them as held; what people read comes from here.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from scheduling.cluster.adapters import Sighting
from scheduling.engine import Outline
from scheduling.engine import model as m
from scheduling.engine.reasons.wording import clock
from scheduling.services.queues.judge import MISROUTED, NO_LEVEL, Judgement
from scheduling.services.workloads.turns import EARLIEST

START_BACK_OFF_S = (60.0, 3600.0)
"""First and longest wait of a gang whose pods were not all ready in time; doubled each time."""
RAN_OUT = (
    "It ran for its run-time limit, so Weir ended it. Release it to queue it again from where it left off, or"
    " cancel it."
)
SHOWN = 8
"""Nodes that are named one by one."""
NOTHING_MORE: Mapping[str, str] = {}
REFUSED_BACK_OFF_S = (5.0, 600.0)
"""The same when the API server refuses the patch that would start it."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    reason: m.Reason
    sentence: str
    until: datetime | None = None


@dataclass(slots=True)
class Refusals:
    """What the API server refused lately, by uid: generation of the object, times, until, message."""

    by_uid: dict[str, tuple[int, int, datetime, str]] = field(default_factory=dict)

    def note(self, refused: Mapping[str, tuple[int, str]], *, now: datetime) -> None:
        for uid, (generation, message) in refused.items():
            before = self.by_uid.get(uid)
            times = before[1] + 1 if before and before[0] == generation else 1
            until = now + timedelta(seconds=waits(REFUSED_BACK_OFF_S, times))
            self.by_uid[uid] = (generation, times, until, message)

    def of(self, observed: Sighting, now: datetime) -> Obstacle | None:
        generation, _, until, message = self.by_uid.get(observed.uid, (-1, 0, now, ""))
        if generation != observed.generation or until <= now:
            return None
        sentence = (
            f"The cluster refuses to start it: {message}. It is tried again at {clock(until)}."
        )
        return Obstacle(m.Reason.NEVER_FITS, sentence.replace("..", "."), until)

    def forget(self, present: Container[str]) -> None:
        self.by_uid = {uid: what for uid, what in self.by_uid.items() if uid in present}


def forbidden(judgement: Judgement) -> Obstacle | None:
    """What of it keeps work from being started; of work that goes nowhere nothing more is said."""
    if not judgement.faults:
        return None
    first = judgement.faults[0]
    if first.code == MISROUTED:
        return Obstacle(m.Reason.MISROUTED, str(first))
    if first.code == NO_LEVEL:
        return Obstacle(m.Reason.NEVER_FITS, str(first))
    return Obstacle(m.Reason.NOT_ALLOWED, " ".join(str(fault) for fault in judgement.faults))


def blocked(
    observed: Sighting, refusals: Refusals, *, now: datetime, barred: Obstacle | None = None
) -> Obstacle | None:
    """What keeps ``observed`` from being started at ``now``; None for nearly all. ``barred`` is what its
    judgement forbids."""
    if observed.fault and not (barred and barred.reason is m.Reason.MISROUTED):
        return Obstacle(m.Reason.NEVER_FITS, observed.fault)
    return barred or _not_yet(observed, now) or refusals.of(observed, now)


def _not_yet(observed: Sighting, now: datetime) -> Obstacle | None:
    """What it says itself to wait for."""
    if observed.ran_out:
        return Obstacle(m.Reason.RUN_TIME_OVER, RAN_OUT)
    if observed.incomplete:
        return Obstacle(m.Reason.GANG_INCOMPLETE, observed.incomplete)
    begins = observed.turn.not_before
    if begins is not None and begins > now:
        return Obstacle(m.Reason.NOT_BEFORE, EARLIEST.format(clock(begins)), begins)
    if observed.retry_at is not None and observed.retry_at > now:
        late = _late(observed, observed.retry_at)
        return Obstacle(m.Reason.GANG_INCOMPLETE, late, observed.retry_at)
    return None


def all_blocked(
    workloads: Iterable[Sighting],
    refusals: Refusals,
    *,
    now: datetime,
    barred: Mapping[str, Obstacle],
) -> list[tuple[Sighting, Obstacle]]:
    """Those of ``workloads`` that are blocked, with the cause; ``barred`` by uid: what judgements forbid."""
    return [
        (o, why)
        for o in workloads
        if (why := blocked(o, refusals, now=now, barred=barred.get(o.uid)))
    ]


def may_be_blocked(observed: Sighting) -> bool:
    """Whether it says of itself what may keep it from being started, now or at another time."""
    return bool(
        observed.fault
        or observed.incomplete
        or observed.retry_at
        or observed.ran_out
        or observed.turn
        or observed.start_fault.barred
    )


def barred(workloads: Iterable[Sighting], now: datetime) -> dict[str, frozenset[str]]:
    """Of those of ``workloads`` that wait, by uid: nodes that are left out for them now."""
    waits = ((o.uid, o.start_fault.barred_at(now)) for o in workloads if o.suspended)
    return {uid: nodes for uid, nodes in waits if nodes}


def left_out(observed: Sighting, nodes: Iterable[str]) -> str:
    """What is said to its wait while ``nodes`` are left out for it."""
    fault = observed.start_fault
    listing = ", ".join(
        f"{node} until {clock(fault.barred[node])}" for node in sorted(nodes)[:SHOWN]
    )
    return f"{fault.said} Left out for it: {listing}."


def reworded(
    plan: Outline, blocked_by: Mapping[str, Obstacle], more: Mapping[str, str] = NOTHING_MORE
) -> Outline:
    """``plan`` with what really blocks a workload (engine name -> why) in place of its hold, and with
    ``more`` that is said to a wait."""
    if not blocked_by and not more:
        return plan
    line, reasons = plan.waits, list(plan.waits.reasons)
    names = blocked_by.keys() | more.keys()
    places = [place for place, name in enumerate(line.names) if name in names]
    said = {
        place: _reworded(decision, blocked_by, more)
        for place, decision in zip(places, line.spell(places), strict=True)
    }
    for place, decision in said.items():
        reasons[place] = decision.reason

    def spell(wanted: Sequence[int]) -> list[m.Decision]:
        others = iter(line.spell([place for place in wanted if place not in said]))
        return [said[place] if place in said else next(others) for place in wanted]

    return replace(plan, waits=replace(line, reasons=reasons, spell=spell))


def waits(bounds_s: tuple[float, float], times: int) -> float:
    """Seconds to wait after the ``times``-th failure in a row."""
    first, longest = bounds_s
    return min(longest, first * 2.0 ** min(times - 1, 30))


def _reworded(
    decision: m.Decision, blocked_by: Mapping[str, Obstacle], more: Mapping[str, str]
) -> m.Decision:
    if decision.action is not m.Action.WAIT:
        return decision
    why = blocked_by.get(decision.workload)
    if why is None:
        words = more[decision.workload]
        sealed = f"{decision.sealed} {words}" if decision.sealed else ""
        return replace(decision, sentence=f"{decision.sentence} {words}", sealed=sealed)
    return replace(
        decision, reason=why.reason, sentence=why.sentence, sealed="", until=why.until, numbers={}
    )


def _late(observed: Sighting, until: datetime) -> str:
    times = observed.start_failures
    again = f", {times} times in a row" if times > 1 else ""
    if observed.start_fault.said:
        return f"{observed.start_fault.said} It is tried again at {clock(until)}."
    return f"Its pods were not all ready in time{again}; it is tried again at {clock(until)}."
