"""How long work would run, class by class, as the model in this process says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduling.models import Cluster, Workload
from scheduling.prediction.learner import Models, say
from scheduling.prediction.quantiles import rest_s

from .holding import held
from .runs import work_of
from .serving import serving


@dataclass(frozen=True, slots=True)
class Expected:
    """Quantiles of a run in seconds, and what they were learned from: ``runs`` of ``group`` (as
    ``prediction.history`` names it), of them ``here`` on the class in question. ``paced``: it is known how
    the class compares with those that the others ran on."""

    p10_s: float
    p50_s: float
    p90_s: float
    group: str
    runs: int
    here: int
    paced: bool

    @property
    def compares(self) -> bool:
        """Whether it may be held against what is expected on another class."""
        return bool(self.here) or self.paced


def expected_on(
    *, cluster: Cluster, work: Workload, gpu_classes: Sequence[str]
) -> dict[str, Expected]:
    """By class; empty before anything was learned. ``work`` need not be saved."""
    predictor = serving(cluster)
    if predictor is None:
        return {}
    now = cluster.now()
    with held(cluster, predictor, now) as models:
        return {name: _on(models, work, name, now.timestamp()) for name in gpu_classes}


def _on(models: Models, row: Workload, gpu_class: str, now: float) -> Expected:
    work = work_of(row, gpu_class)
    said = say(models, work, now, models.submissions.seen(work))
    p10, p50, p90 = rest_s(said.told, 0.0, work.limit_s)
    ran_on = said.estimate.classes
    paces = models.history.paces
    return Expected(
        p10_s=p10,
        p50_s=p50,
        p90_s=p90,
        group=said.estimate.group,
        runs=len(ran_on),
        here=ran_on.count(gpu_class),
        paced=any(name and paces.between(work, name, gpu_class) for name in set(ran_on)),
    )
