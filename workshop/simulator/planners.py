"""The shipped engine as the simulator calls it: told what changed, asked what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol

from scheduling.engine.model import Decision, Phase, Plan, Snapshot, Workload
from scheduling.engine.snapshot.encode import encode
from workshop.simulator.laws.room import check

from .jobs import Job
from .tally import Tally

PlanFunction = Callable[[Snapshot], Plan]


class Planner(Protocol):
    """Keeps the engine's view of the cluster between plans."""

    def pass_time(self, now_s: int) -> None:
        """What comes next happens at this second."""

    def put(self, job: Job) -> None:
        """The workload arrived, or what the engine sees of it changed."""

    def drop(self, job: Job) -> None:
        """The workload ended."""

    def plan(self, now_s: int) -> Iterable[Decision]:
        """The decisions to carry out now, in order; waits may be among them."""


class SnapshotPlanner:
    """Plans on a fresh snapshot each time: exact and plain, at the cost of all open workloads per plan.

    ``template`` is the cluster and its policy (its workloads are ignored); ``seen`` is told every snapshot
    and plan. With ``checked`` each plan is held against the engine's laws (raises LawError).
    """

    def __init__(
        self,
        template: Snapshot,
        origin: datetime,
        plan: PlanFunction,
        *,
        checked: bool = False,
        seen: Callable[[datetime, Snapshot, Plan], None] | None = None,
    ) -> None:
        self._template = template
        self._origin = origin
        self._plan = plan
        self._checked = checked
        self._seen = seen
        self._open: dict[int, Job] = {}
        self._tally = Tally(encode(replace(template, workloads=())))
        self._now = origin

    def pass_time(self, now_s: int) -> None:
        self._now = self._origin + timedelta(seconds=now_s)

    def put(self, job: Job) -> None:
        self._open[job.number] = job
        self._tally.see(job, self._now.timestamp())

    def drop(self, job: Job) -> None:
        del self._open[job.number]
        self._tally.forget(job, self._now.timestamp())

    def set_ready(self, node: str, ready: bool) -> None:
        nodes = tuple(
            replace(each, ready=ready) if each.name == node else each
            for each in self._template.nodes
        )
        self._template = replace(self._template, nodes=nodes)

    def plan(self, now_s: int) -> Iterable[Decision]:
        snapshot = self.snapshot(now_s)
        plan = self._plan(snapshot)
        if self._checked:
            check(snapshot, plan)
        if self._seen is not None:
            self._seen(snapshot.now, snapshot, plan)
        return plan.decisions

    def snapshot(self, now_s: int) -> Snapshot:
        now = self._origin + timedelta(seconds=now_s)
        self._tally.count_up(now.timestamp())
        return replace(
            self._template,
            now=now,
            queues=self._tally.shown(self._template.queues),
            workloads=tuple(self._seen_by_engine(job, now_s) for job in self._open.values()),
        )

    def _seen_by_engine(self, job: Job, now_s: int) -> Workload:
        if job.workload.phase is Phase.RUNNING:
            job.checkpoint(now_s, self._origin + timedelta(seconds=now_s))
        return job.workload
