"""A life that goes on from a moment, by the shipped engine in the compiled loop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduling.engine import plan_frame
from scheduling.engine.compile.kernel import address_of
from scheduling.engine.compile.structs import Ints, as_struct
from scheduling.engine.cycle.one_pass import plan_world
from scheduling.simulation.loop.life import NEVER, Clock, empty_entries, joined
from scheduling.simulation.loop.lives import DRAIN, LEDGER_PAGE, Course, Life
from scheduling.simulation.loop.loop import SHORT, UNSETTLED, live
from scheduling.simulation.loop.outlook import no_outlook
from scheduling.simulation.run.options import MAX_PLANS_AT_ONCE, Options, UnsettledError

from .opening import LEAVE_S, Newcomers, Opening, jobs_of, twin, usage_of

GOES_ON = Options(leave_s=LEAVE_S)
LOOKS_S = tuple(h * 3600 for h in (1, 3, 6, 12, 24, 48, 96))
"""A life is looked at then: once all that is asked for has started, the rest need not be lived."""


class Forward(Course):
    """One future of ``opening``. ``is_played_along``: who comes states when its own quota would let it begin;
    otherwise nobody knows."""

    def __init__(
        self,
        opening: Opening,
        rest_s: Ints,
        coming: Newcomers,
        stop_s: int,
        options: Options,
        *,
        is_played_along: bool = False,
    ) -> None:
        frame = twin(opening.frame)
        jobs, cast = jobs_of(opening, rest_s, coming)
        self._frame, self._jobs = frame, jobs
        if not is_played_along:
            frame.tree.sharing.played[:] = False
        frame.make_room(slots=1, wishes=cast.wish.shape[0])
        usage = usage_of(frame)
        plan_frame(frame)
        self._plan = address_of(plan_world, frame.world)
        # The loop stops for a new page whenever all slots might not find room on it.
        self._entries = empty_entries(LEDGER_PAGE + 4 * frame.work.phase.size)
        self._pages = []
        self._job_in = np.full(frame.work.phase.size, -1, np.int64)
        self._job_in[opening.slots] = np.arange(opening.slots.size)
        running = np.flatnonzero(jobs.free_at >= 0)
        self._ends = np.zeros(max(1024, 2 * running.size), np.int64)
        self._ends[: running.size] = np.sort(jobs.free_at[running] * jobs.submit.size + running)
        self._stop = stop_s
        restless = bool(cast.elastic.any()) or bool((frame.tree.stop == DRAIN).any())
        clock = Clock(
            float(frame.now), options.cycle_s, options.leave_s, not restless,
            0, opening.slots.size, int(opening.waits.sum()), running.size, -NEVER, 0, 0, 0,
        )  # fmt: skip
        self._life = [
            as_struct(part) for part in (jobs, cast, clock, usage, no_outlook(), self._entries)
        ]

    def live_until(self, awaited: Ints) -> Life:
        """Until each of ``awaited`` has started, or the stop. Raises UnsettledError."""
        for stop_s in [s for s in LOOKS_S if s < self._stop] + [self._stop]:
            self._go_to(stop_s)
            if (self._jobs.first[awaited] >= 0).all():
                break
        return Life(self._jobs, joined(self._pages), 0, stop_s)

    def _go_to(self, stop_s: int) -> None:
        state = SHORT
        while state == SHORT:
            jobs, cast, clock, usage, outlook, entries = self._life
            state, now_s, ends, _ = live(
                self._frame.world, cast, jobs, clock, usage, outlook, entries, self._ends, self._job_in,
                self._plan, stop_s,
            )  # fmt: skip
            self._grow(ends)
        if state == UNSETTLED:
            raise UnsettledError(f"{MAX_PLANS_AT_ONCE} plans at second {now_s}")


@dataclass(frozen=True, slots=True)
class Future:
    """One life: ``starts`` are the seconds until each of the open work starts, -1 where it had not by then.
    Work that ran at the opening has 0."""

    starts: Ints
    lived: int
    """Workloads that it was lived for: the open ones and who arrived."""


def live_on(
    opening: Opening,
    rest_s: Ints,
    coming: Newcomers | None = None,
    *,
    stop_s: int = NEVER,
    awaited: Ints | None = None,
    options: Options = GOES_ON,
) -> Future:
    """Until each of the ``awaited`` (numbers of open work; None: all that waits) has started, or the stop.

    Raises UnsettledError.
    """
    course = Forward(opening, rest_s, coming or Newcomers.nobody(), stop_s, options)
    life = course.live_until(np.flatnonzero(opening.waits) if awaited is None else awaited)
    count = opening.slots.size
    arrived = int((life.jobs.submit[count:] <= life.end_s).sum())
    return Future(life.jobs.first[:count].copy(), count + arrived)
