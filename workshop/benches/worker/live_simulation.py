"""The lives of ``bench live-loop`` in the simulator: the embedded one, the example organisation, Philly."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from scheduling.engine import model as m
from scheduling.engine import plan as engine_plan
from scheduling.simulation.run.jobs import Submission
from workshop.simulator.jobs import Job
from workshop.simulator.options import SimulatorOptions
from workshop.simulator.replay import pool, submissions
from workshop.simulator.simulator import Observer, simulate
from workshop.simulator.ties import BUSY_FROM, read_published

from .live_life import (
    CAP,
    CYCLE_S,
    DELAY_S,
    GPUS,
    MOVED_S,
    NODES,
    PRIORITIES,
    QUEUES,
    LifeCourse,
    Work,
    dominoes,
    figures,
    pct,
    seconds,
    taken,
)

ORIGIN = datetime(2026, 1, 5, 8, tzinfo=UTC)
CLASS = "gpu"
PHILLY_NODES, PHILLY_LEAVE_S = 72, (30, 600)
PROTECTED_S = 1 << 30


def template() -> m.Snapshot:
    """The same cluster and policy as the simulator sees them."""
    quotas = {name: {CLASS: m.Quota(nominal=gpus * m.MILLI)} for name, gpus in QUEUES.items()}
    return m.Snapshot(
        now=ORIGIN,
        gpu_classes=(m.GpuClass(CLASS),),
        nodes=tuple(m.Node(f"n{i}", CLASS, GPUS * m.MILLI) for i in range(NODES)),
        queues=tuple(m.Queue(name, quotas=quotas[name]) for name in QUEUES),
        priority_classes=tuple(m.PriorityClass(n, value) for n, value in PRIORITIES.items()),
        policy=m.Policy(preemption_delay_s=DELAY_S, fair_share_delay_s=DELAY_S, eviction_cap=CAP),
    )


def simulated_course(works: Sequence[Work], hours: float) -> LifeCourse:
    """Planned when the embedded cluster is."""
    coming, lasts = map(_submission, works), timedelta(hours=hours)
    return _followed(template(), coming, lasts, on_ticks=True).course


def simulated_figures(works: Sequence[Work], hours: float) -> dict[str, float]:
    coming, lasts = map(_submission, works), timedelta(hours=hours)
    return _lived(template(), coming, lasts, on_ticks=True)


def philly_figures(traces: Path, days: float, seed: int) -> tuple[dict[str, float], dict[str, str]]:
    """Of the first days of two busy months, the policy as it stands by default; and the trace's checksums."""
    end = BUSY_FROM + timedelta(days=days)
    trace = read_published(traces / "philly", begin=BUSY_FROM, end=end)
    dice = random.Random(seed)  # noqa: S311 - a load, no secret
    coming = (
        replace(one, leave_s=dice.randint(*PHILLY_LEAVE_S))
        for one in submissions(trace, nodes=PHILLY_NODES)
    )
    return _lived(pool(trace, PHILLY_NODES), coming, timedelta(days=days)), trace.checksums()


def organisation_figures(days: float, seed: int) -> dict[str, float]:
    """Of the example organisation in the simulator."""
    from . import live_organisation as organisation

    world = organisation.template(ORIGIN)
    return _lived(world, organisation.submissions(world, days, seed), timedelta(days=days))


def _lived(
    world: m.Snapshot, coming: Iterable[Submission], lasts: timedelta, *, on_ticks: bool = False
) -> dict[str, float]:
    """The figures of a life in the simulator, and those that need its plans."""
    known = list(coming)
    sizes = {
        one.workload.name: one.workload.gpus * one.workload.members.min / m.MILLI for one in known
    }
    follow = _followed(world, known, lasts, on_ticks=on_ticks)
    course, needless = follow.course, 0
    for one in dominoes(course):
        needless += others_make_room(follow.worlds[one.at_s], one.victim, one.winner)
    return figures(sizes, course) | {
        "domino_needless_pct": pct(needless, len(course.taken)),
        "reservations": float(course.reservations),
        "reservations_given_up_pct": pct(course.given_up, course.reservations),
        "reservations_lost_pct": pct(course.lost, course.reservations),
        "reservations_broken_pct": pct(course.broken, course.reservations),
    }


def others_make_room(world: m.Snapshot, victim: str, winner: str) -> bool:
    """Whether ``winner`` starts, or has others leave, in the plan on ``world`` in which ``victim`` stays."""
    plan = engine_plan(protecting(world, victim))
    served = (m.Reason.AWAITS_VICTIMS, m.Reason.FITS_NOMINAL, m.Reason.BORROWS)
    return any(d.workload == winner and d.reason in served for d in plan.decisions)


def protecting(world: m.Snapshot, name: str) -> m.Snapshot:
    """``world`` where work called ``name`` has not run for its min run time yet; all else is as before."""
    chosen = next(work for work in world.workloads if work.name == name)
    like = next(one for one in world.priority_classes if one.name == chosen.priority_class)
    safe = replace(like, name=f"{like.name} kept", min_run_time_s=PROTECTED_S)
    works = (
        replace(work, priority_class=safe.name) if work is chosen else work
        for work in world.workloads
    )
    return replace(world, workloads=tuple(works), priority_classes=(*world.priority_classes, safe))


def _followed(
    world: m.Snapshot, coming: Iterable[Submission], lasts: timedelta, *, on_ticks: bool
) -> Follow:
    follow = Follow(world.now)
    options = SimulatorOptions(cycle_s=CYCLE_S, until=world.now + lasts, on_ticks=on_ticks)
    simulate(world, coming, options=options, observer=follow)
    follow.course.end_s = lasts.total_seconds()
    follow.course.lost += len(follow.dropped)
    return follow


def _submission(work: Work) -> Submission:
    engine = m.Workload(
        work.name, work.queue, work.priority, ORIGIN + timedelta(seconds=work.at_s),
        work.gpus * m.MILLI, gpu_classes=(CLASS,),
    )  # fmt: skip
    return Submission(engine, work.run_s, checkpoint_s=None, restart_s=0, leave_s=work.grace_s)


def is_due(world: m.Snapshot, plan: m.Plan, name: str) -> bool:
    """Whether the shares of the workload of this name hold it, and nobody who came before it keeps nodes."""
    works = {work.name: work for work in world.workloads}
    keep = (
        one for one in plan.decisions
        if one.action is m.Action.RESERVE and one.reason is not m.Reason.AWAITS_VICTIMS
    )  # fmt: skip
    mine, queues = works[name], {queue.name: queue for queue in world.queues}
    if any(works[one.workload].submitted < mine.submitted for one in keep):
        return False
    above: list[str] = [mine.queue]
    while parent := queues[above[-1]].parent:
        above.append(parent)
    classes = mine.gpu_classes or tuple(one.name for one in world.gpu_classes)
    need = mine.gpus * mine.members.min
    shares = ([plan.fair_share[queue].get(c) for queue in above] for c in classes)
    return any(
        all(one and one.allocated + need <= one.fair_share for one in of_class)
        for of_class in shares
    )


class Follow(Observer):
    """Writes down what becomes of the work of a simulated life."""

    def __init__(self, origin: datetime) -> None:
        self.course = LifeCourse()
        self.worlds: dict[float, m.Snapshot] = {}
        """What plans that evicted were made on."""
        self._origin = origin
        self.dropped: dict[str, float] = {}
        """Work that keeps nodes no more, and has neither started nor got them again: since when."""
        self._claims: set[str] = set()
        self._reserved: set[str] = set()

    def on_plan(self, now: datetime, snapshot: m.Snapshot | None, plan: m.Plan) -> None:
        lines = {d.workload: d for d in plan.decisions if d.action is not m.Action.LAPSE}
        for one in plan.decisions:
            if one.action is m.Action.LAPSE:
                self.course.lapsed.append(one.rule)
                self._claims.discard(one.workload)
        awaits = {n for n, d in lines.items() if d.reason is m.Reason.AWAITS_VICTIMS}
        lost = {n for n in self._claims - awaits if n in lines and not _starts(lines[n])}
        self.course.lapsed += ["given_up"] * len(lost)
        self._claims = awaits
        self._note_reservations(lines, snapshot, plan, self._at(now))
        if snapshot and any(d.action is m.Action.EVICT for d in lines.values()):
            self.worlds[self._at(now)] = snapshot

    def _note_reservations(
        self, lines: Mapping[str, m.Decision], world: m.Snapshot | None, plan: m.Plan, at_s: float
    ) -> None:
        for name in [name for name in self.dropped if _is_served(lines.get(name))]:
            self.course.lost += at_s - self.dropped.pop(name) > MOVED_S
        reserved = {n for n, d in lines.items() if d.reason is m.Reason.RESERVED}
        self.course.reservations += len(reserved - self._reserved)
        for name in self._reserved - reserved:
            if not _is_served(lines.get(name)):
                self.course.given_up += 1
                self.course.broken += world is not None and is_due(world, plan, name)
                self.dropped[name] = at_s
        self._reserved = reserved

    def _at(self, now: datetime) -> float:
        return seconds(now, self._origin)

    def on_start(self, now: datetime, job: Job, decision: m.Decision) -> None:
        self.course.starts[job.name].append(self._at(now))

    def on_evict(self, now: datetime, job: Job, decision: m.Decision) -> None:
        if decision.for_workload is None:
            return
        self.course.taken.append(
            taken(self._at(now), job.name, decision.for_workload, job.run.gpus / m.MILLI,
                   decision.reason, decision.numbers, decision.rule)
        )  # fmt: skip

    def on_requeue(self, now: datetime, job: Job) -> None:
        self.course.gone[job.name].append(self._at(now))

    def on_finish(self, now: datetime, job: Job) -> None:
        self.course.ended[job.name] = self._at(now)


def _is_served(line: m.Decision | None) -> bool:
    """It starts, or room is kept for it, or it is gone."""
    return line is None or line.action in (m.Action.ADMIT, m.Action.RESERVE)


def _starts(decision: m.Decision) -> bool:
    return decision.action is m.Action.ADMIT
