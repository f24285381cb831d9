"""What a simulated past did with its GPUs, as if an exporter had been scraped: by workload and hour, by
queue, and the times in which GPUs idled."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any

from scheduling.cluster.metrics import PodUse
from scheduling.models import MILLI, GpuClass, IdleEnd, IdleSpell, Workload
from scheduling.services.workloads.gpu_use import FIGURES, IDLE_BELOW, add
from workshop.demo.work.uses import memory_of, use_of
from workshop.testbed.server.kinds.use import BUSY_W, REST_W, activity_at

STEP_S, HOUR_S = 1800, 3600
TOLD = timedelta(minutes=30)
"""Shorter spells told nobody, and are not kept."""
Hour = tuple[str, str, datetime]
"""Queue, class and start."""


@dataclass(slots=True)
class Run:
    """GPUs (milli) that a workload held from ``begin`` to ``end``; None while it goes on."""

    workload: Workload
    gpu_class: GpuClass
    gpus: int
    begin: datetime
    end: datetime | None = None


HOUR_OF_USE = ("workload", "gpu_class", "start", *FIGURES)
"""Columns of a row, in their order."""


@dataclass(slots=True)
class HourOfUse:
    """What a workload did with GPUs of one class in an hour, as ``GpuUse`` has it."""

    workload: Workload
    gpu_class: GpuClass
    start: datetime
    gpu_s: float = 0.0
    active_gpu_s: float = 0.0
    idle_gpu_s: float = 0.0
    memory_mib: float = 0.0
    memory_peak_mib: float = 0.0
    memory_total_mib: float = 0.0
    energy_j: float = 0.0


@dataclass(slots=True)
class UsageRows:
    """Hours and spells to save, and GPU-seconds that were active by leaf, class and hour."""

    hours: list[HourOfUse] = field(default_factory=list)
    spells: list[IdleSpell] = field(default_factory=list)
    active: dict[Hour, float] = field(default_factory=lambda: defaultdict(float))

    def values(self) -> list[tuple[Any, ...]]:
        """``HOUR_OF_USE`` of each hour."""
        return list(map(attrgetter(*HOUR_OF_USE), self.hours))


def used(runs: Iterable[Run], until: datetime) -> UsageRows:
    """``runs`` in order of their begin."""
    found, last = UsageRows(), dict[tuple[int, int], HourOfUse]()
    for run in runs:
        if run.gpus:
            _live(run, until, found, last)
    for row in found.hours:
        found.active[row.workload.queue_label, row.gpu_class.name, row.start] += row.active_gpu_s
    return found


def _live(
    run: Run, until: datetime, found: UsageRows, last: dict[tuple[int, int], HourOfUse]
) -> None:
    """``last``: the hour of each workload and class that was written down last; runs may share it."""
    work, name = run.workload, run.gpu_class.name
    use, devices = use_of(work.name), run.gpus // MILLI
    taken, total = memory_of(work, name)
    begin_s, end_s = run.begin.timestamp(), min(run.end or until, until).timestamp()
    idle_since: float | None = None
    row = last.get((id(work), run.gpu_class.pk))
    row_end_s = row.start.timestamp() + HOUR_S if row else begin_s
    for at_s, upto_s in _steps(begin_s, end_s):
        middle_s = (at_s + upto_s) / 2
        activity = activity_at(use, work.uid, middle_s, middle_s - begin_s)
        watts = (REST_W + BUSY_W * activity) * run.gpus / MILLI
        if row is None or at_s >= row_end_s:
            row_end_s = at_s // HOUR_S * HOUR_S + HOUR_S
            row = HourOfUse(work, run.gpu_class, _time(row_end_s - HOUR_S))
            found.hours.append(row)
        add(row, PodUse(devices, activity, taken, total, watts), upto_s - at_s)
        idle_since = _spell(run, found, idle_since, at_s, is_idle=activity < IDLE_BELOW)
    if row is not None:
        last[id(work), run.gpu_class.pk] = row
    if idle_since is not None:
        _close(run, found, idle_since, end_s)


def _steps(begin_s: float, end_s: float) -> Iterator[tuple[float, float]]:
    """Each lies in one hour."""
    while begin_s < end_s:
        upto_s = min(end_s, begin_s // STEP_S * STEP_S + STEP_S)
        yield begin_s, upto_s
        begin_s = upto_s


def _time(at_s: float) -> datetime:
    return datetime.fromtimestamp(at_s, UTC)


def _spell(
    run: Run, found: UsageRows, since_s: float | None, at_s: float, *, is_idle: bool
) -> float | None:
    """Since when it idles."""
    if is_idle:
        return at_s if since_s is None else since_s
    if since_s is not None:
        _keep(run, found, since_s, at_s, IdleEnd.USED)
    return None


def _close(run: Run, found: UsageRows, since_s: float, end_s: float) -> None:
    if run.end is None:
        found.spells.append(_made(run, since_s))
    else:
        _keep(run, found, since_s, end_s, IdleEnd.GIVEN_BACK)


def _keep(run: Run, found: UsageRows, since_s: float, until_s: float, how: IdleEnd) -> None:
    if until_s - since_s < TOLD.total_seconds():
        return
    spell = _made(run, since_s)
    spell.until, spell.ended, spell.told = _time(until_s), how, 1
    spell.first_told_at = spell.told_at = spell.since + TOLD
    found.spells.append(spell)


def _made(run: Run, since_s: float) -> IdleSpell:
    taken, _ = memory_of(run.workload, run.gpu_class.name)
    return IdleSpell(
        workload=run.workload,
        gpu_class=run.gpu_class,
        gpus=run.gpus,
        since=_time(since_s),
        memory_mib=taken,
    )


def above(active: Mapping[Hour, float], lines: Mapping[str, tuple[str, ...]]) -> dict[Hour, float]:
    """``active`` of leaves, for every queue: ``lines`` are names from a leaf up to the root."""
    found: dict[Hour, float] = defaultdict(float)
    for (leaf, gpu_class, hour), seconds in active.items():
        for name in lines[leaf]:
            found[name, gpu_class, hour] += seconds
    return dict(found)
