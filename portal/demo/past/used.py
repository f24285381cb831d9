"""What a simulated past did with its GPUs, as if an exporter had been scraped: by workload and hour, by
queue, and the times in which GPUs idled."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from portal.demo.work.uses import memory_of, use_of
from scheduling.cluster.metrics import PodUse
from scheduling.models import MILLI, GpuClass, GpuUse, IdleEnd, IdleSpell, Workload
from scheduling.services.metrics.booking import IDLE_BELOW, add, hours_between
from scheduling.testbed.server.kinds.use import BUSY_W, REST_W, activity_at

STEP = timedelta(minutes=15)
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
    known: dict[tuple[int, int, datetime], GpuUse] = {}
    for run in runs:
        _live(run, until, found, known)
    found.rows = list(known.values())
    return found


def _live(
    run: Run, until: datetime, found: Used, known: dict[tuple[int, int, datetime], GpuUse]
) -> None:
    work, end = run.workload, min(run.end or until, until)
    if not run.gpus:
        return
    use, at = use_of(work.name), run.begin
    taken, total = memory_of(work, run.gpu_class.name)
    idle_since: datetime | None = None
    while at < end:
        upto = min(end, at + STEP)
        middle = at + (upto - at) / 2
        activity = activity_at(
            use, work.uid, middle.timestamp(), (middle - run.begin).total_seconds()
        )
        watts = (REST_W + BUSY_W * activity) * run.gpus / MILLI
        told = PodUse(run.gpus // MILLI, activity, taken, total, watts)
        for begin, stop in hours_between(at, upto):
            hour = begin.replace(minute=0, second=0, microsecond=0)
            key = (id(work), run.gpu_class.pk, hour)
            row = known.get(key)
            if row is None:
                row = known[key] = GpuUse(workload=work, gpu_class=run.gpu_class, start=hour)
            seconds = (stop - begin).total_seconds()
            add(row, told, seconds)
            found.active[work.queue_label, run.gpu_class.name, hour] += (
                told.devices * activity * seconds
            )
        idle_since = _spell(run, found, idle_since, at, is_idle=activity < IDLE_BELOW)
        at = upto
    if idle_since is not None:
        _close(run, found, idle_since, end, going_on=run.end is None)


def _spell(
    run: Run, found: Used, since: datetime | None, at: datetime, *, is_idle: bool
) -> datetime | None:
    """Since when it idles."""
    if is_idle:
        return since or at
    if since is not None:
        _keep(run, found, since, at, IdleEnd.USED)
    return None


def _close(run: Run, found: Used, since: datetime, end: datetime, *, going_on: bool) -> None:
    if going_on:
        found.spells.append(_made(run, since))
    else:
        _keep(run, found, since, end, IdleEnd.GIVEN_BACK)


def _keep(run: Run, found: Used, since: datetime, until: datetime, how: IdleEnd) -> None:
    if until - since < TOLD:
        return
    spell = _made(run, since)
    spell.until, spell.ended, spell.told = until, how, 1
    spell.first_told_at = spell.told_at = since + TOLD
    found.spells.append(spell)


def _made(run: Run, since: datetime) -> IdleSpell:
    taken, _ = memory_of(run.workload, run.gpu_class.name)
    return IdleSpell(
        workload=run.workload, gpu_class=run.gpu_class, gpus=run.gpus, since=since, memory_mib=taken
    )


def above(active: Mapping[Hour, float], lines: Mapping[str, tuple[str, ...]]) -> dict[Hour, float]:
    """``active`` of leaves, for every queue: ``lines`` are names from a leaf up to the root."""
    found: dict[Hour, float] = defaultdict(float)
    for (leaf, gpu_class, hour), seconds in active.items():
        for name in lines[leaf]:
            found[name, gpu_class, hour] += seconds
    return dict(found)
