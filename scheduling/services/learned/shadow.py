"""What the version in shadow would have decided, beside what was decided: cycles planned again from what is
kept of them, apart from the cycles themselves.

Only cycles that acted are kept, and none that is too large; nothing here reads the cluster.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from scheduling.engine import Action, plan
from scheduling.engine import model as m
from scheduling.engine.document.reader import parse
from scheduling.models import Cluster, CycleRecord, LearnedDifference, LearnedOrder, LearnedState
from scheduling.services.cycle.record.records import unpacked

FIRST = 50
"""Cycles before it came into shadow that are planned again, so that there is something to read at once."""
MOST_A_PASS = 40
BUDGET_S = 5.0
"""CPU seconds of one pass."""
MOST_KEPT = 300
"""Differences of a version."""
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
    decided: list[m.Decision] = []
    found: list[tuple[Json, Json | None]] = []
    if document is not None:
        snapshot = parse(document)
        decided, found = differences(snapshot, order.weights)
    mine = LearnedOrder.objects.filter(pk=order.pk, seen_cycle__lt=cycle.number)
    if not mine.update(
        seen_cycle=cycle.number,
        looked_at=F("looked_at") + len(decided),
        differed=F("differed") + len(found),
    ):
        return
    LearnedDifference.objects.bulk_create(
        LearnedDifference(
            order=order, cycle=cycle, number=cycle.number, at=cycle.at, decided=was, would=would
        )
        for was, would in found
    )


def differences(
    snapshot: m.Snapshot, weights: dict[str, float]
) -> tuple[list[m.Decision], list[tuple[Json, Json | None]]]:
    """The starts of a plan of ``snapshot``, and those that ``weights`` would not have made, each with what
    would have started in its place: of the same GPU class, in the order of the plan."""
    weighed = replace(snapshot, policy=replace(snapshot.policy, order_weights=weights))
    decided, would = _starts(snapshot), _starts(weighed)
    names, others = {one.workload for one in decided}, {one.workload for one in would}
    instead = [one for one in would if one.workload not in names]
    works = {work.name: work for work in snapshot.workloads}
    found: list[tuple[Json, Json | None]] = []
    for one in decided:
        if one.workload in others:
            continue
        other = next((each for each in instead if each.gpu_class == one.gpu_class), None)
        if other is not None:
            instead.remove(other)
        told = _told(works[other.workload], other, snapshot.now) if other else None
        found.append((_told(works[one.workload], one, snapshot.now), told))
    return decided, found


def _starts(snapshot: m.Snapshot) -> list[m.Decision]:
    return [one for one in plan(snapshot).decisions if one.action is Action.ADMIT]


def _told(work: m.Workload, start: m.Decision, now: datetime) -> Json:
    """Seconds; GPUs as a number of them."""
    expected = work.rank_s if work.rank_s is not None else None
    if expected is None and work.predicted is not None:
        expected = work.predicted.p50
    return {
        "name": work.name,
        "queue": work.queue,
        "user": work.user,
        "gpus": work.gpus * start.members / m.MILLI,
        "gpu_class": start.gpu_class,
        "expected_s": None if expected is None else round(expected),
        "waited_s": round((now - work.submitted).total_seconds()),
    }


def _forget(order: LearnedOrder) -> None:
    rows = LearnedDifference.objects.filter(order=order).order_by("-number", "-id")
    last = rows.values_list("pk", flat=True)[MOST_KEPT - 1 : MOST_KEPT].first()
    if last is not None:
        LearnedDifference.objects.filter(order=order, pk__lt=last).delete()
