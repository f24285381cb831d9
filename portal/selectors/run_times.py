"""What was learned of a workload's run time, in words: quantiles, and from whose runs. Names nobody but its
own user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from portal.display.format import counted, duration, number
from scheduling.models import Prediction, State, Workload
from scheduling.services.run_times import ExpectedRunTime

OF = {
    "recipe": "of this name, size and limit by {user}, in its queue",
    "shape": "of this name, size and limit by {user}",
    "name": "of this name by {user}",
    "place": "of this size by {user}, in its queue",
    "user": "by {user}",
    "image": "of this name and image",
    "size": "of this size in its queue",
    "queue": "in its queue",
    "all": "on this cluster",
}
"""By the groups of ``prediction.history``."""


@dataclass(frozen=True, slots=True)
class LearnedRunTime:
    """``text`` has the quantiles, ``source`` what they rest on; ``paces`` compare the classes that work which
    waits may use."""

    label: str
    text: str
    source: str
    paces: Sequence[str] = ()


def learned_of(work: Workload) -> LearnedRunTime | None:
    """None where nothing was learned yet."""
    said: Prediction | None = getattr(work, "prediction", None)
    if said is None:
        return None
    source = source_of(said.evidence, work.user)
    if work.state == State.FINISHED:
        return LearnedRunTime("Run time, as first told", _range_in_words(said), source)
    forecast = quantiles(said.p10_s, said.p50_s, said.p90_s)
    if work.state == State.RUNNING:
        return LearnedRunTime("Run time left", forecast, source)
    return LearnedRunTime("Expected to run", forecast, source, _paces(said))


def quantiles(p10_s: float, p50_s: float, p90_s: float) -> str:
    """'P50 3 h, P10 2 h to P90 5 h'."""
    return f"P50 {duration(p50_s)}, P10 {duration(p10_s)} to P90 {duration(p90_s)}"


def source_of(evidence: dict[str, Any], user: str) -> str:
    """'from 14 runs of this name by ann'; that nothing like it has run, where that is so."""
    runs = int(evidence.get("runs") or 0)
    if not runs:
        return "nothing like it has run yet"
    of = OF.get(str(evidence.get("group")), "on this cluster").format(user=user or "its user")
    return f"from the last {number(runs)} runs {of}" if runs > 1 else f"from one run {of}"


def expected_words(one: ExpectedRunTime, user: str, gpu_class: str) -> tuple[str, str]:
    """Quantiles, and what they rest on."""
    source = source_of({"runs": one.runs, "group": one.group}, user)
    if one.pace is not None:
        pace = one.pace
        source += (
            f"; {pace.ratio:.2g} times as fast as on {pace.against}, as"
            f" {_runs_under(pace.runs, pace.groups, pace.own)} show"
        )
    if one.runs and one.here < one.runs and not one.paced:
        ran = "none" if not one.here else number(one.here)
        source += (
            f"; {ran} of them on {gpu_class}, and nobody knows how it compares with the others"
        )
    return quantiles(one.p10_s, one.p50_s, one.p90_s), source


def _runs_under(runs: int, names: int, own: int) -> str:
    """'745 runs under 29 names, none of them under its own,'."""
    mine = number(own) if own else "none"
    return f"{counted(runs, 'run')} under {counted(names, 'name')}, {mine} of them under its own,"


def short_limit(one: ExpectedRunTime, limit_s: int | None) -> str:
    """A warning where a run-time limit ends such runs before they are done; else empty."""
    if not limit_s or not one.runs or one.free_p90_s < limit_s:
        return ""
    often = "half" if one.free_p50_s >= limit_s else "one in ten"
    took = f"P50 {duration(one.free_p50_s)}, P90 {duration(one.free_p90_s)}"
    return (
        f"Its run-time limit of {duration(limit_s)} would end {often} of such runs or more too early;"
        f" without a limit they take {took}. Set a longer one, or go on from checkpoints."
    )


def end_of(work: Workload) -> tuple[datetime, datetime] | None:
    """P50 and P90 of when one that runs ends, as learned."""
    said: Prediction | None = getattr(work, "prediction", None)
    if said is None or work.state != State.RUNNING:
        return None
    since = max(said.at, work.started_at or said.at)
    return since + timedelta(seconds=said.p50_s), since + timedelta(seconds=said.p90_s)


def _range_in_words(said: Prediction) -> str:
    return quantiles(said.told_p10_s, said.told_p50_s, said.told_p90_s)


def _paces(said: Prediction) -> list[str]:
    """'on h100-80gb P50 2 h: 1.8 times as fast as on a100-40gb, as 24 runs under 5 names, … show'."""
    ordered = sorted(said.by_class.items(), key=lambda pair: pair[1].get("place", 0))
    first = ordered[0][0] if ordered else ""
    return [
        f"on {name} P50 {duration(one['p50_s'])}: {one['ratio']:.2g} times as fast as on {first}, as"
        f" {_runs_under(one['runs'], one['groups'], one['own_runs'])} show"
        for name, one in ordered
        if name != first
    ]
