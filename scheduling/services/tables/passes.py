"""Whether what a background task reads has changed since its last pass.

A pass marks its sources, then reads them, then writes what it makes of them, and keeps the mark last. So a
kill between any two of these costs the same pass again and loses nothing: what came meanwhile differs from
the mark, in whatever order it was committed.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Aggregate, Count, F, Max, QuerySet, Sum
from django.db.models.functions import Coalesce

from scheduling.models import Cluster, TaskPass

PRIME = 65_521
"""What products are taken modulo, so that no sum overflows."""


def last_of(cluster: Cluster, task: str) -> TaskPass:
    """The last pass; an unsaved one with an empty mark before the first."""
    row = TaskPass.objects.filter(cluster=cluster, task=task).first()
    return row or TaskPass(cluster=cluster, task=task)


def keep(cluster: Cluster, task: str, mark: Any, found: Any = None) -> None:
    """Note that all of ``mark`` is done. Of two passes at once either's mark may stay: both are true."""
    TaskPass.objects.bulk_create(
        [TaskPass(cluster=cluster, task=task, mark=mark, found={} if found is None else found)],
        update_conflicts=True,
        unique_fields=["cluster", "task"],
        update_fields=["mark", "found"],
    )


def mark_of(rows: QuerySet[Any], sums: tuple[str, ...] = (), **more: Aggregate) -> list[Any]:
    """What differs once one of ``rows`` came, went, or changed a column of ``sums``. One query, one row."""
    figures = {f"sum_{name}": Sum(name) for name in sums}
    made = rows.order_by().aggregate(count=Count("pk"), last=Max("pk"), **figures, **more)
    return [_plain(made[name]) for name in sorted(made)]


def _plain(value: Any) -> int | float | None:
    """PostgreSQL's sums of keys are decimals."""
    return round(value, 3) if isinstance(value, float) else value if value is None else int(value)


def places_of(prefix: str = "") -> Aggregate:
    """Differs once a workload is of another queue or class."""
    queue, gpu_class = (Coalesce(F(f"{prefix}{name}"), 0) for name in ("queue_id", "gpu_class_id"))
    key = F(f"{prefix}pk") % PRIME
    return Sum(key * ((queue * 31 + gpu_class) % PRIME))
