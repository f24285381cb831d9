"""The ledger's finished work as spells for a trace file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from scheduling.files import plain
from scheduling.models import MILLI, Cluster, Workload
from scheduling.simulation.traces.ledger import Spell

from .past import useful_s

AT_ONCE = 2_000


def spells_of(cluster: Cluster, begin: datetime | None, end: datetime | None) -> Iterator[Spell]:
    """Work of ``cluster`` submitted from ``begin`` to ``end`` that ran and is over, in order of submission.

    A gang counts as all its members; GPUs are whole, parts rounded up. What held none is left out.
    """
    rows = Workload.objects.filter(cluster=cluster, gpus__gt=0, finished_at__isnull=False)
    rows = rows.exclude(first_started_at=None).select_related("queue")
    if begin is not None:
        rows = rows.filter(submitted_at__gte=begin)
    if end is not None:
        rows = rows.filter(submitted_at__lte=end)
    for row in rows.order_by("submitted_at", "id").iterator(AT_ONCE):
        yield Spell(
            submitted=row.submitted_at,
            run_s=max(1, round(useful_s(row, row.finished_at or row.submitted_at))),
            gpus=-(-row.gpus * row.max_members // MILLI),
            queue=row.queue_label or "default",
            user=plain(row.user),
            asked_s=row.run_time_limit_s or 0,
        )
