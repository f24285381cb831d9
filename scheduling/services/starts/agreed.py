"""Reservations and predicted starts as one answer: no reservation tells an earlier time than the forecast.

A reservation rests on when running work is expected to end; the forecast has also lived who arrives and what
goes wrong. Where the two differ the later one is told, in the sentence, in its figures and as its moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from scheduling.engine import Outline
from scheduling.engine import model as m
from scheduling.engine.reasons.wording import clock, span
from scheduling.services.starts.tell import Said

Told = Mapping[str, Said]
"""What is said of those that wait, by the engine's name."""
STARTS_IN = "starts_in_s"
OPEN = "until the rest ends."
"""How the sentence of a reservation ends that knows no time."""


def agreed(plan: Outline, told: Told, now: datetime) -> Outline:
    """``plan`` with the later of both times; its waits are put into words only where somebody reads them."""
    if not told:
        return plan
    one = partial(_agreed, told=told, now=now)
    waits = replace(plan.waits, spell=_spelled(plan.waits.spell, one))
    return replace(plan, waits=waits)


def _spelled(
    spell: Callable[[Sequence[int]], list[m.Decision]], one: Callable[[m.Decision], m.Decision]
) -> Callable[[Sequence[int]], list[m.Decision]]:
    return lambda wanted: [one(decision) for decision in spell(wanted)]


def _agreed(decision: m.Decision, told: Told, now: datetime) -> m.Decision:
    if decision.reason is m.Reason.RESERVED:
        return _own(decision, _p50(told, decision.workload))
    if decision.reason is m.Reason.RESERVED_FOR_OTHER:
        return _others(decision, _p50(told, decision.for_workload or ""), now)
    return decision


def _p50(told: Told, name: str) -> datetime | None:
    found = told.get(name)
    return found.p50 if found else None


def _own(decision: m.Decision, p50: datetime | None) -> m.Decision:
    if p50 is None or (decision.until is not None and decision.until >= p50):
        return decision
    said = f"expected {clock(p50)}"
    before, after = OPEN, f"until the rest ends, {said}."
    if decision.until is not None:
        before, after = f"expected {clock(decision.until)}", said
    return replace(_reworded(decision, before, after), until=p50)


def _others(decision: m.Decision, p50: datetime | None, now: datetime) -> m.Decision:
    """Of who waits behind a reservation: when that starts."""
    known_s = float(decision.numbers.get(STARTS_IN) or 0.0)
    later_s = (p50 - now).total_seconds() if p50 else 0.0
    if not known_s or later_s <= known_s:
        return decision
    numbers = {**decision.numbers, STARTS_IN: later_s}
    words = (f" and starts in {span(s)}, as predicted" for s in (known_s, later_s))
    return replace(_reworded(decision, *words), numbers=numbers)


def _reworded(decision: m.Decision, before: str, after: str) -> m.Decision:
    return replace(
        decision,
        sentence=decision.sentence.replace(before, after),
        sealed=decision.sealed.replace(before, after),
    )
