"""Start forecasts over a replay of a trace: what is told at a moment knows only what had ended by then.

The replay is stopped at sampled moments. From each the shipped engine runs forward over drawn run times
and drawn arrivals, and what it tells is held against what the replay then does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from scheduling.engine import encode
from scheduling.engine.compile.structs import Ints
from scheduling.engine.model import Policy
from scheduling.engine.state.units import PENDING, RUNNING
from scheduling.simulation.ahead.forward import live_on
from scheduling.simulation.ahead.opening import Newcomers, Opening, picked, twin
from scheduling.simulation.ahead.rhythm import Rhythm
from scheduling.simulation.ahead.runs import Question, RunTimes
from scheduling.simulation.loop.life import new_jobs
from scheduling.simulation.loop.lives import Course
from scheduling.simulation.loop.loop import SHORT, live
from scheduling.simulation.run.jobs import CHECKPOINT_S, RESTART_S
from scheduling.simulation.run.options import EVERY_EVENT, Options
from scheduling.simulation.traces import Trace
from workshop.simulator.replay import cast_of, pool

HOUR_S = 3600
FUTURES = 30
MOST_AHEAD_S = 7 * 86400


class Walk(Course):
    """A replay that can be stopped, looked at and gone on with."""

    def __init__(
        self, trace: Trace, nodes: int, policy: Policy, options: Options = EVERY_EVENT
    ) -> None:
        frame = encode(pool(trace, nodes, policy))
        cast = cast_of(trace, frame)
        cast.restart[:] = RESTART_S
        checkpoint_s = np.full(len(trace), CHECKPOINT_S, np.int64)
        restart_s = np.full(len(trace), RESTART_S, np.int64)
        self.cast = cast
        self.jobs = new_jobs(trace.submit_s, trace.duration_s, checkpoint_s, restart_s, cast.most)
        self.origin_s = float(frame.now)
        self.options = options
        super().__init__(frame, cast, self.jobs, options)

    def go_to(self, stop_s: int) -> None:
        state = SHORT
        while state == SHORT:
            jobs, cast, clock, usage, outlook, entries = self._life
            state, _, ends, _ = live(
                self._frame.world, cast, jobs, clock, usage, outlook, entries, self._ends, self._job_in,
                self._plan, stop_s,
            )  # fmt: skip
            self._grow(ends)
        self._pages.clear()
        self._frame.now = self.origin_s + stop_s

    def opening(self, now_s: int) -> tuple[Opening, Ints]:
        """What is open now, and which job of the trace each is."""
        frame = twin(self._frame)
        phase = frame.work.phase
        slots = np.flatnonzero((phase == PENDING) | (phase == RUNNING))
        which = self._job_in[slots]
        runs = phase[slots] == RUNNING
        jobs = self.jobs
        return Opening(
            frame=frame,
            slots=slots,
            since=np.where(runs, jobs.since[which] - now_s, 0),
            warm=np.where(runs, np.minimum(0, jobs.warm[which] - now_s), 0),
            checkpoint=jobs.checkpoint[which],
            restart=jobs.restart[which],
            evicted=jobs.evictions[which] > 0,
        ), which


@dataclass(slots=True)
class Forecaster:
    """What is known of a trace by the moment of a forecast."""

    trace: Trace
    walk: Walk
    seed: int
    futures: int = FUTURES
    runs: RunTimes = field(default_factory=RunTimes)
    ended: list[tuple[int, int]] = field(default_factory=list)
    _seen: set[int] = field(default_factory=set)

    def kinds(self, job: int) -> tuple[tuple[int, ...], ...]:
        queue, gpus = int(self.trace.queue[job]), int(self.trace.gpus[job])
        return (queue, gpus), (-1, gpus), (queue, -1), (-1, -1)

    def learn(self, now_s: int, since_s: int) -> None:
        """Hear of what ended after ``since_s``."""
        end = self.walk.jobs.end
        for job in np.flatnonzero((end > since_s) & (end <= now_s)).tolist():
            self.ended.append((int(end[job]), job))
        self.ended.sort()
        for _, job in self.ended:
            self.runs.note(self.kinds(job), float(self.trace.duration_s[job]))
        self.ended.clear()

    def tell(self, now_s: int, awaited: Ints | None = None) -> tuple[Ints, Ints]:
        """The jobs that wait, or those of ``awaited`` that do, and the start of each in each future (-1: not
        within the horizon). Futures go by the replay's own options, and end when the last of these starts."""
        opening, which = self.walk.opening(now_s)
        dice = np.random.default_rng([self.seed, now_s])
        waiting = np.flatnonzero(opening.waits)
        if awaited is not None:
            waiting = waiting[np.isin(which[waiting], awaited)]
        if not waiting.size:
            return which[waiting], np.empty((0, 0), np.int64)
        questions = [
            self._question(int(job), now_s, opening, i) for i, job in enumerate(which.tolist())
        ]
        rests = self.runs.rests(questions, self.futures, dice).astype(np.int64)
        rhythm = self._rhythm(now_s)
        starts = np.empty((self.futures, waiting.size), np.int64)
        for number in range(self.futures):
            coming = self._coming(rhythm, now_s, dice)
            future = live_on(
                opening, rests[number], coming,
                stop_s=MOST_AHEAD_S, awaited=waiting, options=self.walk.options,
            )  # fmt: skip
            starts[number] = future.starts[waiting]
        return which[waiting], starts

    def _question(self, job: int, now_s: int, opening: Opening, i: int) -> Question:
        jobs = self.walk.jobs
        done = int(self.trace.duration_s[job]) - int(jobs.left[job]) // int(
            self.walk.cast.most[job]
        )
        return Question(self.kinds(job), float(max(0, done - int(opening.warm[i]))))

    def _rhythm(self, now_s: int) -> Rhythm:
        """Arrivals before now."""
        known = int(np.searchsorted(self.trace.submit_s, now_s, side="right"))
        return Rhythm(self.trace.submit_s[:known], now_s)

    def _coming(self, rhythm: Rhythm, now_s: int, dice: Generator) -> Newcomers:
        """Drawn arrivals, each with a run of its like."""
        jobs, submit = rhythm.draw(MOST_AHEAD_S, dice)
        cast = picked(self.walk.cast, jobs)
        cast.submitted[:] = self.walk.origin_s + now_s + submit
        cast.tie[:] = len(self.trace) + np.arange(submit.size)
        end = self.walk.jobs.end[jobs]
        known = (end >= 0) & (end <= now_s)
        duration = self.trace.duration_s[jobs].copy()
        unknown = np.flatnonzero(~known)
        if unknown.size:
            questions = [Question(self.kinds(int(jobs[i]))) for i in unknown]
            duration[unknown] = self.runs.rests(questions, 1, dice)[0]
        steps = np.full(submit.size, CHECKPOINT_S, np.int64)
        return Newcomers(cast, submit, duration, steps, np.full(submit.size, RESTART_S, np.int64))
