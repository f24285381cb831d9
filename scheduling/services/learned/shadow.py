"""What the version in shadow would have decided, beside what was decided: cycles planned again from what is
kept of them, apart from the cycles themselves.

Only cycles that acted are kept, and none that is too large; nothing here reads the cluster.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from scheduling.engine import Action, plan
from scheduling.engine import model as m
from scheduling.engine.document.reader import parse
from scheduling.models import (
    Cluster,
    CycleRecord,
    DifferenceKind,
    LearnedDifference,
    LearnedEffect,
    LearnedOrder,
    LearnedState,
)
from scheduling.services.cycle.record.records import unpacked
from scheduling.services.learned.orders import weighed

FIRST = 50
"""Cycles before it came into shadow that are planned again, so that there is something to read at once."""
MOST_A_PASS = 40
BUDGET_S = 5.0
"""CPU seconds of one pass."""
MOST_KEPT = 300
"""Differences of a version."""
KINDS: Mapping[Action, DifferenceKind] = {
    Action.ADMIT: DifferenceKind.START,
    Action.EVICT: DifferenceKind.EVICT,
}
Json = dict[str, Any]


def watch(cluster: Cluster) -> int:
    """Plan again what the version in shadow has not seen; how many cycles."""
    order = LearnedOrder.objects.filter(cluster=cluster, state=LearnedState.SHADOW).first()
    if order is None:
        return 0
    began_s, seen = time.thread_time(), 0
    for record in _unseen(order):
        _look(order, record)
        seen += 1
        if time.thread_time() - began_s >= BUDGET_S:
            break
    _forget(order)
    return seen


def _unseen(order: LearnedOrder) -> Sequence[CycleRecord]:
    rows = CycleRecord.objects.filter(cycle__cluster=order.cluster, snapshot__isnull=False)
    rows = rows.select_related("cycle")
    if not order.seen_cycle:
        return list(rows.order_by("-cycle__number")[:FIRST])[::-1]
    return list(
        rows.filter(cycle__number__gt=order.seen_cycle).order_by("cycle__number")[:MOST_A_PASS]
    )


@transaction.atomic
def _look(order: LearnedOrder, record: CycleRecord) -> None:
    """Claimed by the number of the cycle, so that two passes count it once."""
    cycle = record.cycle
    document = unpacked(record)
    count, found = 0, list[Differing]()
    if document is not None:
        count, found = differences(parse(document), order.weights, order.victim_weights)
    mine = LearnedOrder.objects.filter(pk=order.pk, seen_cycle__lt=cycle.number)
    if not mine.update(
        seen_cycle=cycle.number,
        looked_at=F("looked_at") + count,
        differed=F("differed") + len(found),
    ):
        return
    LearnedDifference.objects.bulk_create(
        LearnedDifference(
            order=order,
            cycle=cycle,
            number=cycle.number,
            at=cycle.at,
            kind=one.kind,
            decided=one.decided,
            would=one.would,
        )
        for one in found
    )


@dataclass(frozen=True, slots=True)
class Differing:
    """One decision that the weights would not have made; ``would`` is None where nobody in its place."""

    kind: DifferenceKind
    decided: Json
    would: Json | None


def differences(
    snapshot: m.Snapshot,
    weights: Mapping[str, float],
    victim_weights: Mapping[str, float] | None = None,
) -> tuple[int, list[Differing]]:
    """How many starts and evictions a plan of ``snapshot`` has, and those that the weights would not have
    made, each with what they would have made in its place: of the same kind and GPU class, in the order of
    the plan."""
    decided = plan(snapshot).decisions
    would = plan(weighed(snapshot, weights, victim_weights or {})).decisions
    works = {work.name: work for work in snapshot.workloads}
    count, found = 0, []
    for action, kind in KINDS.items():
        mine, others = ([one for one in each if one.action is action] for each in (decided, would))
        count += len(mine)
        for was, other in _apart(mine, others):
            told = _told(works[other.workload], other, snapshot.now) if other else None
            found.append(Differing(kind, _told(works[was.workload], was, snapshot.now), told))
    return count, found


def _apart(
    decided: Sequence[m.Decision], would: Sequence[m.Decision]
) -> list[tuple[m.Decision, m.Decision | None]]:
    names, others = {one.workload for one in decided}, {one.workload for one in would}
    instead = [one for one in would if one.workload not in names]
    found: list[tuple[m.Decision, m.Decision | None]] = []
    for one in decided:
        if one.workload in others:
            continue
        other = next((each for each in instead if each.gpu_class == one.gpu_class), None)
        if other is not None:
            instead.remove(other)
        found.append((one, other))
    return found


def _told(work: m.Workload, act: m.Decision, now: datetime) -> Json:
    """Seconds, GPU-seconds; GPUs as a number of them."""
    expected = work.rank_s if work.rank_s is not None else None
    if expected is None and work.predicted is not None:
        expected = work.predicted.p50
    return {
        "name": work.name,
        "queue": work.queue,
        "user": work.user,
        "gpus": work.gpus * (act.members or sum(work.placement.values())) / m.MILLI,
        "gpu_class": act.gpu_class or work.gpu_class,
        "expected_s": None if expected is None else round(expected),
        "waited_s": round((now - work.submitted).total_seconds()),
        "lost_gpu_s": round(act.lost_gpu_s, 1),
    }


def _forget(order: LearnedOrder) -> None:
    rows = LearnedDifference.objects.filter(order=order).order_by("-number", "-id")
    last = rows.values_list("pk", flat=True)[MOST_KEPT - 1 : MOST_KEPT].first()
    if last is not None:
        LearnedDifference.objects.filter(order=order, pk__lt=last).delete()
    kept = LearnedDifference.objects.filter(order=order).values("number")
    LearnedEffect.objects.filter(order=order).exclude(number__in=kept).delete()
