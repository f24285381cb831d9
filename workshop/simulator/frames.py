"""The shipped engine on a frame kept up in place: a plan costs what is open now, not a description of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from scheduling.engine import ArrayPlan, Frame, decode, encode, plan_frame
from scheduling.engine.codes import ACTIONS, REASONS
from scheduling.engine.model import MILLI, Action, Decision, Phase, Plan, Reason, Snapshot, Workload
from scheduling.engine.snapshot.seats import seats_by_role
from scheduling.engine.state.units import RUNNING
from scheduling.simulation.run.scribe import Scribe
from workshop.simulator.laws.room import check

from .jobs import Job
from .tally import Tally

Seen = Callable[[datetime, Snapshot | None, Plan], None]


class FramePlanner:
    """Keeps one frame for the whole simulation; its decisions are those of ``plan`` on the same snapshot.

    With ``seen`` or ``checked`` every plan is spelled out, with its snapshot; otherwise only acts come
    back, and one wait that carries the earliest moment at which something changes by itself. ``spell_s``:
    shares and waits are spelled out at most so often, the acts in every plan. Equal submit times of one
    queue keep their order of arrival, where a snapshot, which knows none, goes by name.
    """

    def __init__(
        self,
        template: Snapshot,
        *,
        checked: bool = False,
        seen: Seen | None = None,
        spell_s: int = 0,
    ) -> None:
        self._spell_s = spell_s
        self._spelled_s = -spell_s
        self._template = replace(template, workloads=())
        self._frame: Frame = encode(self._template)
        self._origin_s = template.now.timestamp()
        self._checked, self._seen = checked, seen
        self._scribe = Scribe(self._frame)
        self._classes = {name: i for i, name in enumerate(self._frame.class_names)}
        self._nodes = {name: i for i, name in enumerate(self._frame.node_names)}
        self._slot_of: dict[int, int] = {}
        self._job_in: dict[int, Job] = {}
        self._clocks = Clocks()
        self._rival_of: dict[int, int] = {}
        self._tally = Tally(self._frame)
        self._now_s = 0

    def pass_time(self, now_s: int) -> None:
        self._now_s = now_s

    def put(self, job: Job) -> None:
        slot = self._slot_of.get(job.number)
        if slot is None:
            self._add(job)
        elif job.workload.leaving:
            self._frame.leave(slot, self._rival_of.pop(slot, -1))
        elif job.workload.phase is Phase.RUNNING:
            self._start(slot, job)
        elif self._frame.work.members[slot]:
            self._clocks.stop(slot)
            self._frame.requeue(slot)
        elif job.workload.awaits_victims:
            self._frame.promise(slot, *self._seats(job.workload))
            room_due = job.workload.room_due
            self._frame.work.room_due[slot] = room_due.timestamp() if room_due else np.inf
            self._frame.work.taken[slot] = job.workload.taken_gpus
        else:
            self._frame.forget_promise(slot)
        self._tally.see(job, self._origin_s + self._now_s)

    def drop(self, job: Job) -> None:
        slot = self._slot_of.pop(job.number)
        del self._job_in[slot]
        self._clocks.stop(slot)
        self._frame.finish(slot)
        self._tally.forget(job, self._origin_s + self._now_s)

    def plan(self, now_s: int) -> Iterable[Decision]:
        frame = self._frame
        frame.now = self._origin_s + now_s
        self._tally.count_up(frame.now)
        self._clocks.write(frame.work.checkpointed, now_s, self._origin_s)
        plan = plan_frame(frame)
        self._rival_of = {slot: int(plan.rival[slot]) for slot in plan.evicted()}
        if self._seen is None and not self._checked:
            return self._acts(plan)
        return self._spelled_out(plan, now_s)

    def _add(self, job: Job) -> None:
        slot = self._frame.add_workload(**self._scribe.columns(job.workload), name=job.name)
        self._slot_of[job.number] = slot
        self._job_in[slot] = job

    def _start(self, slot: int, job: Job) -> None:
        """Or start again elsewhere; or go on, resized, which is as good as a checkpoint."""
        self._frame.work.taken[slot] = 0
        gpu_class, seats = self._seats(job.workload)
        goes_on = job.workload.checkpointed is not None
        if goes_on and self._frame.work.phase[slot] == RUNNING:
            self._frame.reseat(slot, seats)
            self._frame.work.checkpointed[slot] = self._frame.now
        else:
            self._frame.start_on(slot, gpu_class, seats)
        self._clocks.start(slot, job.run.warm_s, job.submission.checkpoint_s)

    def _seats(self, work: Workload) -> tuple[int, list[tuple[int, int]]]:
        """Number of the class, then node and device of each member."""
        if work.roles:
            return self._classes[work.gpu_class or ""], seats_by_role(work, self._nodes.__getitem__)
        seats = []
        for name, members in work.placement.items():
            devices = work.devices.get(name, ()) if work.gpus < MILLI else ()
            node = self._nodes[name]
            seats += [(node, devices[i] if i < len(devices) else -1) for i in range(members)]
        return self._classes[work.gpu_class or ""], seats

    def _acts(self, plan: ArrayPlan) -> Iterable[Decision]:
        acts = [self._decision(plan, slot) for slot in plan.carried_out().tolist()]
        lapsed = [
            Decision(self._frame.slot_names[slot], Action.LAPSE, Reason.CLAIM_LAPSED)
            for slot in np.flatnonzero(plan.lapsed >= 0).tolist()
        ]
        return [*lapsed, *acts, *self._alarm(plan)]

    def _alarm(self, plan: ArrayPlan) -> list[Decision]:
        """The earliest moment at which what blocks a wait passes by itself, as one decision."""
        until = plan.until[plan.order]
        until = until[until > self._frame.now]
        if not until.size:
            return []
        at = self._template.now + timedelta(seconds=float(until.min()) - self._origin_s)
        return [Decision("", Action.WAIT, Reason.VICTIMS_PROTECTED, until=at)]

    def _decision(self, plan: ArrayPlan, slot: int) -> Decision:
        frame = self._frame
        placement: dict[str, int] = {}
        devices: dict[str, tuple[int, ...]] = {}
        action = ACTIONS[plan.action[slot]]
        if plan.members[slot] and action is not Action.EVICT:
            for node, device in plan.seats(slot):
                name = frame.node_names[node]
                placement[name] = placement.get(name, 0) + 1
                if device >= 0:
                    devices[name] = (*devices.get(name, ()), device)
        number = int(plan.gpu_class[slot])
        return Decision(
            frame.slot_names[slot],
            action,
            REASONS[plan.reason[slot]],
            gpu_class=frame.class_names[number] if number >= 0 else None,
            members=int(plan.members[slot]),
            placement=placement,
            devices=devices,
            for_workload=frame.slot_names.get(int(plan.rival[slot])),
            lost_gpu_s=float(plan.lost[slot]),
        )

    def _spelled_out(self, array_plan: ArrayPlan, now_s: int) -> Iterable[Decision]:
        if not self._checked and now_s - self._spelled_s < self._spell_s:
            return self._in_brief(array_plan, now_s)
        self._spelled_s = now_s
        snapshot = self._snapshot(now_s)
        self._frame.source = snapshot
        plan = decode(self._frame, array_plan)
        if self._checked:
            check(snapshot, plan)
        if self._seen is not None:
            self._seen(snapshot.now, snapshot, plan)
        return plan.decisions

    def _in_brief(self, array_plan: ArrayPlan, now_s: int) -> Iterable[Decision]:
        """What is carried out alone: nothing is described but the workloads that it is about."""
        now = self._template.now + timedelta(seconds=now_s)
        slots = {
            *array_plan.carried_out().tolist(),
            *np.flatnonzero(array_plan.lapsed >= 0).tolist(),
        }
        plan = Plan({}, ())
        if slots:
            works = tuple(self._job_in[slot].workload for slot in slots)
            self._frame.source = replace(self._template, now=now, workloads=works)
            plan = decode(self._frame, array_plan, brief=True)
        if self._seen is not None:
            self._seen(now, None, plan)
        return [*plan.decisions, *self._alarm(array_plan)]

    def _snapshot(self, now_s: int) -> Snapshot:
        now = self._template.now + timedelta(seconds=now_s)
        for job in self._job_in.values():
            if job.workload.phase is Phase.RUNNING:
                job.checkpoint(now_s, now)
        return replace(
            self._template,
            now=now,
            queues=self._tally.shown(self._template.queues),
            workloads=tuple(job.workload for job in self._job_in.values()),
        )


class Clocks:
    """When each running slot took its last checkpoint, for all of them in one sweep."""

    def __init__(self) -> None:
        self._first_s = np.full(64, np.inf)
        self._step_s = np.full(64, np.inf)

    def start(self, slot: int, first_s: int, step_s: int | None) -> None:
        """The run's useful time begins at ``first_s``; a checkpoint follows every ``step_s``."""
        while slot >= self._first_s.size:
            more = np.full(self._first_s.size, np.inf)
            self._first_s = np.append(self._first_s, more)
            self._step_s = np.append(self._step_s, more)
        if step_s:
            self._first_s[slot], self._step_s[slot] = first_s, step_s

    def stop(self, slot: int) -> None:
        if slot < self._first_s.size:
            self._first_s[slot] = np.inf

    def write(self, checkpointed: np.ndarray, now_s: int, origin_s: float) -> None:
        """Puts the last checkpoint (POSIX seconds) of every slot that has one into ``checkpointed``."""
        slots = np.flatnonzero(self._first_s + self._step_s <= now_s)
        first_s, step_s = self._first_s[slots], self._step_s[slots]
        checkpointed[slots] = origin_s + first_s + (now_s - first_s) // step_s * step_s
