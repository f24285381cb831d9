"""When GPUs of the cluster were down: installed, but on no node that takes work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from django.db.models import F

from portal.display.csv import Table
from portal.reports.filters import ReportFilters
from portal.reports.samples import FINEST_S, reaching
from portal.reports.scope import Scope
from scheduling.models import MILLI, GpuClass, UsageSample
from scheduling.models.ledger import Resolution

LEAST = MILLI / 2
"""Fewer are the rounding of a mean."""
LATEST = timedelta(hours=3)
"""Hours are rolled up once they are over."""
SHOWN = 4


@dataclass(frozen=True, slots=True)
class Outage:
    """Of one class; ``gpus`` is the most that were down in any of its samples."""

    name: str
    position: int
    since: datetime
    until: datetime
    gpus: float

    @property
    def lasted(self) -> timedelta:
        return self.until - self.since

    def covers(self, filters: ReportFilters) -> bool:
        """Whether it lasted over the whole range, as far as samples reach into it."""
        return self.since <= reaching(filters) and self.until >= filters.end - LATEST


@dataclass(frozen=True, slots=True)
class _Sample:
    """``until`` as if it covered all of its time: one that began late is no gap."""

    resolution: str
    since: datetime
    until: datetime
    down: float


def outages(scope: Scope, filters: ReportFilters) -> tuple[Outage, ...]:
    """Of the whole cluster, whatever the subtree, by class and in order of time. One query of its samples,
    of the finest that are kept of a class."""
    wanted = [str(one) for one in filters.resolutions()]
    rows = UsageSample.objects.filter(
        queue__cluster=scope.cluster, queue__parent=None, gpu_class__in=list(scope.classes),
        resolution__in=wanted, start__gte=filters.start, start__lt=filters.end,
        installed_gpus__gt=F("ready_gpus") + LEAST,
    )  # fmt: skip
    columns = ("gpu_class", "resolution", "start", "installed_gpus", "ready_gpus")
    of: dict[int, list[_Sample]] = defaultdict(list)
    for pk, kind, start, installed, ready in rows.order_by("start").values_list(*columns):
        until = min(filters.end, start + timedelta(seconds=FINEST_S[Resolution(kind)]))
        of[pk].append(_Sample(kind, start, until, installed - ready))
    return tuple(
        one
        for pk, gpu_class in scope.classes.items()
        for one in _spells(gpu_class, _finest(of[pk], wanted))
    )


def _finest(samples: list[_Sample], wanted: Iterable[str]) -> list[_Sample]:
    for kind in wanted:
        if found := [one for one in samples if one.resolution == kind]:
            return found
    return []


def _spells(gpu_class: GpuClass, samples: list[_Sample]) -> Iterable[Outage]:
    """Samples that follow on each other are one spell."""
    begins = [i for i, one in enumerate(samples) if not i or one.since > samples[i - 1].until]
    for first, last in pairwise([*begins, len(samples)]):
        parts = samples[first:last]
        most = max(one.down for one in parts) / MILLI
        yield Outage(gpu_class.name, gpu_class.position, parts[0].since, parts[-1].until, most)


def longest(found: Iterable[Outage]) -> list[Outage]:
    """Of many the longest, in order of time."""
    most = sorted(found, key=lambda one: (-one.lasted, one.since, one.name))[:SHOWN]
    return sorted(most, key=lambda one: (one.since, one.name))


def outage_table(found: Iterable[Outage]) -> Table:
    rows = [(one.name, one.since, one.until, round(one.gpus, 3)) for one in found]
    return Table("down", "GPUs down", ("gpu_class", "from", "to", "gpus"), rows)
