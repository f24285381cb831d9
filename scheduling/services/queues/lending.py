"""What queues lend each other of their nominal quota, and what that makes of each queue's guarantee.

A loan moves the guarantee and nothing else: how much a queue may hold at most stays as it is. Between
departments every queue from the lender up to the nearest queue above both gives, and every one down to the
borrower gets, so that all sums stay as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from django.db.models import QuerySet

from scheduling.models import Cluster, Loan, Queue, Quota

Key = tuple[int, int]
"""(queue id, class id)"""
Places = Mapping[str, int]
"""Path of a queue -> its id."""


def in_force(cluster: Cluster, at: datetime) -> QuerySet[Loan]:
    running = Loan.objects.filter(cluster=cluster, starts_at__lte=at, ends_at__gt=at)
    return running.select_related("lender", "borrower")


def moved(loans: Iterable[Loan], nominal: Mapping[Key, int], places: Places) -> dict[Key, int]:
    """How much more (negative: less) each queue is guaranteed of a class by ``loans``, milli-GPU.

    ``nominal`` is as granted. Where a lender, or a queue above it that gives with it, was granted less since,
    it lends what there is, the oldest loans first.
    """
    found: dict[Key, int] = {}
    lent: dict[Key, int] = {}
    for loan in sorted(loans, key=lambda one: (one.starts_at, one.pk)):
        kind, own = loan.gpu_class_id, (loan.lender_id, loan.gpu_class_id)
        shifts = parts(loan.lender, loan.borrower, places)
        left = [
            nominal.get((pk, kind), 0) + found.get((pk, kind), 0) for pk, by in shifts if by < 0
        ]
        gpus = max(0, min(loan.gpus, nominal.get(own, 0) - lent.get(own, 0), *left))
        lent[own] = lent.get(own, 0) + gpus
        for pk, by in shifts:
            found[pk, kind] = found.get((pk, kind), 0) + by * gpus
    return {key: by for key, by in found.items() if by}


def places_of(cluster_id: int) -> Places:
    """Of the queues of a cluster, the root left out. One query."""
    rows = Queue.objects.filter(cluster=cluster_id, parent__isnull=False)
    return dict(rows.values_list("path", "pk"))


def parts(lender: Queue, borrower: Queue, places: Places, gpus: int = 1) -> list[tuple[int, int]]:
    """(queue id, by how much its guarantee changes) of a loan of so much."""
    gives, gets = _line(lender.path), _line(borrower.path)
    meet = set(gives) & set(gets)
    changes = [(path, -gpus) for path in gives] + [(path, gpus) for path in gets]
    return [(places[path], by) for path, by in changes if path not in meet]


def _line(path: str) -> list[str]:
    """Paths of a queue and those above it, the root left out."""
    names = path.split("/")
    return ["/".join(names[:i]) for i in range(len(names), 0, -1)]


def guaranteed(nominal: int, borrowing_limit: int | None, by: int) -> tuple[int, int | None]:
    """Nominal and borrowing limit with ``by`` more of nominal: what the queue may hold at most stays."""
    after = max(0, nominal + by)
    if borrowing_limit is None:
        return after, None
    return after, max(0, nominal + borrowing_limit - after)


def nominal_of(quotas: Iterable[Quota]) -> dict[Key, int]:
    return {(row.queue_id, row.gpu_class_id): row.nominal_gpus for row in quotas}


def moved_at(cluster: Cluster, at: datetime) -> dict[Key, int]:
    """As ``moved``, of everything in force at ``at``."""
    return {key: by for key, (_, by) in guarantees_at(cluster, at).items()}


def guarantees_at(cluster: Cluster, at: datetime) -> dict[Key, tuple[int, int]]:
    """(granted, moved by loans) of each queue and class that loans in force at ``at`` move, milli-GPU."""
    loans = list(in_force(cluster, at))
    if not loans:
        return {}
    granted = nominal_of(Quota.objects.filter(queue__cluster=cluster).in_force(at))
    found = moved(loans, granted, places_of(cluster.pk))
    return {key: (granted.get(key, 0), by) for key, by in found.items()}
