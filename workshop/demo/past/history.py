"""A simulated past, written into the ledger as if it had been lived.

The simulator runs the shipped engine; this module listens and keeps what a live cluster would have
recorded: workloads and their steps, cycles and decisions, evictions, hourly usage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack
from uuid import NAMESPACE_URL, uuid5

from django.db import transaction

from scheduling.engine.model import Action, Plan, Snapshot
from scheduling.engine.model import Decision as Line
from scheduling.models import (
    Cluster,
    Cycle,
    Decision,
    Eviction,
    EvictionRule,
    GpuClass,
    GpuUse,
    Outcome,
    PriorityClass,
    Queue,
    Reason,
    State,
    Transition,
    UsageSample,
    Workload,
)
from scheduling.services.tables.bulk import insert_keyed, insert_rows, insert_values
from scheduling.services.words.sentences import sealed_of
from scheduling.services.workloads import lifecycle
from workshop.demo.past.fragmentation import ScatterMeans
from workshop.demo.past.hourly import SAMPLE, HourlyUsage
from workshop.demo.past.usage import HOUR_OF_USE, Run, used
from workshop.demo.work.arrivals import IMAGE, RUN_TIME_LIMIT_S
from workshop.simulator.jobs import Job
from workshop.simulator.simulator import Observer

RULES: Mapping[Reason, EvictionRule] = {
    Reason.RECLAIMED: EvictionRule.RECLAIM,
    Reason.PREEMPTED: EvictionRule.PREEMPT,
    Reason.GIVES_WAY: EvictionRule.GIVE_WAY,
    Reason.STALE_GANG: EvictionRule.STALE_GANG,
    Reason.DRAINED: EvictionRule.DRAIN,
    Reason.CONSOLIDATES: EvictionRule.CONSOLIDATE,
}

STEP = (
    "workload", "at", "from_state", "to_state", "reason", "sentence", "sealed", "actor", "gpus", "gpu_class",
)  # fmt: skip
DECISION = (
    "cycle", "workload", "action", "reason", "sentence", "sealed", "numbers", "gpu_class", "members",
    "placement", "for_workload", "until", "position",
)  # fmt: skip
EVICTION = (
    "workload", "cycle", "at", "rule", "queue", "for_workload", "for_queue", "gpu_class", "gpus",
    "asked_gpus", "lost_gpu_s", "sentence", "sealed", "numbers",
)  # fmt: skip
"""Columns of what is kept, in their order."""


class History(Observer):
    """Collects in memory; ``save`` writes everything in one transaction."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.queues: dict[str, Queue] = {q.name: q for q in cluster.queues.all()}
        self.classes: dict[str, GpuClass] = {c.name: c for c in cluster.gpu_classes.all()}
        self.priorities = {p.name: p for p in PriorityClass.objects.all()}
        self.workloads: dict[str, Workload] = {}
        self.waits: dict[str, Line] = {}
        self._steps: list[tuple[Any, ...]] = []
        self._evictions: list[tuple[Any, ...]] = []
        self._cycles: list[Cycle] = []
        self._decisions: list[tuple[Any, ...]] = []
        self._cycle: Cycle | None = None
        self.usage = HourlyUsage(cluster)
        self.scattered = ScatterMeans()
        self._runs: list[Run] = []
        self._running: dict[str, Run] = {}
        self._until: datetime | None = None
        self._pending = 0
        self._allocated = 0
        """Workloads that wait, and that hold GPUs."""

    def on_submit(self, now: datetime, job: Job) -> None:
        self._pending += 1
        workload = self._workload(job)
        self.workloads[job.name] = workload
        self._step(workload, State.PENDING, now, first=True, actor=job.workload.user)

    def on_plan(self, now: datetime, snapshot: Snapshot | None, plan: Plan) -> None:
        lines = plan.decisions
        admitted = sum(line.action is Action.ADMIT for line in lines)
        evicted = sum(line.action is Action.EVICT for line in lines)
        self._cycle = None
        if lines:
            self._cycle = self._cycle_of(now, admitted, evicted)
        if snapshot is not None:
            self.usage.plan(now, plan)
            self.scattered.look(now, snapshot, self.waits)
            self._wait([line for line in lines if line.action in (Action.WAIT, Action.RESERVE)])

    def _cycle_of(self, now: datetime, admitted: int, evicted: int) -> Cycle:
        cycle = Cycle(
            cluster=self.cluster,
            at=now,
            trigger="event",
            mode=self.cluster.mode,
            pending=self._pending - admitted,
            running=self._allocated,
            admitted=admitted,
            evicted=evicted,
        )
        self._cycles.append(cycle)
        return cycle

    def _wait(self, lines: Sequence[Line]) -> None:
        """Keep who waits for another reason than in the plan before."""
        before, self.waits = self.waits, {line.workload: line for line in lines}
        for line in lines:
            was = before.get(line.workload)
            if was is None or was.reason != line.reason:
                self._decide(self.workloads[line.workload], line)

    def on_start(self, now: datetime, job: Job, decision: Line) -> None:
        self._pending, self._allocated = self._pending - 1, self._allocated + 1
        workload = self.workloads[job.name]
        self._step(
            workload,
            State.ADMITTED,
            now,
            reason=decision.reason.value,
            sentence=decision.sentence,
            sealed=sealed_of(decision),
            gpu_class=self.classes[decision.gpu_class or ""],
            members=decision.members,
            placement=decision.placement,
        )
        self._decide(workload, decision)
        self._step(workload, State.RUNNING, now, actor="cluster")
        self.usage.hold(now, job.workload.queue, decision.gpu_class or "", job.run.gpus)
        self._hold(now, job)

    def on_resize(self, now: datetime, job: Job, decision: Line) -> None:
        workload = self.workloads[job.name]
        step = lifecycle.resize(workload, decision.members, at=now)
        self._steps.append(tuple(getattr(step, name) for name in STEP))
        workload.placement = dict(decision.placement)
        self._decide(workload, decision)
        more = job.run.gpus - job.runs[-2].gpus
        self.usage.hold(now, job.workload.queue, decision.gpu_class or "", more)
        self._hold(now, job)

    def on_move(self, now: datetime, job: Job, decision: Line) -> None:
        workload = self.workloads[job.name]
        workload.placement = dict(decision.placement)
        self._decide(workload, decision)

    def on_evict(self, now: datetime, job: Job, decision: Line) -> None:
        workload = self.workloads[job.name]
        winner = self.workloads.get(decision.for_workload or "")
        self._evictions.append(
            (
                workload, self._cycle, now, RULES[decision.reason], workload.queue, winner,
                winner.queue if winner else None, workload.gpu_class, workload.allocated_gpus,
                winner.requested_gpus if winner else 0, decision.lost_gpu_s, decision.sentence,
                sealed_of(decision), decision.numbers,
            )
        )  # fmt: skip
        self._decide(workload, decision)
        self._step(
            workload,
            State.EVICTED,
            now,
            reason=decision.reason.value,
            sentence=decision.sentence,
            sealed=sealed_of(decision),
            lost_gpu_s=decision.lost_gpu_s,
        )

    def on_requeue(self, now: datetime, job: Job) -> None:
        self._pending, self._allocated = self._pending + 1, self._allocated - 1
        workload = self.workloads[job.name]
        self._release(now, job, workload)
        self._step(workload, State.REQUEUED, now, actor="cluster")

    def on_finish(self, now: datetime, job: Job) -> None:
        self._allocated -= 1
        workload = self.workloads[job.name]
        self._release(now, job, workload)
        outcome = Outcome(job.submission.outcome)
        self._step(workload, State.FINISHED, now, outcome=outcome, actor="cluster")

    def close(self, now: datetime) -> None:
        """End the last hour's figures, and give what waits its reason."""
        self._until = now
        self.usage.close(now)
        for name, line in self.waits.items():
            workload = self.workloads[name]
            if not workload.is_waiting:
                continue
            workload.reason, workload.sentence = line.reason.value, line.sentence
            workload.sealed = sealed_of(line)
            workload.numbers, workload.until = dict(line.numbers), line.until
            workload.position = line.position

    @transaction.atomic
    def save(self) -> None:
        """Write the ledger. Call ``close`` first; uids of unfinished workloads may be set before."""
        insert_keyed(list(self.workloads.values()))
        spoke = {id(cycle) for cycle, *_ in self._decisions}
        cycles = [c for c in self._cycles if c.admitted or c.evicted or id(c) in spoke]
        for number, cycle in enumerate(cycles, 1):
            cycle.number = number
        insert_keyed(cycles)
        insert_values(Transition, STEP, self._steps)
        insert_values(Decision, DECISION, self._decisions)
        insert_values(Eviction, EVICTION, self._evictions)
        found = used(self._runs, self._until or self.cluster.now())
        insert_values(GpuUse, HOUR_OF_USE, found.values())
        for spell in found.spells:
            spell.workload_id = spell.workload.pk  # it had no row when the spell was noted
        insert_rows(found.spells)
        insert_values(UsageSample, SAMPLE, self.usage.rows(found.active, self.scattered))

    def _workload(self, job: Job) -> Workload:
        work = job.workload
        queue, priority = self.queues[work.queue], self.priorities[work.priority_class]
        return Workload(
            cluster=self.cluster,
            uid=str(uuid5(NAMESPACE_URL, f"weir:{self.cluster.name}/{work.name}")),
            namespace=queue.namespace,
            name=job_name(work.name),
            queue=queue,
            queue_label=queue.name,
            user=work.user,
            priority_class=priority,
            type=priority.type,
            gpus=work.gpus,
            cpus=work.cpus,
            memory_mib=work.memory_mib,
            min_members=work.members.min,
            max_members=work.members.max,
            elastic=work.elastic,
            gpu_classes=list(work.gpu_classes),
            checkpoint_interval_s=job.submission.checkpoint_s,
            image=IMAGE,
            run_time_limit_s=RUN_TIME_LIMIT_S,
            submitted_at=work.submitted,
        )

    def _step(
        self,
        workload: Workload,
        to: State,
        now: datetime,
        *,
        actor: str = "engine",
        reason: str = "",
        **how: Unpack[lifecycle.How],
    ) -> None:
        before = lifecycle.move(workload, to, at=now, reason=reason, **how)
        gpus = workload.allocated_gpus
        self._steps.append(
            (
                workload, now, before, to, reason, workload.sentence, workload.sealed, actor, gpus,
                workload.gpu_class if gpus else None,
            )
        )  # fmt: skip

    def _release(self, now: datetime, job: Job, workload: Workload) -> None:
        name = workload.gpu_class.name if workload.gpu_class else ""
        self.usage.hold(now, job.workload.queue, name, -job.run.gpus)
        self._let_go(now, job)

    def _hold(self, now: datetime, job: Job) -> None:
        """It holds what it does from now on."""
        self._let_go(now, job)
        workload = self.workloads[job.name]
        if workload.gpu_class is not None:
            run = Run(workload, workload.gpu_class, job.run.gpus, now)
            self._runs.append(run)
            self._running[job.name] = run

    def _let_go(self, now: datetime, job: Job) -> None:
        if (run := self._running.pop(job.name, None)) is not None:
            run.end = now

    def _decide(self, workload: Workload, line: Line) -> None:
        self._decisions.append(
            (
                self._cycle, workload, line.action.value, line.reason.value, line.sentence, sealed_of(line),
                line.numbers, self.classes.get(line.gpu_class or ""), line.members, line.placement,
                self.workloads.get(line.for_workload or ""), line.until, line.position,
            )
        )  # fmt: skip


def job_name(engine_name: str) -> str:
    """The Job's own name in the engine's ``namespace/name``."""
    return engine_name.rpartition("/")[2]


def unfinished(jobs: Iterable[Job]) -> list[Job]:
    """Those that the live cluster has to take over, in order of submission."""
    return [job for job in jobs if job.end_s is None]
