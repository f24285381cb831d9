"""A life that is lived twice, on an embedded cluster and in the simulator: who comes when, what became of it.

Definitions (times of the cluster's clock). The *set* of a workload and a moment is all who were evicted for
it by one plan; it is *gone* when the last of them has given its GPUs back. Evictions of a set are *in vain*
if the workload has not started ``SOON_S`` after that, and neither ended nor was cancelled; those of which the
life ends before are left out. A victim *overtakes* if it starts again first, on at least as many GPUs as are
asked for. A claim is *broken* if it ends by anything but a start, an end, or a cause that a plan may let it
lapse for. A *domino* is an eviction whose victim has others evicted for it ``NEXT_S`` after it left at the
latest, by whatever rule: it may be owed what it takes. It is *needless* if the same plan, made with that
victim protected, makes room by others: where nobody else makes room, what the victim is owed next follows
from what it had to give. An eviction is *past the limit* if its victim was evicted ``LIMIT`` times in the
day before, but for what nominal owes. A reclaim leaves a queue *below nominal* if it keeps less than that.
Where its share is less than nominal, as nominal is oversubscribed, the share is all it has, which GPUs and
gangs, being whole, do not fill evenly: there a reclaim leaves it *below its share* if it keeps less than
that. A reservation is *given up* if a later plan keeps no nodes for its workload and tells it of neither a
start nor room that is about to come free; it is *lost* if that workload has neither started nor nodes kept
for it again ``MOVED_S`` after; it is *broken* if shares hold the workload still, and nobody who
came before it keeps nodes.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

SOON_S, NEXT_S, MOVED_S = 300.0, 600.0, 1800.0
LIMIT = 3
DAY_S = 86_400.0
RECLAIMED = "reclaimed"
OWED = ("owed_nominal", "lent_nominal")
"""Rules of what nominal owes: it comes back however often the victim was evicted."""
HOUR_S = 3600.0
QUEUES = {"research": 16, "products": 8, "platform": 8}
"""Nominal GPUs of each; together all there are."""
NODES, GPUS = 4, 8
CYCLE_S, DELAY_S, CAP = 120, 1200, 2.0
PRIORITIES = {"low": 30, "normal": 50, "urgent": 90}


class Work(NamedTuple):
    """One that comes ``at_s``; ``grace_s`` is what its pods take to leave."""

    name: str
    at_s: int
    queue: str
    priority: str
    gpus: int
    run_s: int
    grace_s: int


class EvictionForOther(NamedTuple):
    """One eviction for somebody. ``keeps``, and ``nominal`` or the share where that is less (``is_share``),
    are GPUs of the queue that gave, where it was a reclaim; None where it was none."""

    at_s: float
    victim: str
    winner: str
    gpus: float
    keeps: float | None = None
    nominal: float | None = None
    rule: str = ""
    is_share: bool = False


@dataclass
class LifeCourse:
    """What became of the work: seconds from the beginning."""

    end_s: float = 0.0
    taken: list[EvictionForOther] = field(default_factory=list)
    starts: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    gone: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    ended: dict[str, float] = field(default_factory=dict)
    lapsed: list[str] = field(default_factory=list)
    """Causes of the claims that did."""
    reservations: int = 0
    given_up: int = 0
    lost: int = 0
    broken: int = 0


def drawn(hours: float, seed: int) -> list[Work]:
    """Work for somewhat more GPUs than there are, in order."""
    dice = random.Random(seed)  # noqa: S311 - a load, no secret
    found: list[Work] = []
    at = 0.0
    while (at := at + dice.expovariate(1 / 420.0)) < hours * HOUR_S:
        gpus = dice.choices((1, 2, 4, 8), (30, 25, 25, 20))[0]
        found.append(
            Work(
                name=f"w{len(found)}",
                at_s=round(at),
                queue=dice.choices(list(QUEUES), (50, 25, 25))[0],
                priority=dice.choices(list(PRIORITIES), (30, 55, 15))[0],
                gpus=gpus,
                run_s=round(min(dice.lognormvariate(8.1, 0.9), 4 * HOUR_S)),
                grace_s=dice.randint(60, 360),
            )
        )
    return found


def figures(sizes: Mapping[str, float], course: LifeCourse) -> dict[str, float]:
    """Of the evictions whose end the life shows; ``asked`` are GPUs by workload."""
    sets: dict[tuple[str, float], list[EvictionForOther]] = defaultdict(list)
    for one in course.taken:
        sets[one.winner, one.at_s].append(one)
    fates = [(some, _fate(course, some)) for some in sets.values()]
    seen = [some for some, fate in fates if fate is not None]
    count = sum(map(len, seen))
    vain = sum(len(some) for some, fate in fates if fate)
    overtaken = sum(_overtakes(course, one, sizes) for some in seen for one in some)
    reclaims = [one for one in course.taken if one.keeps is not None and one.nominal is not None]
    below = [one for one in reclaims if (one.keeps or 0) < (one.nominal or 0) - 1e-3]
    of_shares = sum(one.is_share for one in below)
    return {
        "evictions": float(count),
        "in_vain_pct": pct(vain, count),
        "overtaken_pct": pct(overtaken, count),
        "claims_broken_pct": pct(course.lapsed.count("given_up"), len(sets)),
        "claims_lapsed": float(len(course.lapsed)),
        "taken_per_asked_max": _most_taken(course, sizes),
        "below_nominal_pct": pct(len(below) - of_shares, len(reclaims)),
        "below_share_pct": pct(of_shares, len(reclaims)),
        "domino_pct": pct(len(dominoes(course)), len(course.taken)),
        "past_limit_pct": pct(_past_limit(course), len(course.taken)),
        "ended": float(len(course.ended)),
    }


def _fate(course: LifeCourse, some: list[EvictionForOther]) -> bool | None:
    """Whether those of a set left in vain; None where the life ended before that showed."""
    winner, at_s = some[0].winner, some[0].at_s
    start, ended = _next(course.starts[winner], at_s), course.ended.get(winner)
    gone = [_next(course.gone[one.victim], at_s) for one in some]
    limit = max(course.end_s if at is None else at for at in gone) + SOON_S
    if start is not None and start <= limit:
        return False
    if start is None and ended is not None and ended <= limit:
        return False
    return None if limit > course.end_s else True


def _overtakes(course: LifeCourse, one: EvictionForOther, sizes: Mapping[str, float]) -> bool:
    start = _next(course.starts[one.winner], one.at_s)
    again = _next(course.starts[one.victim], one.at_s)
    is_first = again is not None and (start is None or again < start)
    return is_first and one.gpus >= sizes[one.winner]


def dominoes(course: LifeCourse) -> list[EvictionForOther]:
    when: dict[str, list[float]] = defaultdict(list)
    for one in course.taken:
        when[one.winner].append(one.at_s)
    found = []
    for one in course.taken:
        gone = _next(course.gone[one.victim], one.at_s)
        until = (one.at_s if gone is None else gone) + NEXT_S
        if any(one.at_s < at <= until for at in when.get(one.victim, ())):
            found.append(one)
    return found


def _past_limit(course: LifeCourse) -> int:
    times: dict[str, list[float]] = defaultdict(list)
    count = 0
    for one in course.taken:
        before = times[one.victim]
        often = sum(at > one.at_s - DAY_S for at in before) >= LIMIT
        count += often and one.rule not in OWED
        before.append(one.at_s)
    return count


def _next(times: list[float], since_s: float) -> float | None:
    return next((at for at in times if at >= since_s), None)


def pct(part: int, whole: int) -> float:
    return round(100 * part / whole, 2) if whole else 0.0


def _most_taken(course: LifeCourse, sizes: Mapping[str, float]) -> float:
    """GPUs evicted for one workload up to a start of it, over those it asks for."""
    sums: dict[tuple[str, float | None], float] = defaultdict(float)
    for one in course.taken:
        sums[one.winner, _next(course.starts[one.winner], one.at_s)] += one.gpus
    return round(max((gpus / sizes[name] for (name, _), gpus in sums.items()), default=0.0), 2)


def seconds(at: datetime, origin: datetime) -> float:
    return (at - origin).total_seconds()


def taken(
    at_s: float,
    victim: str,
    winner: str,
    gpus: float,
    reason: str,
    numbers: Mapping[str, Any],
    rule: str,
) -> EvictionForOther:
    """An eviction by ``rule`` of the engine, with the figures of its decision."""
    if reason != RECLAIMED or numbers.get("nominal") is None:
        return EvictionForOther(at_s, victim, winner, gpus, rule=str(rule))
    nominal, share = numbers["nominal"], numbers.get("fair_share", numbers["nominal"])
    return EvictionForOther(
        at_s, victim, winner, gpus, numbers.get("keeps"), min(nominal, share), str(rule),
        is_share=share < nominal,
    )  # fmt: skip
