"""What changes would do, before they are made: the live snapshot planned as it is and with them, in one
document that can be kept. GPUs are numbers.

Plans alone: no futures are drawn and no past is lived again, so that an answer comes while somebody looks.

Quotas that a change lowers, as the engine spares them: for the grace nobody leaves for what was taken.
"""

from __future__ import annotations

import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from scheduling.engine import model as m
from scheduling.models import Cluster
from scheduling.services.queues.entitlements import gives_less
from scheduling.services.snapshot.live import live_or_refused
from scheduling.services.studies.whatif.changes import read
from scheduling.services.studies.whatif.now import AtOnce, ComparedWork, beside, plan_of
from scheduling.services.words.sentences import sealed_of

Quotas = Mapping[str, m.Quota]


def spared(before: m.Snapshot, after: m.Snapshot, until: datetime) -> m.Snapshot | None:
    """``after`` as it is planned until ``until``, the end of the grace; None where nothing was lowered."""
    was = {queue.name: queue.quotas for queue in before.queues}
    queues = tuple(_spared(queue, was.get(queue.name, {}), until) for queue in after.queues)
    return None if queues == after.queues else replace(after, queues=queues)


def _spared(queue: m.Queue, was: Quotas, until: datetime) -> m.Queue:
    lowered = {
        name: replace(quota, lowered=_former(was[name], until))
        for name, quota in queue.quotas.items()
        if name in was and quota.lowered is None and gives_less(quota, was[name])
    }
    return replace(queue, quotas={**queue.quotas, **lowered}) if lowered else queue


def _former(was: m.Quota, until: datetime) -> m.LoweredQuota:
    return m.LoweredQuota(until, was.nominal, was.borrowing_limit, was.lending_limit, was.weight)


Json = dict[str, Any]
Document = Sequence[Mapping[str, Any]]
STARTS, LEAVES, WAITS = "starts", "leaves", "waits"


def preview(
    cluster: Cluster,
    document: Document,
    *,
    lesser: Mapping[float, Document] | None = None,
    spares: bool = True,
) -> Json:
    """Work that starts, leaves and waits longer, and every share of the classes it is about, before and
    after.

    What comes only once the cluster's grace for lowered quotas is over is ``late``; ``spares`` is false of
    what has no grace. ``lesser`` are smaller forms of the same, by their amount: what each would do, in
    figures. Raises ServiceError ``cluster_unreachable``, ChangeError at a name that is gone, ``cannot_plan``.
    """
    began = time.monotonic()
    snapshot = live_or_refused(cluster, "Try again in a moment, or decide without it and say why.")
    before = plan_of(snapshot)
    changed = read(document).applied(snapshot)
    planned = beside(snapshot, before, changed)
    until = snapshot.now + timedelta(seconds=cluster.lowering_grace_s)
    first = spared(snapshot, changed, until) if spares and until > snapshot.now else None
    moved = _in_turn(planned, beside(snapshot, before, first) if first else planned)
    classes = {str(one.get("gpu_class")) for one in document if one.get("gpu_class")}
    gpus = {work.name: work.gpus * work.members.max for work in snapshot.workloads}
    answer: Json = {
        "at": snapshot.now.isoformat(),
        "lines": [_line(line, kind, gpus) | {"late": late} for line, kind, late in moved],
        "shares": _shares(planned, classes),
        "lesser": [
            _lesser(amount, beside(snapshot, before, read(one).applied(snapshot)), classes)
            for amount, one in sorted((lesser or {}).items())
        ],
    }
    answer["took_s"] = round(time.monotonic() - began, 2)
    return answer


def _in_turn(planned: AtOnce, first: AtOnce) -> list[tuple[ComparedWork, str, bool]]:
    """What ``first`` moves, at once, and what ``planned`` moves beside that, once the grace is over."""
    now = _moved(first)
    known = {(line.workload, kind) for line, kind in now}
    late = [(line, kind) for line, kind in _moved(planned) if (line.workload, kind) not in known]
    return [(*one, False) for one in now] + [(*one, True) for one in late]


def _moved(planned: AtOnce) -> list[tuple[ComparedWork, str]]:
    """What is otherwise, and how. For whom others leave starts as soon as they have left."""
    heirs = {line.after.for_workload for line in planned.leaves if line.after} - {None}
    pairs = ((line, _kind(line, heirs)) for line in planned.lines)
    return [(line, kind) for line, kind in pairs if kind]


def _kind(line: ComparedWork, heirs: Container[str | None]) -> str:
    if line.starts or line.workload in heirs:
        return STARTS
    if line.leaves:
        return LEAVES
    return WAITS if line.stays_out else ""


def _line(line: ComparedWork, kind: str, gpus: Mapping[str, int]) -> Json:
    decision = line.after or line.before
    assert decision is not None  # noqa: S101 - a line is of one plan or the other
    return {
        "kind": kind,
        "workload": line.workload,
        "queue": line.queue,
        "gpus": gpus.get(line.workload, 0) / m.MILLI,
        "lost_gpu_hours": round(decision.lost_gpu_s / 3600, 3) if kind == LEAVES else 0,
        "reason": decision.reason.value,
        "sentence": decision.sentence,
        "sealed": sealed_of(decision),
        "numbers": dict(decision.numbers),
    }


def _shares(planned: AtOnce, classes: set[str]) -> list[Json]:
    return [
        {
            "queue": queue,
            "gpu_class": gpu_class,
            "fair_share": [_of(before, "fair_share"), _of(after, "fair_share")],
            "potential": [_of(before, "potential"), _of(after, "potential")],
            "allocated": _of(before, "allocated"),
        }
        for queue, by_class in planned.shares.items()
        for gpu_class, (before, after) in by_class.items()
        if gpu_class in classes or not classes
    ]


def _of(share: m.Share | None, name: str) -> float:
    return 0.0 if share is None else round(getattr(share, name) / m.MILLI, 3)


def _lesser(amount: float, planned: AtOnce, classes: set[str]) -> Json:
    kinds = [kind for _, kind in _moved(planned)]
    return {
        "gpus": amount,
        "starts": kinds.count(STARTS),
        "leaves": kinds.count(LEAVES),
        "lost_gpu_hours": round(planned.lost_gpu_s / 3600, 3),
        "fair_share": {row["queue"]: row["fair_share"][1] for row in _shares(planned, classes)},
    }
