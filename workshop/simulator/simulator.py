"""Discrete-event simulation around the shipped engine.

Cluster, policy, workloads and seed are inputs; nothing here chooses who runs. At one second workloads
end, then arrive, then the engine plans, and what it decides is carried out. Evicted workloads keep their
checkpointed work, wait again, and pay for the restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from scheduling.engine import plan as engine_plan
from scheduling.engine.model import Action, Decision, Phase, Plan, Reason, Snapshot
from scheduling.simulation.run.jobs import Submission
from scheduling.simulation.run.options import MAX_PLANS_AT_ONCE, UnsettledError
from workshop.simulator.options import EVERY_EVENT, Outage, SimulatorOptions

from .agenda import Agenda, Turn
from .frames import FramePlanner
from .jobs import Job
from .planners import PlanFunction, Planner, SnapshotPlanner


class Observer:
    """Is told what happens, in order; a ledger of the simulated past overrides what it needs."""

    def on_submit(self, now: datetime, job: Job) -> None:
        """A workload arrived."""

    def on_plan(self, now: datetime, snapshot: Snapshot | None, plan: Plan) -> None:
        """The engine planned; its decisions are carried out right after. Without a snapshot the plan has
        its acts alone (``SimulatorOptions.spell_s``)."""

    def on_start(self, now: datetime, job: Job, decision: Decision) -> None:
        """A workload was admitted and holds its GPUs."""

    def on_resize(self, now: datetime, job: Job, decision: Decision) -> None:
        """An elastic workload goes on with more members, or fewer."""

    def on_move(self, now: datetime, job: Job, decision: Decision) -> None:
        """A workload starts again elsewhere to make room for another."""

    def on_evict(self, now: datetime, job: Job, decision: Decision) -> None:
        """A workload was evicted; with a ``leave_s`` it holds its GPUs a little longer."""

    def on_requeue(self, now: datetime, job: Job) -> None:
        """An evicted workload's GPUs are free and it waits again."""

    def on_finish(self, now: datetime, job: Job) -> None:
        """A workload has done its work and is gone."""


@dataclass(slots=True)
class Outcome:
    """Jobs in order of submission. ``end`` is when the simulation stopped; unfinished jobs have no end."""

    jobs: list[Job] = field(default_factory=list)
    plans: int = 0
    end: datetime | None = None

    @property
    def unfinished(self) -> list[Job]:
        return [job for job in self.jobs if job.end_s is None]


class Simulator:
    """One run. ``planner`` holds the engine's view; submissions must come in order of time."""

    def __init__(
        self, planner: Planner, origin: datetime, options: SimulatorOptions, observer: Observer
    ) -> None:
        self._planner = planner
        self._origin = origin
        self._options = options
        self._observer = observer
        self._agenda = Agenda()
        self._open: dict[str, Job] = {}
        self._promised: dict[str, Job] = {}
        self._leaving: dict[str, Job] = {}
        self._planned_s = -(1 << 40)
        self._plan_due_s: int | None = None
        self._plans_at_once = 0
        self._arrivals: Iterator[Submission] = iter(())
        self.outcome = Outcome()

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to happen."""
        return not self._agenda

    def run(self, submissions: Iterable[Submission]) -> Outcome:
        """Raises UnsettledError; LawError with a checked planner."""
        self.begin(submissions)
        return self.go_on(self._seconds(self._options.until) if self._options.until else None)

    def begin(self, submissions: Iterable[Submission]) -> None:
        """Expect them; nothing has happened yet."""
        self._arrivals = iter(submissions)
        self._expect(self._arrivals)
        self._expect_outage(iter(self._options.outages))

    def go_on(self, stop_s: int | None) -> Outcome:
        """All that happens up to ``stop_s`` (included; None: to the end). Raises as ``run`` does."""
        now_s = 0
        while self._agenda:
            next_s = self._agenda.next_s() or 0
            if stop_s is not None and next_s > stop_s:
                now_s = stop_s
                break
            now_s, turn, what = self._agenda.pop()
            self._planner.pass_time(now_s)
            if turn is Turn.END:
                what()
            elif turn is Turn.ARRIVE:
                self._arrive(now_s, what)
                self._expect(self._arrivals)
            elif now_s == self._plan_due_s:
                self._plan(now_s)
        self.outcome.end = self._time(now_s)
        return self.outcome

    def _expect(self, arrivals: Iterator[Submission]) -> None:
        """Writes down the next arrival only, so that a stream without end can be followed."""
        submission = next(arrivals, None)
        if submission is not None:
            job = Job.of(len(self.outcome.jobs), submission, self._origin, self._options.speeds)
            self._agenda.add(job.submit_s, Turn.ARRIVE, job)

    def _arrive(self, now_s: int, job: Job) -> None:
        self.outcome.jobs.append(job)
        self._open[job.name] = job
        self._planner.put(job)
        self._observer.on_submit(self._time(now_s), job)
        self._ask_for_plan(now_s)

    def _ask_for_plan(self, now_s: int) -> None:
        cycle_s = self._options.cycle_s
        due_s = max(now_s, self._planned_s + cycle_s)
        if self._options.on_ticks:
            due_s = -(-due_s // cycle_s) * cycle_s
        if self._plan_due_s is None or due_s < self._plan_due_s:
            self._plan_due_s = due_s
            self._agenda.add(due_s, Turn.PLAN)

    def _plan(self, now_s: int) -> None:
        self._plans_at_once = self._plans_at_once + 1 if now_s == self._planned_s else 0
        if self._plans_at_once > MAX_PLANS_AT_ONCE:
            raise UnsettledError(f"{MAX_PLANS_AT_ONCE} plans at {self._time(now_s).isoformat()}")
        self._planned_s, self._plan_due_s = now_s, None
        self.outcome.plans += 1
        before, self._promised = self._promised, {}
        decisions = list(self._planner.plan(now_s))
        for decision in decisions:
            if decision.action is Action.LAPSE:
                self._forget_promise(self._open[decision.workload])
        for decision in decisions:
            self._carry_out(now_s, decision)
        for name, job in before.items():
            if name not in self._promised:
                self._forget_promise(job)
        self._expect_room(now_s)
        if self._options.on_ticks and self._open:
            self._ask_for_plan(now_s + 1)

    def _forget_promise(self, job: Job) -> None:
        if job.forget_promise():
            self._planner.put(job)

    def _expect_room(self, now_s: int) -> None:
        """Write down of each claim when its room is due."""
        for name, job in self._promised.items():
            leave = (v for v in self._leaving.values() if v.workload.last_evicted_for == name)
            if job.workload.awaits_victims and job.expect_room(leave, self._time(now_s)):
                self._planner.put(job)

    def _carry_out(self, now_s: int, decision: Decision) -> None:
        if decision.action is Action.ADMIT:
            self._start(now_s, self._open[decision.workload], decision)
        elif decision.action is Action.EVICT:
            self._evict(now_s, self._open[decision.workload], decision)
        elif decision.action in (Action.GROW, Action.SHRINK):
            self._resize(now_s, self._open[decision.workload], decision)
        elif decision.action is Action.MOVE:
            self._move(now_s, self._open[decision.workload], decision)
        elif decision.reason is Reason.AWAITS_VICTIMS:
            self._promise(now_s, self._open[decision.workload], decision)
        elif decision.until is not None and decision.action is not Action.LAPSE:
            # Whatever blocks it passes by itself, without an event: look again then.
            self._ask_for_plan(max(now_s + 1, self._seconds(decision.until)))

    def _start(self, now_s: int, job: Job, decision: Decision) -> None:
        now = self._time(now_s)
        job.start(now_s, now, decision)
        self._go_on(job)
        self._observer.on_start(now, job, decision)

    def _go_on(self, job: Job) -> None:
        """The job runs on from now, and to the end if nothing comes between."""
        self._planner.put(job)
        runs = len(job.runs)
        self._agenda.add(job.ends_s, Turn.END, lambda: self._finish(job, runs))

    def _resize(self, now_s: int, job: Job, decision: Decision) -> None:
        """Members given up are gone at once, and their GPUs free for whom they were wanted."""
        now = self._time(now_s)
        job.resize(now_s, now, decision)
        self._go_on(job)
        self._observer.on_resize(now, job, decision)
        if decision.action is Action.SHRINK:
            self._ask_for_plan(now_s)

    def _move(self, now_s: int, job: Job, decision: Decision) -> None:
        """Its former GPUs are free at once for whom it moved."""
        now = self._time(now_s)
        job.move(now_s, now, decision)
        self._go_on(job)
        self._observer.on_move(now, job, decision)
        self._ask_for_plan(now_s)

    def _promise(self, now_s: int, job: Job, decision: Decision) -> None:
        """Its victims' GPUs are meant for it: the engine seats it before all else, on these seats."""
        self._promised[job.name] = job
        if job.promise(self._time(now_s), decision):
            self._planner.put(job)

    def _finish(self, job: Job, runs: int) -> None:
        """Does nothing when the run that was to end then was evicted before."""
        if len(job.runs) != runs or job.workload.phase is not Phase.RUNNING or job.workload.leaving:
            return
        now_s = job.ends_s
        job.finish(now_s)
        del self._open[job.name]
        self._planner.drop(job)
        self._observer.on_finish(self._time(now_s), job)
        self._ask_for_plan(now_s)

    def _evict(self, now_s: int, job: Job, decision: Decision) -> None:
        job.evict(now_s, self._time(now_s), decision.for_workload)
        self._planner.put(job)
        rival = self._open.get(decision.for_workload or "")
        if rival is not None:
            rival.take(job.run.gpus)
        self._observer.on_evict(self._time(now_s), job, decision)
        own_s = job.submission.leave_s
        leave_s = self._options.leave_s if own_s is None else own_s
        if leave_s == 0:
            self._release(now_s, job)
            return
        leaves_s = now_s + leave_s
        self._leaving[job.name], job.gone_by = job, self._time(leaves_s)
        self._agenda.add(leaves_s, Turn.END, lambda: self._release(leaves_s, job))

    def _release(self, now_s: int, job: Job) -> None:
        job.release(now_s)
        self._leaving.pop(job.name, None)
        self._planner.put(job)
        self._expect_room(now_s)
        self._observer.on_requeue(self._time(now_s), job)
        self._ask_for_plan(now_s)

    def _expect_outage(self, outages: Iterator[Outage]) -> None:
        """Writes down the next outage only, and none once nothing else is to come."""
        outage = next(outages, None)
        if outage is not None and (self._open or self._agenda):
            self._agenda.add(outage.down_s, Turn.END, partial(self._break, outage, outages))

    def _break(self, outage: Outage, outages: Iterator[Outage]) -> None:
        """Work that leaves anyway goes on leaving; promised seats there are forgotten."""
        self._expect_outage(outages)
        self._set_ready(outage.node, ready=False)
        for job in list(self._open.values()):
            work = job.workload
            if outage.node not in work.placement or work.leaving:
                continue
            if work.phase is Phase.RUNNING:
                job.crash(outage.down_s)
                self._observer.on_requeue(self._time(outage.down_s), job)
            elif not job.forget_promise():
                continue
            self._planner.put(job)
        self._ask_for_plan(outage.down_s)
        self._agenda.add(outage.up_s, Turn.END, partial(self._mend, outage))

    def _mend(self, outage: Outage) -> None:
        self._set_ready(outage.node, ready=True)
        self._ask_for_plan(outage.up_s)

    def _set_ready(self, node: str, *, ready: bool) -> None:
        planner = self._planner
        if not isinstance(planner, SnapshotPlanner):
            raise TypeError("nodes break only where plans are made on snapshots")
        planner.set_ready(node, ready)

    def _seconds(self, moment: datetime) -> int:
        """Whole seconds after the origin, rounded up: nothing looks before its time."""
        return -int(-(moment - self._origin).total_seconds() // 1)

    def _time(self, at_s: int) -> datetime:
        return self._origin + timedelta(seconds=at_s)


def simulate(
    template: Snapshot,
    submissions: Iterable[Submission],
    *,
    plan: PlanFunction | None = None,
    options: SimulatorOptions = EVERY_EVENT,
    observer: Observer | None = None,
) -> Outcome:
    """Runs ``submissions`` (in order of submission) through the engine on the template's cluster.

    ``template.now`` is the origin of time. The observer hears of everything. Without ``plan`` the shipped
    engine plans on a frame kept up in place; another function gets a fresh snapshot each time.
    """
    spelled_out = observer is not None
    observer = observer or Observer()

    planner: Planner
    if plan is None and options.outages:
        plan = engine_plan
    if plan is None:
        planner = FramePlanner(
            template,
            checked=options.checked,
            seen=observer.on_plan if spelled_out else None,
            spell_s=options.spell_s,
        )
        return Simulator(planner, template.now, options, observer).run(submissions)
    planner = SnapshotPlanner(
        template, template.now, plan, checked=options.checked, seen=observer.on_plan
    )
    return Simulator(planner, template.now, options, observer).run(submissions)
