"""What a simulated past did with its GPUs, as if an exporter had been scraped: by workload and hour, by
queue, and the times in which GPUs idled."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from scheduling.cluster.metrics import PodUse
from scheduling.models import MILLI, GpuClass, GpuUse, IdleEnd, IdleSpell, Workload
from scheduling.services.metrics.booking import IDLE_BELOW, add
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


@dataclass(slots=True)
class Used:
    """Rows to save, and GPU-seconds that were active by leaf, class and hour."""

    rows: list[GpuUse] = field(default_factory=list)
    spells: list[IdleSpell] = field(default_factory=list)
    active: dict[Hour, float] = field(default_factory=lambda: defaultdict(float))


def used(runs: Iterable[Run], until: datetime) -> Used:
    found = Used()
    known: dict[tuple[int, int, int], GpuUse] = {}
    for run in runs:
        if run.gpus:
            _live(run, until, found, known)
    found.rows = list(known.values())
    return found


def _live(
    run: Run, until: datetime, found: Used, known: dict[tuple[int, int, int], GpuUse]
) -> None:
    work, name = run.workload, run.gpu_class.name
    use, devices = use_of(work.name), run.gpus // MILLI
    taken, total = memory_of(work, name)
    begin_s, end_s = run.begin.timestamp(), min(run.end or until, until).timestamp()
    idle_since: float | None = None
    for at_s, upto_s in _steps(begin_s, end_s):
        middle_s = (at_s + upto_s) / 2
        activity = activity_at(use, work.uid, middle_s, middle_s - begin_s)
        watts = (REST_W + BUSY_W * activity) * run.gpus / MILLI
        told = PodUse(devices, activity, taken, total, watts)
        for hour, seconds in _by_hour(at_s, upto_s):
            key = (id(work), run.gpu_class.pk, hour)
            row = known.get(key)
            if row is None:
                row = known[key] = GpuUse(
                    workload=work, gpu_class=run.gpu_class, start=_time(hour * HOUR_S)
                )
            add(row, told, seconds)
            found.active[work.queue_label, name, row.start] += devices * activity * seconds
        idle_since = _spell(run, found, idle_since, at_s, is_idle=activity < IDLE_BELOW)
    if idle_since is not None:
        _close(run, found, idle_since, end_s)


def _steps(begin_s: float, end_s: float) -> Iterator[tuple[float, float]]:
    while begin_s < end_s:
        upto_s = min(end_s, begin_s + STEP_S)
        yield begin_s, upto_s
        begin_s = upto_s


def _by_hour(begin_s: float, end_s: float) -> Iterator[tuple[int, float]]:
    """The hours since 1970 that it lies in, and its seconds in each."""
    while begin_s < end_s:
        hour = int(begin_s // HOUR_S)
        upto_s = min(end_s, (hour + 1) * HOUR_S)
        yield hour, upto_s - begin_s
        begin_s = upto_s


def _time(at_s: float) -> datetime:
    return datetime.fromtimestamp(at_s, UTC)


def _spell(
    run: Run, found: Used, since_s: float | None, at_s: float, *, is_idle: bool
) -> float | None:
    """Since when it idles."""
    if is_idle:
        return at_s if since_s is None else since_s
    if since_s is not None:
        _keep(run, found, since_s, at_s, IdleEnd.USED)
    return None


def _close(run: Run, found: Used, since_s: float, end_s: float) -> None:
    if run.end is None:
        found.spells.append(_made(run, since_s))
    else:
        _keep(run, found, since_s, end_s, IdleEnd.GIVEN_BACK)


def _keep(run: Run, found: Used, since_s: float, until_s: float, how: IdleEnd) -> None:
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
