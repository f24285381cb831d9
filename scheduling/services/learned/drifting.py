"""Whether a version that decides still does what it was promoted for: replayed, and as it really came."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from scheduling.models import Cluster, Eviction, LearnedOrder, Workload
from scheduling.services.learned.figures import BOUNDS
from scheduling.services.learned.verdicts import APART, DRIFT_KIND, standing
from scheduling.services.merit.leads import by_queue, ended
from scheduling.simulation.replications import Verdict

MEASURED = timedelta(days=3)
LEAST_WORKLOADS = 30
"""Fewer that ended, or came, say nothing."""
Named = Callable[[tuple[str, ...]], str]


def why_demoted(order: LearnedOrder, named: Named) -> str:
    """One sentence with the figures, or nothing."""
    return _replayed(order, named) or _measured(order)


def _replayed(order: LearnedOrder, named: Named) -> str:
    """By its newest check: worse than what would decide without it, or a bound passed."""
    checks = [one for one in order.verdict.get("windows", []) if one["kind"] == DRIFT_KIND]
    if not checks:
        return ""
    found = standing({"windows": checks[-1:]}, (DRIFT_KIND,))
    if found.broken:
        return f"Replayed over its last days, fairness was not kept: {named(found.broken)}."
    cell = checks[-1]["against"][0]
    if cell["verdict"] == Verdict.WORSE:
        return (
            f"Replayed over its last days, work waited {cell['difference_s'] / 60:.1f} ±"
            f" {cell['half_s'] / 60:.1f} min longer than under {cell['name']}."
        )
    return ""


def _measured(order: LearnedOrder) -> str:
    """What really came since it decides: unfair work, evictions."""
    now, most = order.cluster.now(), bounds_of(order)
    since = max(order.since, now - MEASURED)
    count, unfair_pct = unfair(order.cluster, since, now)
    if count >= LEAST_WORKLOADS and unfair_pct > most["unfair_pct"]:
        return (
            f"Of {count} workloads that ended since {since:%d %b %H:%M} UTC {unfair_pct:.1f} % ended later"
            f" than on their queue's own quota; the bound is {most['unfair_pct']:.1f} %."
        )
    came, per_job = evictions(order.cluster, since, now)
    if came >= LEAST_WORKLOADS and per_job > most["evictions_per_job"]:
        return (
            f"{per_job:.3f} evictions per workload since {since:%d %b %H:%M} UTC; the bound is"
            f" {most['evictions_per_job']:.3f}."
        )
    return ""


def bounds_of(order: LearnedOrder) -> dict[str, float]:
    """What its last window before promotion allowed."""
    windows = [one for one in order.verdict.get("windows", []) if one["kind"] not in APART]
    told: list[dict[str, Any]] = windows[-1]["bounds"] if windows else []
    return {**BOUNDS, **{bound["figure"]: bound["most"] for bound in told}}


def unfair(cluster: Cluster, since: datetime, until: datetime) -> tuple[int, float]:
    """(workloads that ended, per cent of them that ended later than on their queue's own quota)."""
    leads = by_queue(ended(cluster, since, until)).values()
    count = sum(one.ended for one in leads)
    return count, 100 * sum(one.late for one in leads) / count if count else 0.0


def evictions(cluster: Cluster, since: datetime, until: datetime) -> tuple[int, float]:
    """(workloads submitted, evictions for each of them)."""
    rows = Workload.objects.filter(cluster=cluster, gpus__gt=0)
    came = rows.filter(submitted_at__gte=since, submitted_at__lt=until).count()
    gone = Eviction.objects.filter(workload__cluster=cluster, at__gte=since, at__lt=until).count()
    return came, gone / came if came else 0.0
