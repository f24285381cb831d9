"""How long work would run, class by class, as the model in this process says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduling.models import Cluster, Workload
from scheduling.prediction.learner import Models, say
from scheduling.prediction.quantiles import rest_s
from scheduling.prediction.runs import Work

from .holding import held
from .runs import work_of
from .serving import serving


@dataclass(frozen=True, slots=True)
class Compared:
    """So many times as fast as on ``against``, as ``runs`` of ``groups`` names show that have run on both;
    ``own`` of them are of its own name and image."""

    against: str
    ratio: float
    runs: int
    groups: int
    own: int


@dataclass(frozen=True, slots=True)
class Expected:
    """Quantiles of a run in seconds, and what they were learned from: ``runs`` of ``group`` (as
    ``prediction.history`` names it), of them ``here`` on the class in question. ``paced``: it is known how
    the class compares with all that those ran on. ``pace``: how it compares with the first of the classes
    that were asked about; None where nobody knows, or of the first itself."""

    p10_s: float
    p50_s: float
    p90_s: float
    group: str
    runs: int
    here: int
    paced: bool
    pace: Compared | None = None
    free_p50_s: float = 0.0
    free_p90_s: float = 0.0
    """As it would run if no limit ended it."""

    @property
    def compares(self) -> bool:
        """Whether it may be held against what is expected on another class."""
        return bool(self.runs) and self.paced


def expected_on(
    *, cluster: Cluster, work: Workload, gpu_classes: Sequence[str]
) -> dict[str, Expected]:
    """By class; empty before anything was learned. ``work`` need not be saved."""
    predictor = serving(cluster)
    if predictor is None:
        return {}
    now = cluster.now()
    with held(cluster, predictor, now) as models:
        return {
            name: _on(models, work, name, first_of(work, gpu_classes), now.timestamp())
            for name in gpu_classes
        }


def first_of(work: Workload, gpu_classes: Sequence[str]) -> str:
    """The class that others are held against: the first that it wishes, else that is asked about."""
    return next(iter([*work.gpu_classes, *gpu_classes]), "")


def _on(models: Models, row: Workload, gpu_class: str, first: str, now: float) -> Expected:
    work = work_of(row, gpu_class)
    said = say(models, work, now, models.submissions.seen(work))
    p10, p50, p90 = rest_s(said.told, 0.0, work.limit_s)
    _, free_p50, free_p90 = rest_s(said.told)
    ran_on = said.estimate.classes
    paces = models.history.paces
    return Expected(
        p10_s=p10,
        p50_s=p50,
        p90_s=p90,
        group=said.estimate.group,
        runs=len(ran_on),
        here=ran_on.count(gpu_class),
        paced=all(name and paces.between(work, name, gpu_class) for name in set(ran_on)),
        pace=_compared(models, work, first, gpu_class),
        free_p50_s=free_p50,
        free_p90_s=free_p90,
    )


def _compared(models: Models, work: Work, first: str, gpu_class: str) -> Compared | None:
    if first == gpu_class:
        return None
    pace = models.history.paces.between(work, first, gpu_class)
    if pace is None:
        return None
    return Compared(first, round(pace.ratio, 3), pace.runs, pace.groups, pace.own)
