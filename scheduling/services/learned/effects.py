"""What it would have led to if the version in shadow had decided, one cycle at a time.

A kept cycle in which the version differs is lived on twice from its snapshot, with the run times and the
arrivals that really came: once as it was decided, once with the version's plan of that one cycle; the policy
of the snapshot decides all that follows. A life is chaotic: a start a second later meets other work, so both
are lived again with run times that differ by little, and the range of what comes is told beside the effect.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
from django.db.models import Max

from scheduling.cluster.adapters import key_of
from scheduling.engine import model as m
from scheduling.engine import plan
from scheduling.engine.document.reader import parse
from scheduling.models import (
    Cluster,
    CycleRecord,
    LearnedDifference,
    LearnedEffect,
    LearnedOrder,
    LearnedState,
    Workload,
)
from scheduling.services.cycle.record.records import unpacked
from scheduling.services.learned.orders import weighed
from scheduling.services.ledger.past import read_between
from scheduling.services.merit.standings import RunTimes
from scheduling.simulation.ahead.decided import Aftermath, Known, UnknownRunError, live_after
from scheduling.simulation.run.jobs import Submission
from scheduling.simulation.run.options import UnsettledError

LEAST, MOST = timedelta(hours=1), timedelta(days=1)
"""So long after a cycle it is lived on for the first time, and so far at most."""
GROWS = 2
"""One that did not reach ``MOST`` is lived anew once so many times as long has passed."""
MOST_A_PASS = 8
"""Cycles."""
BUDGET_S = 10.0
"""CPU seconds of one pass; the cycle in which they end is finished."""
REPEATS, JITTER = 8, 0.01
"""Pairs of lives beside the one as it came, each run time by up to so much longer or shorter."""
NOT_KEPT = "Its snapshot is kept no more."
UNSETTLED = "The engine finds no rest in what follows."


@dataclass(frozen=True, slots=True)
class Effect:
    """The version less what was decided: seconds waited by all, GPU-seconds lost by evictions. ``least_s``
    and ``most_s`` are of the repeats and the life as it came."""

    wait_s: float
    least_s: float
    most_s: float
    lost_gpu_s: float


def replay(cluster: Cluster) -> int:
    """Live on the cycles that are due, the newest first, within the bounds of a pass; how many."""
    order = LearnedOrder.objects.filter(cluster=cluster, state=LearnedState.SHADOW).first()
    if order is None:
        return 0
    began_s, done = time.thread_time(), 0
    for number, at in list(due(order, cluster.now())):
        if done == MOST_A_PASS or time.thread_time() - began_s >= BUDGET_S:
            break
        _keep(order, cluster, number, at)
        done += 1
    return done


def due(order: LearnedOrder, now: datetime) -> Iterator[tuple[int, datetime]]:
    """(number, moment) of cycles that differ and are not lived on, or not far enough, the newest first."""
    rows = LearnedDifference.objects.filter(order=order, at__lte=now - LEAST).order_by()
    cycles = rows.values_list("number").annotate(at=Max("at")).order_by("-number")
    lived = dict(LearnedEffect.objects.filter(order=order).values_list("number", "until"))
    for number, at in cycles:
        if number not in lived or _is_due_again(lived[number] - at, now - at):
            yield number, at


def _is_due_again(lived: timedelta, passed: timedelta) -> bool:
    return lived < MOST and min(passed, MOST) >= min(GROWS * lived, MOST)


def _keep(order: LearnedOrder, cluster: Cluster, number: int, at: datetime) -> None:
    until = min(cluster.now(), at + MOST)
    record = CycleRecord.objects.filter(cycle__cluster=cluster, cycle__number=number).first()
    document = unpacked(record) if record is not None else None
    fields: dict[str, object] = {"at": at, "until": until, "workloads": 0, "why_not": ""}
    found: Effect | None = None
    if document is None:
        # Nothing brings it back: it is not looked at again.
        fields |= {"why_not": NOT_KEPT, "until": at + MOST}
    else:
        snapshot = parse(document)
        known = known_of(cluster, snapshot, until)
        fields["workloads"] = len(known.rests) + len(known.coming)
        try:
            found = effect_of(snapshot, order, known, until)
        except UnknownRunError as error:
            fields["why_not"] = f"{error.args[0]} never ran: nobody knows for how long."[:200]
        except UnsettledError:
            fields["why_not"] = UNSETTLED
    figures = ("wait_s", "least_s", "most_s", "lost_gpu_s")
    fields |= {name: getattr(found, name) if found else None for name in figures}
    LearnedEffect.objects.update_or_create(order=order, number=number, defaults=fields)


def known_of(cluster: Cluster, snapshot: m.Snapshot, until: datetime) -> Known:
    """What the ledger knows by now of who was open at the snapshot, and of who came by ``until``."""
    at, now = snapshot.now, cluster.now()
    rows = read_between(cluster, at, replace(snapshot, now=max(now, until)))
    open_then = {work.name for work in snapshot.workloads}
    rests: dict[str, float] = {}
    steps: dict[str, int] = {}
    coming: list[tuple[Workload, Submission]] = []
    for row, job in rows:
        name = key_of(row.kind, row.namespace, row.name)
        if at < row.submitted_at <= until:
            coming.append((row, job))
        elif row.submitted_at <= at and name in open_then:
            rests[name], steps[name] = float(job.duration_s), job.checkpoint_s or 0
    return Known(rests, _placed(cluster, coming, at), steps)


def _placed(
    cluster: Cluster, coming: list[tuple[Workload, Submission]], at: datetime
) -> list[Submission]:
    """With what the engine expects of a run that begins, as it was known at ``at``, and with when its own
    quota let it begin."""
    times = RunTimes.of(cluster, at)
    expected = times.expected_s([row for row, _ in coming], [0.0] * len(coming))
    return [
        replace(
            job,
            workload=replace(job.workload, rank_s=rank_s, virtual_start=row.virtual_start_at),
        )
        for (row, job), rank_s in zip(coming, expected, strict=True)
    ]


def effect_of(snapshot: m.Snapshot, order: LearnedOrder, known: Known, until: datetime) -> Effect:
    """Raises UnknownRunError; UnsettledError."""
    decided = plan(snapshot)
    would = plan(weighed(snapshot, order.weights, order.victim_weights))

    def pair(told: Known) -> tuple[Aftermath, Aftermath]:
        return live_after(snapshot, decided, told, until), live_after(snapshot, would, told, until)

    was, other = pair(known)
    came_s = other.wait_s - was.wait_s
    waits = [came_s]
    for seed in range(1, REPEATS + 1):
        former, latter = pair(_jittered(known, seed))
        waits.append(latter.wait_s - former.wait_s)
    return Effect(came_s, min(waits), max(waits), other.lost_gpu_s - was.lost_gpu_s)


def _jittered(known: Known, seed: int) -> Known:
    dice = np.random.default_rng(seed)

    def about(seconds: float) -> float:
        return max(1.0, seconds * float(dice.uniform(1 - JITTER, 1 + JITTER)))

    rests: Mapping[str, float] = {name: about(known.rests[name]) for name in sorted(known.rests)}
    coming = [replace(one, duration_s=round(about(one.duration_s))) for one in known.coming]
    return replace(known, rests=rests, coming=coming)


@dataclass(frozen=True, slots=True)
class Sums:
    """Over the differing cycles of a version that were replayed."""

    cycles: int
    replayed: int
    better: int
    worse: int
    noise: int
    """Of the replayed: those whose range spans no difference."""
    wait_s: float
    lost_gpu_s: float
    starts: int
    evictions: int
    """Differences that are kept, by kind."""


def sums(order: LearnedOrder) -> Sums:
    """Of what is kept of ``order``."""
    kinds = list(LearnedDifference.objects.filter(order=order).values_list("number", "kind"))
    lived = list(LearnedEffect.objects.filter(order=order).exclude(wait_s=None))
    said = [verdict(one) for one in lived]
    return Sums(
        cycles=len({number for number, _ in kinds}),
        replayed=len(lived),
        better=said.count("better"),
        worse=said.count("worse"),
        noise=said.count("noise"),
        wait_s=sum(one.wait_s or 0.0 for one in lived),
        lost_gpu_s=sum(one.lost_gpu_s or 0.0 for one in lived),
        starts=sum(kind == "start" for _, kind in kinds),
        evictions=sum(kind == "evict" for _, kind in kinds),
    )


def verdict(one: LearnedEffect) -> str:
    """ "better" or "worse" where every repeat says so, "noise" else; "" of one that is not replayed."""
    if one.least_s is None or one.most_s is None:
        return ""
    if one.most_s < 0:
        return "better"
    return "worse" if one.least_s > 0 else "noise"
