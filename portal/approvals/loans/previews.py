"""What a loan, its recall or an edit beside it would do to the guarantees that the engine reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from portal.approvals.loans.models import QuotaLoan
from portal.approvals.plan_faults import or_fault
from scheduling.models import MILLI, Cluster, GpuClass, Queue, Quota
from scheduling.services.queues.lending import guaranteed, moved_at, parts, places_of
from scheduling.services.studies.whatif.preview import preview

Json = dict[str, Any]
Figures = tuple[int, int | None]
"""Nominal and borrowing limit, milli-GPU; a limit of None is none."""


def planned(loan: QuotaLoan, gpus: int) -> Json:
    """What it would do if so much were lent from now on (negative: came back), to be kept; where that can't
    be planned, the sentence that says why."""
    changes = _document(loan, gpus)
    return or_fault(lambda: {**preview(loan.cluster, changes, spares=False), "changes": changes})


def _document(loan: QuotaLoan, gpus: int) -> list[Json]:
    shifts = dict(parts(loan.lender, loan.borrower, places_of(loan.cluster_id), gpus))
    queues = Queue.objects.in_bulk(shifts)
    now = guarantees(loan.cluster, loan.gpu_class, shifts)
    return [
        change_of(queues[pk].name, loan.gpu_class.name, guaranteed(*now[pk], by))
        for pk, by in shifts.items()
    ]


def guarantees(cluster: Cluster, gpu_class: GpuClass, queues: Iterable[int]) -> dict[int, Figures]:
    """Queue id -> what it is guaranteed of the class now, with what is lent."""
    at, wanted = cluster.now(), list(queues)
    rows = Quota.objects.filter(queue__in=wanted, gpu_class=gpu_class).in_force(at)
    granted = {row.queue_id: (row.nominal_gpus, row.borrowing_limit_gpus) for row in rows}
    moved = moved_at(cluster, at)
    return {
        pk: guaranteed(*granted.get(pk, (0, None)), moved.get((pk, gpu_class.pk), 0))
        for pk in wanted
    }


def change_of(queue: str, gpu_class: str, figures: Figures) -> Json:
    nominal, limit = figures
    return {
        "kind": "quota",
        "queue": queue,
        "gpu_class": gpu_class,
        "nominal_gpus": nominal / MILLI,
        "borrowing_limit_gpus": None if limit is None else limit / MILLI,
    }


def with_loans(cluster: Cluster, changes: Sequence[Json]) -> list[Json]:
    """``changes`` of quotas as they would be granted, as changes of what the queues are guaranteed."""
    moved = moved_at(cluster, cluster.now())
    if not moved:
        return list(changes)
    queues = dict(Queue.objects.filter(cluster=cluster).values_list("name", "pk"))
    classes = dict(cluster.gpu_classes.values_list("name", "pk"))
    rows = Quota.objects.filter(queue__cluster=cluster).in_force(cluster.now())
    granted = {(r.queue_id, r.gpu_class_id): (r.nominal_gpus, r.borrowing_limit_gpus) for r in rows}
    found = []
    for change in changes:
        key = (queues.get(change["queue"], 0), classes.get(change.get("gpu_class", ""), 0))
        by = moved.get(key, 0)
        found.append(_moved(change, granted.get(key, (0, None)), by) if by else change)
    return found


def _moved(change: Json, granted: Figures, by: int) -> Json:
    nominal = _milli(change, "nominal_gpus", granted[0])
    limit = _milli(change, "borrowing_limit_gpus", granted[1])
    after = guaranteed(nominal or 0, limit, by)
    return change | change_of(change["queue"], change["gpu_class"], after)


def _milli(change: Mapping[str, Any], name: str, granted: int | None) -> int | None:
    if name not in change:
        return granted
    return None if change[name] is None else round(change[name] * MILLI)
