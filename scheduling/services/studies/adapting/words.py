"""What replays said of a parameter, as one sentence with its figures: for audit log, pages and API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scheduling.engine.reasons.wording import plural
from scheduling.services.studies.adapting.judging import (
    KEPT,
    WAIT,
    FigureChange,
    ValueVerdict,
    judged_of,
)
from scheduling.services.studies.adapting.parameters import Parameter, Value
from scheduling.simulation.replications import Verdict

MOST = 500
UNITS = {
    WAIT: "min",
    "unfair_pct": "points",
    "worst_queue_s": "min",
    "evictions": "",
    "lost_gpu_hours": "GPU-hours",
}
Json = Mapping[str, Any]


def difference(key: str, one: FigureChange) -> str:
    """'−2.1 ± 1.0 min'; what is a time in minutes."""
    per = 60 if key.endswith("_s") else 1
    return f"{_signed(one.mean / per)} ± {one.half / per:.1f} {UNITS[key]}".rstrip()


def _signed(value: float) -> str:
    text = f"{abs(value):.1f}"
    if text == "0.0":
        return "0"
    return f"{'−' if value < 0 else '+'}{text}"


def of_step(parameter: Parameter, evidence: Json, before: Value) -> str:
    """Why a step was taken, or none: 'wait −2.1 ± 1.0 min, nothing worse; 10 replays of 7 days'."""
    step = evidence.get("step", {})
    if step.get("fault"):
        return f"not judged: {step['fault']}"
    found = [judged_of(one) for one in step.get("values", ())]
    if not found:
        return ""
    best = chosen(found)
    if best is not None:
        return f"wait {difference(WAIT, best.figures[WAIT])}, nothing else worse; {_lives(step)}"
    each = "; ".join(f"{parameter.in_words(one.value)}: {_why_not(one)}" for one in found)
    return f"no value in bounds better than noise ({each}); {_lives(step)}"


def of_check(evidence: Json) -> str:
    """What the days since a step showed, as of the last check; "" before the first."""
    checks: Sequence[Json] = evidence.get("checks", ())
    if not checks:
        return ""
    last = checks[-1]
    if last.get("fault"):
        return f"the days since could not be replayed: {last['fault']}"
    one = judged_of(last["values"][0])
    paid = [f"{KEPT[key]} {difference(key, one.figures[key])}" for key in one.worse if key in KEPT]
    rest = f"worse: {', '.join(paid)}" if paid else "nothing else worse"
    return f"wait since {difference(WAIT, one.figures[WAIT])}, {rest}; {_lives(last)}"


def change(parameter: Parameter, before: Value, after: Value) -> str:
    """'Half-life of use 7 → 8 d'; both with a unit where they differ in it."""
    old = parameter.in_words(before).removesuffix(f" {parameter.unit}")
    return f"{parameter.title} {old} → {parameter.in_words(after)}"


def sentence(what: str, why: str) -> str:
    return f"{what}: {why}."[:MOST]


def chosen(found: Sequence[ValueVerdict]) -> ValueVerdict | None:
    """Of the values that are better the one with the shortest wait; the first of equals."""
    better = [one for one in found if one.is_better]
    return min(better, key=lambda one: one.figures[WAIT].mean, default=None)


def _why_not(one: ValueVerdict) -> str:
    wait = f"wait {difference(WAIT, one.figures[WAIT])}"
    if one.figures[WAIT].verdict != Verdict.BETTER:
        return wait
    paid = ", ".join(f"{KEPT[key]} {difference(key, one.figures[key])}" for key in one.worse)
    return f"{wait}, but {paid}"


def _lives(judged: Json) -> str:
    days = judged.get("days", 0)
    return f"{judged.get('lives', 0)} replays of {plural(days, 'day')}"
