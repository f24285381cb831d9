"""How long work would run that nobody has submitted yet: a question as plain JSON, answered by the
process that holds the model.

A question is the same as long as nothing of the work and no version of the model changes, so that whoever
types the same twice has the answer at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from scheduling.models import Cluster, Workload
from scheduling.prediction.learner import Models, say
from scheduling.prediction.quantiles import rest_s
from scheduling.prediction.runs import Work
from scheduling.services.run_times.model_cache import models_of
from scheduling.services.run_times.runs import work_of
from scheduling.services.run_times.serving import serving

Json = dict[str, Any]
COLUMNS = (
    "name", "user", "image", "type", "gpus", "memory_mib", "min_members", "run_time_limit_s",
)  # fmt: skip
"""Of a workload, besides its queue and the classes that it may use."""


def question_of(*, cluster: Cluster, work: Workload, gpu_classes: Sequence[str]) -> Json | None:
    """The question how long ``work``, which need not be saved, would run on each of ``gpu_classes``; None
    before anything was learned."""
    predictor = serving(cluster)
    if predictor is None:
        return None
    return {
        **{name: getattr(work, name) for name in COLUMNS},
        "predictor": predictor.pk,
        "queue": work.queue_id,
        "gpu_classes": list(gpu_classes),
        "accepted": list(work.gpu_classes),
    }


def answer(cluster: Cluster, question: Json) -> Json:
    """By class, for ``expected_of``; reads the model."""
    found = expected_on(
        cluster=cluster, work=_work(cluster, question), gpu_classes=question["gpu_classes"]
    )
    return {name: asdict(one) for name, one in found.items()}


def expected_of(answer: Json) -> dict[str, ExpectedRunTime]:
    """By class."""
    return {name: _expected(one) for name, one in answer.items()}


def _work(cluster: Cluster, question: Json) -> Workload:
    return Workload(
        cluster=cluster,
        queue_id=question["queue"],
        gpu_classes=question["accepted"],
        submitted_at=cluster.now(),
        **{name: question[name] for name in COLUMNS},
    )


def _expected(one: Mapping[str, Any]) -> ExpectedRunTime:
    known = {field.name: one[field.name] for field in fields(ExpectedRunTime)}
    pace = known.pop("pace")
    return ExpectedRunTime(**known, pace=PaceComparison(**pace) if pace else None)


@dataclass(frozen=True, slots=True)
class PaceComparison:
    """So many times as fast as on ``against``, as ``runs`` of ``groups`` names show that have run on both;
    ``own`` of them are of its own name and image."""

    against: str
    ratio: float
    runs: int
    groups: int
    own: int


@dataclass(frozen=True, slots=True)
class ExpectedRunTime:
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
    pace: PaceComparison | None = None
    free_p50_s: float = 0.0
    free_p90_s: float = 0.0
    """As it would run if no limit ended it."""

    @property
    def compares(self) -> bool:
        """Whether it may be held against what is expected on another class."""
        return bool(self.runs) and self.paced


def expected_on(
    *, cluster: Cluster, work: Workload, gpu_classes: Sequence[str]
) -> dict[str, ExpectedRunTime]:
    """By class; empty before anything was learned. ``work`` need not be saved."""
    predictor = serving(cluster)
    if predictor is None:
        return {}
    now = cluster.now()
    with models_of(cluster, predictor, now) as models:
        return {
            name: _on(models, work, name, first_of(work, gpu_classes), now.timestamp())
            for name in gpu_classes
        }


def first_of(work: Workload, gpu_classes: Sequence[str]) -> str:
    """The class that others are held against: the first that it wishes, else that is asked about."""
    return next(iter([*work.gpu_classes, *gpu_classes]), "")


def _on(models: Models, row: Workload, gpu_class: str, first: str, now: float) -> ExpectedRunTime:
    work = work_of(row, gpu_class)
    said = say(models, work, now, models.submissions.seen(work))
    p10, p50, p90 = rest_s(said.quantiles, 0.0, work.limit_s)
    _, free_p50, free_p90 = rest_s(said.quantiles)
    ran_on = said.estimate.classes
    paces = models.history.paces
    return ExpectedRunTime(
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


def _compared(models: Models, work: Work, first: str, gpu_class: str) -> PaceComparison | None:
    if first == gpu_class:
        return None
    pace = models.history.paces.between(work, first, gpu_class)
    if pace is None:
        return None
    return PaceComparison(first, round(pace.ratio, 3), pace.runs, pace.groups, pace.own)
