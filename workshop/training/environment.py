"""A Gymnasium environment of the simulator around the shipped engine.

An episode is a window of recorded work on a pool. Each step the agent chooses fields of the policy, and the
engine plans with them at every event of the next hour. The reward is minus the hours that work waited in that
hour, so that the return of an episode is minus all waiting within it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from scheduling.engine import plan as engine_plan
from scheduling.engine.model import (
    MILLI,
    Decision,
    Phase,
    Plan,
    Policy,
    PredictedRunTime,
    Sharing,
    Snapshot,
    Workload,
)
from scheduling.simulation.run.jobs import Submission
from workshop.simulator.jobs import Job
from workshop.simulator.options import SimulatorOptions
from workshop.simulator.planners import SnapshotPlanner
from workshop.simulator.replay import pool, submissions
from workshop.simulator.simulator import Observer, Simulator
from workshop.training.windows import Window

Floats = npt.NDArray[np.float32]
Choices = npt.NDArray[np.int64]


class Knob(NamedTuple):
    """A field of the policy, and the values that an action chooses among; the first is as shipped."""

    field: str
    values: tuple[Any, ...]


KNOBS = (
    Knob("sharing", (Sharing.FAIR_SHARE, Sharing.PROMISE, Sharing.THROUGHPUT)),
    Knob("order", ("arrival", "shortest_predicted")),
    Knob("backfill_quantile", (0.9, 0.5, 0.75)),
    Knob("spread_weight", (0.0, 0.5)),
)
STEP_S = 3600
MOVED_S = 900
"""By its seed an episode has each job arrive up to so much later than it did."""
UNKNOWN_S = 3600.0
"""Expected run time while nothing of a queue has ended."""
TAIL = 4.0
"""P90 of a run time as a multiple of its median, where one queue's past alone is known."""


def policy_of(action: Sequence[int] | Choices) -> Policy:
    """The shipped policy with the chosen values of ``KNOBS``."""
    chosen = {knob.field: knob.values[int(i)] for knob, i in zip(KNOBS, action, strict=True)}
    return replace(Policy(), **chosen)


class _Clerk(Observer):
    """Adds up how long work waits, and what the run times of each queue were."""

    def __init__(self, origin: datetime) -> None:
        self.waiting, self.waited_s = 0, 0.0
        self.run_s: dict[str, list[float]] = {}
        self._at = origin

    def pass_to(self, now: datetime) -> None:
        self.waited_s += self.waiting * (now - self._at).total_seconds()
        self._at = now

    def on_submit(self, now: datetime, job: Job) -> None:
        self.pass_to(now)
        self.waiting += 1

    def on_start(self, now: datetime, job: Job, decision: Decision) -> None:
        self.pass_to(now)
        self.waiting -= 1

    def on_requeue(self, now: datetime, job: Job) -> None:
        self.pass_to(now)
        self.waiting += 1

    def on_finish(self, now: datetime, job: Job) -> None:
        self.run_s.setdefault(job.workload.queue, []).append(float(job.submission.duration_s))

    def expected_s(self, work: Workload) -> float:
        """The geometric mean of what has ended of its queue."""
        known = self.run_s.get(work.queue)
        return math.exp(float(np.mean(np.log(known)))) if known else UNKNOWN_S


class PolicyEnv(gymnasium.Env[Floats, Choices]):
    """Action: of each of ``KNOBS`` the number of a value.

    Observation: log2 of 1 + how many wait, of 1 + the GPUs they ask for, of 1 + the minutes that the first
    has waited, and the part of the GPUs that is free. It ends when all work is done, and is cut off at the
    end of the window. Deterministic by seed.
    """

    metadata = {"render_modes": []}

    def __init__(self, window: Window) -> None:
        self._window = window
        self._template = pool(window.trace, window.nodes)
        self._jobs = list(submissions(window.trace, nodes=window.nodes))
        self.observation_space = spaces.Box(0.0, 100.0, (4,), np.float32)
        self.action_space = spaces.MultiDiscrete([len(knob.values) for knob in KNOBS])
        self._begin([])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        super().reset(seed=seed)
        self._begin(self._drawn())
        return self._observed(), {}

    def _drawn(self) -> list[Submission]:
        later_s = self.np_random.integers(0, MOVED_S, len(self._jobs))
        moved = [_later(job, int(s)) for job, s in zip(self._jobs, later_s, strict=True)]
        return sorted(moved, key=lambda job: (job.workload.submitted, job.workload.name))

    def _begin(self, jobs: Sequence[Submission]) -> None:
        origin = self._template.now
        self._clerk, self._now_s, self._policy = _Clerk(origin), 0, Policy()
        self._planner = SnapshotPlanner(self._template, origin, self._plan)
        self._simulator = Simulator(self._planner, origin, SimulatorOptions(), self._clerk)
        self._simulator.begin(jobs)

    def _plan(self, snapshot: Snapshot) -> Plan:
        works = tuple(self._expecting(work) for work in snapshot.workloads)
        return engine_plan(replace(snapshot, workloads=works, policy=self._policy))

    def _expecting(self, work: Workload) -> Workload:
        median_s = self._clerk.expected_s(work)
        return replace(work, rank_s=median_s, predicted=PredictedRunTime(median_s, TAIL * median_s))

    def step(self, action: Choices) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        self._policy = policy_of(action)
        self._now_s += STEP_S
        before_s = self._clerk.waited_s
        self._simulator.go_on(self._now_s)
        self._clerk.pass_to(self._now)
        reward = -(self._clerk.waited_s - before_s) / 3600
        is_cut = self._now >= self._window.end
        return self._observed(), reward, self._simulator.is_over, is_cut, {}

    @property
    def _now(self) -> datetime:
        return self._template.now + timedelta(seconds=self._now_s)

    def _observed(self) -> Floats:
        self._planner.pass_time(self._now_s)
        snapshot = self._planner.snapshot(self._now_s)
        waiting = [work for work in snapshot.workloads if work.phase is Phase.PENDING]
        gpus = sum(work.gpus * work.members.max for work in waiting) / MILLI
        first = min((work.submitted for work in waiting), default=snapshot.now)
        minutes = (snapshot.now - first).total_seconds() / 60
        seen = [math.log2(1 + each) for each in (len(waiting), gpus, minutes)]
        return np.array([*seen, _free(snapshot)], np.float32)


def _later(job: Submission, by_s: int) -> Submission:
    at = job.workload.submitted + timedelta(seconds=by_s)
    return replace(job, workload=replace(job.workload, submitted=at))


def _free(snapshot: Snapshot) -> float:
    capacity = sum(node.gpus for node in snapshot.nodes)
    usage = sum(
        work.gpus * sum(work.placement.values())
        for work in snapshot.workloads
        if work.phase is Phase.RUNNING
    )
    return max(0.0, 1 - usage / max(1, capacity))
