"""What the simulator keeps of each workload while time passes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from scheduling.engine.model import Decision, Workload
from scheduling.simulation.run.carrying import after, evicted, gone, room_due, without_claim
from scheduling.simulation.run.jobs import Submission


@dataclass(slots=True)
class Run:
    """One stretch of holding GPUs with the same members; ``end_s`` None while it lasts. ``gpus`` is all its
    members' milli-GPU."""

    start_s: int
    gpus: int
    restart_s: int = 0
    end_s: int | None = None
    members: int = 1
    speed: float = 1.0
    """Of the class that it runs on."""

    def done(self, seconds: int) -> int:
        """Member-seconds of work in so many seconds."""
        return math.floor(seconds * self.members * self.speed)

    @property
    def warm_s(self) -> int:
        """When its useful time begins."""
        return self.start_s + self.restart_s


@dataclass(slots=True, eq=False)
class Job:
    """One submission on its way: ``workload`` is what the engine sees, seconds count from the origin.

    Work that is ``left`` is counted in member-seconds: half the members take twice as long, a class of twice
    the speed half as long.
    """

    number: int
    submission: Submission
    workload: Workload
    submit_s: int
    left: int
    runs: list[Run] = field(default_factory=list)
    evictions: int = 0
    end_s: int | None = None
    speeds: Mapping[str, float] = field(default_factory=dict)
    """By GPU class."""
    gone_by: datetime | None = None
    """While it leaves, when its GPUs are free."""

    @classmethod
    def of(
        cls,
        number: int,
        submission: Submission,
        origin: datetime,
        speeds: Mapping[str, float] | None = None,
    ) -> Job:
        workload = replace(submission.workload, restart_cost_s=submission.restart_s)
        submit_s = round((submission.submitted - origin).total_seconds())
        left = submission.duration_s * workload.members.max
        return cls(number, submission, workload, submit_s, left, speeds=speeds or {})

    @property
    def name(self) -> str:
        return self.workload.name

    @property
    def run(self) -> Run:
        return self.runs[-1]

    @property
    def ends_s(self) -> int:
        """When the current run will have done all the work, if nothing comes between."""
        return self.run.warm_s + math.ceil(self.left / self.run.members / self.run.speed)

    @property
    def left_s(self) -> int:
        """Seconds that all members would still take on a class of speed 1."""
        return -(-self.left // self.workload.members.max)

    @property
    def first_start_s(self) -> int | None:
        return self.runs[0].start_s if self.runs else None

    @property
    def held_gpu_s(self) -> float:
        """GPU-seconds held by runs that ended."""
        return sum(r.gpus * (r.end_s - r.start_s) for r in self.runs if r.end_s is not None) / 1000

    @property
    def lost_gpu_s(self) -> float:
        """GPU-seconds held beyond the useful run time at the speed of its last run, once it has ended."""
        work = self.workload
        useful = work.gpus * work.members.max / 1000 * self.submission.duration_s
        useful /= self.run.speed if self.runs else 1.0
        return max(0.0, self.held_gpu_s - useful) if self.runs else 0.0

    def saved_s(self, now_s: int) -> int:
        """The part of the current run's useful seconds that an eviction would not undo."""
        step = self.submission.checkpoint_s
        return max(0, now_s - self.run.warm_s) // step * step if step else 0

    def start(self, now_s: int, now: datetime, decision: Decision) -> None:
        restart_s = self.submission.restart_s if self.runs else 0
        self._run(now_s, decision.members, restart_s, decision.gpu_class)
        self.workload = after(self.workload, decision, now, at_once=True)

    def resize(self, now_s: int, now: datetime, decision: Decision) -> None:
        """It goes on with other members from where it is, which is as good as a checkpoint."""
        run = self.run
        self.left -= run.done(max(0, now_s - run.warm_s))
        run.end_s = now_s
        rest_s = max(0, run.warm_s - now_s)
        self._run(now_s, decision.members, rest_s, self.workload.gpu_class)
        self.workload = after(self.workload, decision, now, at_once=True)

    def move(self, now_s: int, now: datetime, decision: Decision) -> None:
        """It starts again elsewhere: work since the last checkpoint is lost. Its former GPUs are free."""
        self._lose(now_s)
        self.run.end_s = now_s
        self.start(now_s, now, decision)

    def _lose(self, now_s: int) -> None:
        """What the last checkpoint does not hold has to be done again."""
        self.left -= min(self.left, self.run.done(self.saved_s(now_s)))

    def _run(self, now_s: int, members: int, restart_s: int, gpu_class: str | None) -> None:
        gpus, speed = self.workload.gpus * members, self.speeds.get(gpu_class or "", 1.0)
        self.runs.append(Run(now_s, gpus, restart_s, members=members, speed=speed))

    def promise(self, now: datetime, decision: Decision) -> bool:
        """It waits for its victims to leave these seats; whether that is new."""
        promised = after(self.workload, decision, now)
        changed, self.workload = promised != self.workload, promised
        return changed

    def expect_room(self, leave: Iterable[Job], now: datetime) -> bool:
        """Those who ``leave`` make room for it; whether that is at another time than was known."""
        known = self.workload.room_due
        expected = room_due([job.gone_by for job in leave], known, now)
        self.workload = replace(self.workload, room_due=expected)
        return expected != known

    def forget_promise(self) -> bool:
        """It waits like any other; whether it did not before."""
        before, self.workload = self.workload, without_claim(self.workload)
        return before is not self.workload

    def take(self, milli_gpus: int) -> None:
        """So much was evicted for it."""
        taken = self.workload.taken_gpus + milli_gpus
        self.workload = replace(self.workload, taken_gpus=taken)

    def checkpoint(self, now_s: int, now: datetime) -> bool:
        """Notes the last checkpoint in ``workload``; whether that changed it."""
        saved_s = self.saved_s(now_s)
        if not saved_s:
            return False
        at = now - timedelta(seconds=now_s - self.run.warm_s - saved_s)
        if at == self.workload.checkpointed:
            return False
        self.workload = replace(self.workload, checkpointed=at)
        return True

    def evict(self, now_s: int, now: datetime, rival: str | None) -> None:
        """Work since the last checkpoint is lost; its GPUs stay held until ``release``."""
        self._lose(now_s)
        self.evictions += 1
        self.workload = evicted(self.workload, now, rival)

    def crash(self, now_s: int) -> None:
        """Its node broke: work since the last checkpoint is lost, and it waits again. That is no eviction."""
        self._lose(now_s)
        self.release(now_s)

    def release(self, now_s: int) -> None:
        """Its GPUs are free: it waits again."""
        self.run.end_s, self.gone_by = now_s, None
        self.workload = gone(self.workload)

    def finish(self, now_s: int) -> None:
        self.run.end_s = self.end_s = now_s
