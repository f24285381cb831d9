"""A whole life in the compiled loop: jobs in, what became of them and the ledger of acts out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scheduling.engine import Frame, encode, plan_frame
from scheduling.engine.codes import ACTIONS, REASONS
from scheduling.engine.compile.kernel import address_of
from scheduling.engine.compile.structs import as_struct
from scheduling.engine.cycle.one_pass import plan_world
from scheduling.engine.model import Action, Reason, Sharing, Snapshot
from scheduling.engine.snapshot.describing import describe
from scheduling.engine.state.input import Work
from scheduling.engine.state.session import empty_work
from scheduling.simulation.loop.outlook import Outlook, no_outlook, outlook_on
from scheduling.simulation.run.jobs import Submission
from scheduling.simulation.run.options import (
    EVERY_EVENT,
    MAX_PLANS_AT_ONCE,
    Options,
    UnsettledError,
)
from scheduling.simulation.run.scribe import Scribe
from scheduling.simulation.run.usage import no_usage

from .life import NEVER, Clock, Entries, Jobs, copy_entries, empty_entries, joined, new_jobs
from .loop import SHORT, UNSETTLED, live

LEDGER_PAGE = 1 << 14
DRAIN = 2


@dataclass(frozen=True, slots=True)
class Act:
    """One decision that was carried out; ``gpus`` in milli-GPU, ``lost_gpu_s`` by an eviction."""

    at_s: int
    job: int
    action: Action
    reason: Reason
    gpus: int
    lost_gpu_s: float


@dataclass(frozen=True, slots=True)
class Life:
    """``jobs`` tell how each fared; ``ledger`` has the acts in order; ``end_s`` is when it stopped."""

    jobs: Jobs
    ledger: Entries
    plans: int
    end_s: int

    def acts(self) -> Iterator[Act]:
        e = self.ledger
        for i in range(int(e.used[0])):
            action, reason = ACTIONS[e.action[i]], REASONS[e.reason[i]]
            gpus, lost = int(e.gpus[i]), float(e.lost[i])
            yield Act(int(e.at[i]), int(e.job[i]), action, reason, gpus, lost)


class Course:
    """The tables of one life and what makes them grow."""

    def __init__(
        self, frame: Frame, cast: Work, jobs: Jobs, options: Options, outlook: Outlook | None = None
    ) -> None:
        """``frame`` is empty, its ``now`` the origin; ``cast`` describes the jobs. Without an ``outlook``
        nobody plays own partitions along.
        """
        self._frame, self._jobs = frame, jobs
        if outlook is None:
            frame.tree.sharing.played[:] = False
        frame.make_room(slots=1, wishes=cast.wish.shape[0])
        plan_frame(frame)
        self._plan = address_of(plan_world, frame.world)
        self._entries = empty_entries(max(LEDGER_PAGE, jobs.submit.size + 1))
        self._pages: list[Entries] = []
        self._ends = np.zeros(1024, np.int64)
        self._job_in = np.full(frame.work.phase.size, -1, np.int64)
        self._stop = _stop_s(frame, options)
        restless = bool(cast.elastic.any()) or bool((frame.tree.stop == DRAIN).any())
        clock = Clock(
            float(frame.now), options.cycle_s, options.leave_s, not restless,
            0, 0, 0, 0, -NEVER, NEVER, 0, 0,
        )  # fmt: skip
        self._life = [
            as_struct(part)
            for part in (jobs, cast, clock, no_usage(frame), outlook or no_outlook(), self._entries)
        ]

    def live(self) -> Life:
        """To the end. Raises UnsettledError."""
        state = SHORT
        while state == SHORT:
            jobs, cast, clock, usage, outlook, entries = self._life
            state, now_s, ends, plans = live(
                self._frame.world, cast, jobs, clock, usage, outlook, entries, self._ends,
                self._job_in, self._plan, self._stop,
            )  # fmt: skip
            self._grow(ends)
        if state == UNSETTLED:
            raise UnsettledError(f"{MAX_PLANS_AT_ONCE} plans at second {now_s}")
        return Life(self._jobs, joined(self._pages), plans, now_s)

    def _grow(self, ends: int) -> None:
        """Turn the ledger's page, and make room in whatever may run short."""
        self._pages.append(copy_entries(self._entries))
        self._entries.used[0] = 0
        seats = int(self._frame.buffers.out.pool.size[0])
        self._frame.widen()
        self._frame.make_room(slots=1, holds=seats)
        slots = self._frame.work.phase.size
        self._job_in = np.append(self._job_in, np.full(slots - self._job_in.size, -1, np.int64))
        if ends + 2 * slots > self._ends.size:
            self._ends = np.append(self._ends, np.zeros(ends + 2 * slots, np.int64))


def _stop_s(frame: Frame, options: Options) -> int:
    if options.until is None:
        return NEVER
    return math.ceil(options.until.timestamp() - frame.now)


def live_through(
    frame: Frame, cast: Work, jobs: Jobs, options: Options, outlook: Outlook | None = None
) -> Life:
    """Lives on ``frame``, which must be empty; its ``now`` is the origin. Raises UnsettledError."""
    return Course(frame, cast, jobs, options, outlook).live()


def live_submissions(
    template: Snapshot,
    submissions: Sequence[Submission],
    options: Options = EVERY_EVENT,
    *,
    foreseen: bool = False,
) -> Life:
    """The life that ``simulate`` lives, in the compiled loop; ``foreseen``, where ``template`` shares by
    merit or orders by rank, with own quotas played along and expected work learned from what is over.
    Raises UnsettledError."""
    frame = encode(replace(template, workloads=()))
    scribe = Scribe(frame)
    rows = [scribe.columns(s.workload) for s in submissions]
    wishes = max([1, *(len(row["classes"]) for row in rows)])
    cast = empty_work(len(rows), wishes, frame.work.need.shape[0])
    for i, row in enumerate(rows):
        describe(frame, cast, i, **row)
    cast.restart[:] = [s.restart_s for s in submissions]
    submit_s = np.round(cast.submitted - frame.now).astype(np.int64)
    cast.submitted[:] = frame.now + submit_s
    duration_s = np.array([s.duration_s for s in submissions], np.int64)
    checkpoint_s = np.array([s.checkpoint_s or 0 for s in submissions], np.int64)
    restart_s = cast.restart.astype(np.int64)
    jobs = new_jobs(submit_s, duration_s, checkpoint_s, restart_s, cast.most)
    outlook = _outlook(template, frame, cast, jobs) if foreseen else None
    return live_through(frame, cast, jobs, options, outlook)


def _outlook(template: Snapshot, frame: Frame, cast: Work, jobs: Jobs) -> Outlook | None:
    """Where anybody looks at it: each queue's own partition is its nominal quota."""
    by_rank = template.policy.order == "rank"
    sharings = {template.policy.sharing, *(queue.sharing for queue in template.queues)}
    if not by_rank and sharings <= {None, Sharing.FAIR_SHARE}:
        return None
    return outlook_on(frame, cast, jobs, frame.quotas.nominal.copy(), by_rank)
