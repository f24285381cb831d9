"""A Gymnasium environment of the simulator: who wants more than weights may learn on it.

An episode is a window of recorded work on a pool. Each step the agent states the weights of the learned
order, and the shipped engine plans with them at every event of the next hour. The reward is minus the hours
that work waited in that hour, so that the return of an episode is minus all waiting within it.

Needs ``gymnasium`` (requirements-dev): nothing of the product imports this module.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from scheduling.engine import plan as engine_plan
from scheduling.engine.features import NAMES
from scheduling.engine.model import (
    MILLI,
    Decision,
    Phase,
    Plan,
    Policy,
    Sharing,
    Snapshot,
    Workload,
)
from scheduling.simulation.learning.windows import Window
from scheduling.simulation.replay.weir import pool, submissions
from scheduling.simulation.run.jobs import Job, Submission
from scheduling.simulation.run.options import Options
from scheduling.simulation.run.planners import SnapshotPlanner
from scheduling.simulation.run.simulator import Observer, Simulator

Floats = npt.NDArray[np.float32]
SEEN = ("expected_rest", "size", "waited", "saved", "evicted")
"""Features of the engine that a snapshot alone tells, in its units."""
FIRST = 16
"""So many of those that wait are observed, whoever came first."""
STEP_S = 3600
MOST_WEIGHT = 5.0
"""What an action of 1 stands for."""
MOST_SEEN = 100.0
MOVED_S = 900
"""By its seed an episode has each job arrive up to so much later than it did."""
UNKNOWN_S = 3600.0
"""Expected run time while nothing of a queue has ended."""


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


class OrderEnv(gymnasium.Env[Floats, Floats]):
    """Action: a weight for each of ``NAMES``, in parts of ``MOST_WEIGHT``.

    Observation: for the first that wait a row of 1 and ``SEEN`` (zeros where nobody is), then how many wait
    and what part of the GPUs is free. It ends when all work is done, and is cut off at the end of the window.
    Deterministic by seed.
    """

    metadata = {"render_modes": []}

    def __init__(self, window: Window, *, sharing: Sharing = Sharing.THROUGHPUT) -> None:
        self._window = window
        self._template = pool(window.trace, window.nodes, Policy(sharing=sharing))
        self._jobs = list(submissions(window.trace))
        shape = (FIRST * (1 + len(SEEN)) + 2,)
        self.observation_space = spaces.Box(-MOST_SEEN, MOST_SEEN, shape, np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (len(NAMES),), np.float32)
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
        self._clerk, self._now_s = _Clerk(origin), 0
        self._weights: dict[str, float] = {}
        self._planner = SnapshotPlanner(self._template, origin, self._plan)
        self._simulator = Simulator(self._planner, origin, Options(), self._clerk)
        self._simulator.begin(jobs)

    def _plan(self, snapshot: Snapshot) -> Plan:
        return engine_plan(self._expecting(snapshot))

    def _expecting(self, snapshot: Snapshot) -> Snapshot:
        works = tuple(replace(w, rank_s=self._clerk.expected_s(w)) for w in snapshot.workloads)
        policy = replace(snapshot.policy, order_weights=self._weights)
        return replace(snapshot, workloads=works, policy=policy)

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        self._weights = {
            name: MOST_WEIGHT * float(part) for name, part in zip(NAMES, action, strict=True)
        }
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
        rows = np.zeros((FIRST, 1 + len(SEEN)))
        for i, work in enumerate(waiting[:FIRST]):
            rows[i] = [1.0, *self._features(work, snapshot.now)]
        whole = [math.log2(1 + len(waiting)), _free(snapshot)]
        seen = np.concatenate([rows.ravel(), whole])
        return np.clip(seen, -MOST_SEEN, MOST_SEEN).astype(np.float32)

    def _features(self, work: Workload, now: datetime) -> list[float]:
        """In the order of ``SEEN``."""
        gpus = max(1, work.gpus * work.members.max) / MILLI
        return [
            math.log2(max(1.0, self._clerk.expected_s(work)) / 3600),
            math.log2(gpus),
            math.log2(1 + (now - work.submitted).total_seconds() / 600),
            math.log2(1 + work.saved_s / 600),
            float(work.evictions),
        ]


def _later(job: Submission, by_s: int) -> Submission:
    at = job.workload.submitted + timedelta(seconds=by_s)
    return replace(job, workload=replace(job.workload, submitted=at))


def _free(snapshot: Snapshot) -> float:
    capacity = sum(node.gpus for node in snapshot.nodes)
    held = sum(
        work.gpus * sum(work.placement.values())
        for work in snapshot.workloads
        if work.phase is Phase.RUNNING
    )
    return 1 - held / max(1, capacity)
