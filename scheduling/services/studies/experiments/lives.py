"""A life of an experiment: its world and work, read once by a worker that lives several of its replays."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache

from scheduling.models import GpuClass, Result, Study
from scheduling.services.studies.experiments import figures, variants
from scheduling.services.studies.experiments.periods import period_of, world_of
from scheduling.simulation.ahead.compare import alone
from scheduling.simulation.ahead.period import Period, PeriodOutcome, drawn, live_again


def live(row: Result) -> tuple[figures.Json, figures.Json]:
    variant = row.variant
    key = variant.study_id, variant.study.made_at
    stage = _stage(*key)
    world = variants.world(stage.world, variant.changes)
    found = live_again(world, stage.drawn(row.seed))
    own = _own(*key, row.seed)
    return figures.of_replay(found, own, world, stage.prices, stage.length_s)


class Stage:
    def __init__(self, study: Study) -> None:
        self.world, self.period = world_of(study), period_of(study)
        begin, end = study.period
        self.length_s = (end - begin).total_seconds()
        of_cluster = GpuClass.objects.filter(cluster_id=study.cluster_id)
        rows = of_cluster.values_list("name", "price_per_gpu_hour")
        self.prices = {name: float(price or 0) for name, price in rows}
        self.drawn: Callable[[int], Period] = lru_cache(maxsize=2)(
            lambda seed: drawn(self.period, seed)
        )


@lru_cache(maxsize=2)
def _stage(study_id: int, _made_at: datetime) -> Stage:
    """Neither world nor work of a study changes while it is lived."""
    return Stage(Study.objects.get(pk=study_id))


@lru_cache(maxsize=4)
def _own(study_id: int, made_at: datetime, seed: int) -> PeriodOutcome:
    """Every queue on the nominal quota that A gives it, alone: what all variants are held against."""
    stage = _stage(study_id, made_at)
    return live_again(alone(stage.world), stage.drawn(seed))
