"""A life of a study of capacity: the last days on one number of GPUs, with one seed.

All lives of a seed come before those of the next, so that a study that is cut short by its bound has whole
replications.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import lru_cache

import numpy as np

from scheduling.engine import model as m
from scheduling.engine.document.reader import parse
from scheduling.models import Result, Study
from scheduling.services.ledger.past import LedgerPast, past_of
from scheduling.services.studies.capacity.ladder import (
    alone_in,
    changed,
    names_below,
    only,
    with_quota,
)
from scheduling.services.studies.whatif.replay import life
from scheduling.simulation.ahead.compare import WindowOutcome


def live(row: Result) -> tuple[dict[str, list[float]], dict[str, float]]:
    """GPU class -> P50 and P90 wait in seconds, and of how many workloads: of the class that has more or
    fewer GPUs, or of all as they are."""
    study = row.variant.study
    template, past = _stage(study.pk, study.made_at)
    world = _world(study, replace(template, now=past.begin), row.variant.changes)
    found = life(world, past.submissions, past.before, past, row.seed)
    changes = row.variant.changes
    names = [one["gpu_class"] for one in changes or study.basis["curves"]]
    return {name: _waits(found, name) for name in names}, {}


@lru_cache(maxsize=2)
def _stage(study_id: int, _made_at: datetime) -> tuple[m.Snapshot, LedgerPast]:
    """Neither changes while it is lived: read once by a worker that lives several of its lives."""
    study = Study.objects.select_related("cluster", "queue").get(pk=study_id)
    template, (_, end) = parse(study.world), study.period
    past = past_of(study.cluster, days=study.days, snapshot=replace(template, now=end))
    if study.queue is None:
        return template, past
    name = study.queue.name
    return alone_in(template, name), only(past, names_below(template, name))


def _world(study: Study, world: m.Snapshot, changes: list[dict[str, int | str]]) -> m.Snapshot:
    for one in changes:
        name, gpus, nodes = str(one["gpu_class"]), int(one["gpus"]), int(one["nodes"])
        if study.queue is not None:
            world = with_quota(world, study.queue.name, name, gpus)
        else:
            world = changed(world, name, nodes, study.question["step_gpus"])
    return world


def _waits(found: WindowOutcome, gpu_class: str) -> list[float]:
    which = np.flatnonzero(np.array(found.gpu_class) == gpu_class)
    p50_s, p90_s = found.waits(which)
    return [float(p50_s), float(p90_s), int(which.size)]
