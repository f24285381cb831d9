"""A simulated past in which run times are learned as it is lived, and starts are forecast with them.

As on a live cluster, only that the model is asked at once and not by a task: a run is predicted when it is
submitted, judged when it has ended, and learned from after that.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from datetime import datetime

from scheduling.models import Cluster, ForecastOutcome
from scheduling.prediction.baselines import Baselines
from scheduling.prediction.learner import Learner, say
from scheduling.prediction.quantiles import log2_s, rest_s
from scheduling.services.run_times.learning import FITTED_AGAIN
from scheduling.services.run_times.rests import Rest
from scheduling.services.run_times.runs import ran_s, run_of, work_of
from scheduling.services.starts.history import StartHistory, known_from
from workshop.demo.past.forecasts import ForecastMoments, Moment, Teller, compare_with_simple
from workshop.simulator.jobs import Job


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run that has ended: whether it took no less than P10 and no more than P90, and by how many powers of
    two its P50, and the median of all that had ended, were off."""

    ended: datetime
    hit: bool
    error: float
    naive_error: float


class PastLessons(ForecastMoments):
    """Nothing is known at ``since``. Read ``judged`` and ``starts`` when it has been lived."""

    def __init__(self, cluster: Cluster, since: datetime) -> None:
        super().__init__(cluster, since)
        self.learner = Learner(again=FITTED_AGAIN)
        self.judged: list[JudgedRun] = []
        self._teller = Teller(self.workloads.__getitem__, self.classes)
        self._simple = Baselines()
        self._numbers = itertools.count()
        self._number: dict[str, int] = {}
        """Of what has not ended, as the learner knows it."""
        self._submitted: dict[str, tuple[float, ...]] = {}

    def on_submit(self, now: datetime, job: Job) -> None:
        super().on_submit(now, job)
        work = work_of(self.workloads[job.name])
        self._number[job.name] = number = next(self._numbers)
        self._submitted[job.name] = self.learner.models.submissions.seen(work)
        self.learner.submit(number, work)

    def on_finish(self, now: datetime, job: Job) -> None:
        super().on_finish(now, job)
        run = run_of(self.workloads[job.name])
        if run is None:
            return
        number = self._number.pop(job.name)
        said = self.learner.waiting[number]
        if not run.censored:
            took, forecast = log2_s(run.ran_s), said.quantiles
            self._simple.judge(run.work, run.ran_s)
            self.judged.append(
                JudgedRun(
                    ended=now,
                    hit=forecast.p10 <= took <= forecast.p90,
                    error=abs(took - forecast.p50),
                    naive_error=self._simple.errors["global_median"][-1],
                )
            )
        self.learner.end(number, run)
        self._simple.learn(run)

    def look(self, moment: Moment) -> None:
        self._teller.tell(moment, self._known(moment.now))

    def _known(self, now: datetime) -> StartHistory:
        rests = {name: self._rest(name, now) for name in self._number}
        return replace(known_from(self.workloads.values(), now), rests=rests)

    def _rest(self, name: str, now: datetime) -> Rest:
        row = self.workloads[name]
        work = work_of(row)
        said = say(self.learner.models, work, now.timestamp(), self._submitted[name])
        return Rest(now, *rest_s(said.quantiles, ran_s(row, now), work.limit_s))

    def starts(self) -> list[ForecastOutcome]:
        """What was told of starts when work was first seen waiting, of those that have come."""
        outcomes = self._teller.outcomes
        came = [one for one in outcomes if one.at_submission and one.workload.first_started_at]
        for one in came:
            one.started_at = one.workload.first_started_at
        compare_with_simple(came, list(self.workloads.values()))
        return came
