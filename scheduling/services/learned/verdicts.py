"""What the lives of the windows say: differences with intervals, fairness, conditions of promotion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from scheduling.models import Cluster, LearnedLife, LearnedOrder, LearnedState
from scheduling.services.learned.figures import WAIT, bounded, most_allowed, passed
from scheduling.services.learned.orders import HAND, LEARNED, NOW
from scheduling.simulation.replications import Verdict, compare

SHADOW = timedelta(days=14)
"""So long a version plans beside what decides before it may decide."""
LATER_KIND, SHADOW_KIND, DRIFT_KIND, TRACE_KIND = "later", "shadow", "drift", "trace"
APART = (DRIFT_KIND, TRACE_KIND)
"""Judged by themselves; no part of the rule of promotion."""
BASES = (NOW, HAND)
BETTER = "better than every other order on every window"
Json = dict[str, Any]
Lives = Mapping[tuple[str, str], Mapping[int, Mapping[str, float]]]
"""(window, order) -> seed -> figures."""


def judge(order: LearnedOrder) -> Json:
    """The verdict over every window whose lives are complete: {comparisons, windows: [{key, kind, begin, end,
    workloads, mine_s, against: [{order, name, theirs_s, difference_s, half_s, verdict}], bounds: [{figure,
    now, mine, most, is_kept}]}]}. Waits in seconds. The intervals of all
    windows hold together at 95 %, those of each check of drift and of another recording by themselves.
    """
    lives = lives_of(order)
    done = [one for one in order.windows if is_complete(order, one, lives)]
    together = sum(len(one["orders"]) for one in done if one["kind"] not in APART)
    windows = [
        _window(one, lives, len(one["orders"]) if one["kind"] in APART else together)
        for one in done
    ]
    return {"comparisons": together, "windows": windows}


def lives_of(order: LearnedOrder) -> dict[tuple[str, str], dict[int, dict[str, float]]]:
    found: dict[tuple[str, str], dict[int, dict[str, float]]] = {}
    for row in LearnedLife.objects.filter(order=order):
        found.setdefault((row.window, row.under), {})[row.seed] = row.figures
    return found


def is_complete(order: LearnedOrder, window: Json, lives: Lives) -> bool:
    keys = (LEARNED, *(one["key"] for one in window["orders"]))
    return all(len(lives.get((window["key"], key), {})) >= order.replays for key in keys)


def _window(window: Json, lives: Lives, comparisons: int) -> Json:
    mine = lives[window["key"], LEARNED]
    seeds = sorted(mine)
    of = {
        one["key"]: [lives[window["key"], one["key"]][seed] for seed in seeds]
        for one in window["orders"]
    }
    learned = [mine[seed] for seed in seeds]
    lives_now = of[next(key for key in BASES if key in of)]
    base = bounded(lives_now)
    figures, most = bounded(learned), most_allowed(base)
    broken = passed(learned, lives_now, comparisons * len(most))
    return {
        **{name: window[name] for name in ("key", "kind", "begin", "end", "workloads")},
        "trace": window.get("trace", ""),
        "mine_s": _mean([life[WAIT] for life in learned]),
        "against": [
            _against(one, of[one["key"]], learned, comparisons) for one in window["orders"]
        ],
        "bounds": [
            {
                "figure": name,
                "now": round(base[name], 4),
                "mine": round(figures[name], 4),
                "most": round(most[name], 4),
                "is_kept": name not in broken,
            }
            for name in most
        ],
    }


def _against(
    one: Json,
    theirs: Sequence[Mapping[str, float]],
    mine: Sequence[Mapping[str, float]],
    comparisons: int,
) -> Json:
    waits = [life[WAIT] for life in theirs]
    told = compare(waits, [life[WAIT] for life in mine], comparisons)
    return {
        "order": one["key"],
        "name": one["name"],
        "theirs_s": _mean(waits),
        "difference_s": round(told.mean, 1),
        "half_s": None if told.half is None else round(told.half, 1),
        "verdict": str(told.verdict),
    }


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 1)


@dataclass(frozen=True, slots=True)
class Standing:
    """A verdict counted: comparisons of windows that are no check of drift."""

    better: int
    worse: int
    compared: int
    better_than_now: int
    worse_than_now: int
    windows: int
    broken: tuple[str, ...]
    """Figures of fairness that pass their bound in any window."""


def standing(verdict: Json, kinds: Sequence[str] = (LATER_KIND, SHADOW_KIND)) -> Standing:
    windows = [one for one in verdict.get("windows", []) if one["kind"] in kinds]
    cells = [cell for one in windows for cell in one["against"]]
    base = [cell for cell in cells if cell["order"] in BASES]
    bounds = [bound for one in windows for bound in one["bounds"] if not bound["is_kept"]]
    return Standing(
        better=sum(cell["verdict"] == Verdict.BETTER for cell in cells),
        worse=sum(cell["verdict"] == Verdict.WORSE for cell in cells),
        compared=len(cells),
        better_than_now=sum(cell["verdict"] == Verdict.BETTER for cell in base),
        worse_than_now=sum(cell["verdict"] == Verdict.WORSE for cell in base),
        windows=len(windows),
        broken=tuple(dict.fromkeys(bound["figure"] for bound in bounds)),
    )


@dataclass(frozen=True, slots=True)
class Condition:
    """One of what a promotion needs; ``lacks`` says what is missing, with the figures."""

    name: str
    is_met: bool
    lacks: str


def conditions(order: LearnedOrder, cluster: Cluster) -> list[Condition]:
    """The rule of promotion, condition by condition."""
    found = standing(order.verdict)
    days = (cluster.now() - order.since) / timedelta(days=1) if is_in_shadow(order) else 0.0
    is_over = any(one["kind"] == SHADOW_KIND for one in order.verdict.get("windows", []))
    return [
        Condition(
            BETTER,
            bool(found.compared) and found.better == found.compared,
            f"so far in {found.better} of {found.compared} comparisons",
        ),
        Condition(
            "fairness kept on every window",
            bool(found.windows) and not found.broken,
            f"{len(found.broken)} of the bounds are passed"
            if found.broken
            else "nothing is judged yet",
        ),
        Condition(
            f"{SHADOW.days} days in shadow, judged",
            is_over,
            f"day {int(days) + 1} of {SHADOW.days}"
            if is_in_shadow(order)
            else "it is not in shadow",
        ),
        Condition("learned orders may decide", cluster.learned_may_decide, "the switch is off"),
    ]


def is_in_shadow(order: LearnedOrder) -> bool:
    return order.state == LearnedState.SHADOW
