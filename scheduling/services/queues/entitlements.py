"""Quotas as the engine takes them: in force now, with what is lent, in grace after they were lowered, with
their GPU-hours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from scheduling.engine import model as m
from scheduling.models import Cluster, Loan, Quota
from scheduling.services.ledger.below import Hours, hours_below
from scheduling.services.queues.lending import guaranteed, in_force, moved, nominal_of, places_of
from scheduling.services.tables.row_cache import RowCache

Key = tuple[int, int]
"""(queue id, class id)"""


@dataclass(frozen=True)
class Entitlements:
    """The quotas of one cluster at one moment, by queue and class."""

    quotas: tuple[Quota, ...]
    """In force now."""
    former: tuple[Quota, ...]
    """Out of force, but not for longer than the cluster's grace."""
    used_gpu_hours: Hours
    """Of this month, where a budget is set."""
    grace: timedelta
    period_ends: datetime
    loans: tuple[Loan, ...] = ()
    """In force now."""
    moved: Mapping[Key, int] = field(default_factory=dict)
    """What the loans move, as ``services.queues.lending`` says."""

    @classmethod
    def load(cls, cluster: Cluster, at: datetime, unchanged: RowCache) -> Entitlements:
        """Those of ``cluster`` at cluster time ``at``; ``unchanged`` remembers from one call to the next."""
        rows = Quota.objects.filter(queue__cluster=cluster)
        grace = timedelta(seconds=cluster.lowering_grace_s)
        quotas = unchanged.steady_at("quotas", cluster.pk, at, rows.in_force)
        former = unchanged.steady_at(
            "former quotas", (cluster.pk, grace), at,
            lambda at: rows.filter(effective_until__gt=at - grace, effective_until__lte=at),
        )  # fmt: skip
        start, end = month(at)
        bounded = [q for q in quotas if q.budget_gpu_hours is not None]
        minute = at.replace(second=0, microsecond=0)

        def count() -> Hours:
            return used_gpu_hours(cluster, start, at)

        used = unchanged.once("used GPU-hours", minute, count) if bounded else {}
        loans = unchanged.steady_at("loans", cluster.pk, at, partial(in_force, cluster))
        shifted = moved(loans, nominal_of(quotas), places_of(cluster.pk)) if loans else {}
        return cls(quotas, former, used, grace, end, loans, shifted)

    def engine_quotas(self) -> dict[Key, m.Quota]:
        """For the engine; where no row is in force, its defaults stand."""
        now = {(q.queue_id, q.gpu_class_id): q for q in self.quotas}
        before: dict[Key, list[Quota]] = {}
        for row in self.former:
            before.setdefault((row.queue_id, row.gpu_class_id), []).append(row)
        keys = {**now, **before, **self.moved}
        return {key: self._quota(key, now.get(key), before.get(key, [])) for key in keys}

    def _quota(self, key: Key, row: Quota | None, before: Iterable[Quota]) -> m.Quota:
        budget = row.budget_gpu_hours if row else None
        return m.Quota(
            **self._guaranteed(key, figures(row)),
            lowered=self._lowered(key, row, before),
            budget_gpu_hours=budget,
            used_gpu_hours=self.used_gpu_hours.get(key, 0.0),
            period_ends=None if budget is None else self.period_ends,
        )

    def _guaranteed(self, key: Key, granted: dict[str, Any]) -> dict[str, Any]:
        """``granted`` with what loans move."""
        by = self.moved.get(key, 0)
        if not by:
            return granted
        limit = granted.get("borrowing_limit")
        nominal, limit = guaranteed(granted.get("nominal", 0), limit, by)
        return granted | {"nominal": nominal, "borrowing_limit": limit}

    def _lowered(
        self, key: Key, row: Quota | None, before: Iterable[Quota]
    ) -> m.LoweredQuota | None:
        """The most generous of the rows whose grace runs, if it gave more than the one in force."""
        most = max(before, key=_generosity, default=None)
        if most is None or most.effective_until is None:
            return None
        if row is not None and not gives_less(_granted(row), _granted(most)):
            return None
        until = most.effective_until + self.grace
        return m.LoweredQuota(until, **self._guaranteed(key, figures(most)))


def gives_less(now: m.Quota, before: m.Quota) -> bool:
    """Whether the grace of lowered quotas runs from ``before`` to ``now``."""
    less = now.nominal < before.nominal or _limit(now) < _limit(before)
    return less or now.weight < before.weight


def _generosity(row: Quota) -> tuple[int, float, int]:
    return row.nominal_gpus, _limit(_granted(row)), row.pk


def _granted(row: Quota) -> m.Quota:
    return m.Quota(**figures(row))


def figures(row: Quota | None) -> dict[str, Any]:
    if row is None:
        return {}
    return {
        "nominal": row.nominal_gpus,
        "borrowing_limit": row.borrowing_limit_gpus,
        "lending_limit": row.lending_limit_gpus,
        "weight": float(row.weight),
    }


def _limit(quota: m.Quota) -> float:
    above = quota.borrowing_limit
    return float("inf") if above is None else float(quota.nominal + above)


def month(at: datetime) -> tuple[datetime, datetime]:
    """The calendar month of ``at`` (UTC): its start, and the start of the next."""
    start = at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return start, (start + timedelta(days=32)).replace(day=1)


def used_gpu_hours(cluster: Cluster, start: datetime, at: datetime) -> Hours:
    """GPU-hours of each queue and class from ``start`` to the last whole minute before ``at``."""
    return hours_below(cluster, start, max(start, at.replace(second=0, microsecond=0)))
