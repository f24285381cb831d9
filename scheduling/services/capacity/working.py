"""Working on a study: lives in a fixed order, one slice at a time.

All lives of a seed come before those of the next, so that a study that is cut short by its bound has whole
replications. A life that was kept is never lived again, so a slice may be killed anywhere and be sent twice.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
from django.db.models import F, Q
from django.utils import timezone

from scheduling.engine import model as m
from scheduling.engine.document.reader import parse
from scheduling.models import CapacityCurve, CapacityPoint, CapacityStudy, WhatIfState
from scheduling.services.capacity import studies
from scheduling.services.capacity.ladder import changed
from scheduling.services.capacity.quota import alone_in, names_below, only, with_quota
from scheduling.services.errors import ServiceError
from scheduling.services.ledger.past import Past, past_of
from scheduling.services.whatif.replay import CancelledError, life
from scheduling.simulation.ahead.compare import Lived

log = logging.getLogger(__name__)

SLICE_S = 20.0
"""CPU seconds after which a task leaves the worker to others."""
HELD = timedelta(minutes=15)
"""Far above what one life takes."""


@dataclass(frozen=True, slots=True)
class Part:
    """One life: the class (None: as it is, of all classes), steps more or fewer, and the seed."""

    curve: CapacityCurve | None
    nodes: int
    seed: int


def work(study_id: int) -> None:
    """One slice of a study; nothing where it is gone, has ended, or another is at it."""
    now = timezone.now()
    idle = Q(held_until=None) | Q(held_until__lt=now)
    mine = CapacityStudy.objects.filter(idle, pk=study_id, state__in=studies.OPEN)
    if not mine.update(state=WhatIfState.RUNNING, held_until=now + HELD):
        return
    study = CapacityStudy.objects.select_related("cluster", "queue").get(pk=study_id)
    try:
        has_more = _slice(study)
    except CancelledError:
        log.info("capacity study %s was cancelled", study_id)
    except (ServiceError, OSError, m.SnapshotError) as error:
        _end(study, WhatIfState.FAILED, fault=str(error)[:300])
    except Exception:
        _end(study, WhatIfState.FAILED, fault="It could not be worked out. Ask again, or an admin.")
        raise
    else:
        _hand_on(study) if has_more else _end(study, WhatIfState.DONE)


def parts(study: CapacityStudy) -> Iterator[Part]:
    """All lives in their order: by seed, as it is first."""
    curves = list(study.curves.all())
    for seed in range(1, study.replications + 1):
        yield Part(None, 0, seed)
        for curve in curves:
            yield from (Part(curve, nodes, seed) for nodes, _ in curve.rungs if nodes)


def _slice(study: CapacityStudy) -> bool:
    """Whether there is more to do."""
    template = parse(study.template)
    past = past_of(study.cluster, days=study.days, snapshot=replace(template, now=study.end))
    if study.queue is not None:
        past = only(past, names_below(template, study.queue.name))
        template = alone_in(template, study.queue.name)
    curves, every = list(study.curves.select_related("gpu_class")), list(parts(study))
    kept = _kept(study, curves)
    spent_s = 0.0
    for done, part in enumerate(every):
        if part in kept:
            continue
        if study.cpu_s + spent_s >= study.most_cpu_s:
            return False
        if spent_s >= SLICE_S:
            return True
        _note(study, 100 * done // len(every))
        began_s = time.thread_time()
        _keep(part, curves, _lived(study, template, past, part))
        took_s = time.thread_time() - began_s
        spent_s += took_s
        CapacityStudy.objects.filter(pk=study.pk).update(cpu_s=F("cpu_s") + took_s)
    return False


def _kept(study: CapacityStudy, curves: list[CapacityCurve]) -> set[Part]:
    rows = CapacityPoint.objects.filter(curve__study=study)
    done = set(rows.values_list("curve_id", "nodes", "seed"))
    changes = {Part(c, nodes, seed) for c in curves for pk, nodes, seed in done if pk == c.pk}
    seeds = range(1, study.replications + 1)
    as_it_is = {Part(None, 0, s) for s in seeds if all((c.pk, 0, s) in done for c in curves)}
    return changes | as_it_is


def _lived(study: CapacityStudy, template: m.Snapshot, past: Past, part: Part) -> Lived:
    world = replace(template, now=past.begin)
    if part.curve is not None and study.queue is not None:
        gpus = next(gpus for nodes, gpus in part.curve.rungs if nodes == part.nodes)
        world = with_quota(world, study.queue.name, part.curve.gpu_class.name, gpus)
    elif part.curve is not None:
        world = changed(world, part.curve.gpu_class.name, part.nodes, study.step_gpus)
    return life(world, past.submissions, past.before, past, part.seed)


def _keep(part: Part, curves: list[CapacityCurve], found: Lived) -> None:
    classes = np.array(found.gpu_class)
    points = []
    for curve in curves if part.curve is None else [part.curve]:
        which = np.flatnonzero(classes == curve.gpu_class.name)
        p50_s, p90_s = found.waits(which)
        gpus = next(gpus for nodes, gpus in curve.rungs if nodes == part.nodes)
        points.append(
            CapacityPoint(
                curve=curve, nodes=part.nodes, gpus=gpus, seed=part.seed, p50_s=p50_s, p90_s=p90_s,
                workloads=which.size,
            )
        )  # fmt: skip
    # Whoever took it up while this one was thought dead has lived the same.
    CapacityPoint.objects.bulk_create(points, ignore_conflicts=True)


def _note(study: CapacityStudy, percent: int) -> None:
    """Raises CancelledError when the row says so or is gone."""
    running = CapacityStudy.objects.filter(pk=study.pk, state=WhatIfState.RUNNING)
    if not running.update(progress=min(99, percent), held_until=timezone.now() + HELD):
        raise CancelledError


def _hand_on(study: CapacityStudy) -> None:
    CapacityStudy.objects.filter(pk=study.pk, state=WhatIfState.RUNNING).update(held_until=None)
    studies.send(study.pk)


def _end(study: CapacityStudy, state: WhatIfState, *, fault: str = "") -> None:
    running = CapacityStudy.objects.filter(pk=study.pk, state=WhatIfState.RUNNING)
    ended = {"state": state, "fault": fault, "done_at": study.cluster.now(), "template": {}}
    running.update(**ended, **({"progress": 100} if state == WhatIfState.DONE else {}))
