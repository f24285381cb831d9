"""Replays lived by whoever is free: each is a row that is claimed, lived and written once.

1. ``start`` sends ``WEIR_LAB_TASKS`` tasks; each calls ``work`` and sends the next while there is more to do.
2. ``work`` claims one replay after the other: those of one seed before those of the next, so that variants
   are compared early. A claim ends by itself, so a killed worker's replay is taken again.
3. A result is written by the claim that it was lived under, else dropped: no replay counts twice.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache
from uuid import uuid4

from celery import current_app
from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from kombu.exceptions import OperationalError

from scheduling.engine import model as m
from scheduling.models import Experiment, GpuClass, Variant, VariantReplay, VariantState
from scheduling.services.errors import ServiceError
from scheduling.services.lab import figures
from scheduling.services.lab.experiments import OPEN
from scheduling.services.lab.kinds import kind_of
from scheduling.services.lab.periods import period_of, world_of
from scheduling.simulation.ahead.compare import alone
from scheduling.simulation.ahead.period import Judged, Period, drawn, live_again
from scheduling.simulation.run.options import UnsettledError

log = logging.getLogger(__name__)

LEASE = timedelta(minutes=3)
"""A replay takes seconds; the longest is bounded by the work that an experiment may have."""
CHUNK_S = 15.0
"""CPU seconds for which a task lives replays, then lets others have their turn: on a busy machine as many
replays as on an idle one."""


def start(experiment: Experiment) -> None:
    """Have it lived, once its rows can be seen by whoever does."""
    for _ in range(settings.WEIR_LAB_TASKS):
        transaction.on_commit(lambda: send(experiment.pk))


def send(experiment_id: int) -> None:
    try:
        current_app.send_task("scheduling.tasks.live_replays", args=[experiment_id])
    except OperationalError as error:
        # Beat asks again for what is open.
        log.warning("experiment %s: the broker does not answer: %s", experiment_id, error)


def unattended() -> list[int]:
    """Experiments that another task could work on now, those of a killed worker among them."""
    now = timezone.now()
    if _is_busy(now):
        return []
    return sorted(set(_claimable(now).values_list("variant__experiment_id", flat=True)))


def _is_busy(now: datetime) -> bool:
    """Whether as many replays are lived as may be: the general lane has other work, too."""
    held = VariantReplay.objects.filter(done_at=None, claimed_until__gte=now)
    return held.count() >= settings.WEIR_LAB_TASKS


def work(experiment_id: int, *, budget_s: float = CHUNK_S) -> bool:
    """Live replays for ``budget_s`` of CPU time; whether this task should go on with more of them."""
    began = time.thread_time()
    while time.thread_time() - began < budget_s:
        row = claim(experiment_id)
        if row is None:
            return False
        _live(row)
    return experiment_id in unattended()


def _claimable(now: datetime) -> QuerySet[VariantReplay]:
    is_free = Q(claimed_until=None) | Q(claimed_until__lt=now)
    return VariantReplay.objects.filter(is_free, done_at=None, variant__state__in=OPEN)


def claim(experiment_id: int) -> VariantReplay | None:
    """The next replay that nobody works on, claimed; None where there is none, or others are busy enough."""
    while True:
        now = timezone.now()
        if _is_busy(now):
            return None
        free = _claimable(now).filter(variant__experiment_id=experiment_id)
        row = free.order_by("seed", "variant__letter").select_related("variant").first()
        if row is None:
            return None
        row.claim, row.claimed_until = uuid4().hex, now + LEASE
        is_free = Q(claimed_until=None) | Q(claimed_until__lt=now)
        mine = VariantReplay.objects.filter(is_free, pk=row.pk, done_at=None)
        if mine.update(claim=row.claim, claimed_until=row.claimed_until):
            waiting = Variant.objects.filter(pk=row.variant_id, state=VariantState.WAITING)
            waiting.update(state=VariantState.RUNNING)
            return row


def _live(row: VariantReplay) -> None:
    began = time.thread_time()
    try:
        found, queues = _figures(row)
    except (ServiceError, UnsettledError, m.SnapshotError, MemoryError) as error:
        failing = Variant.objects.filter(pk=row.variant_id, state__in=OPEN)
        failing.update(state=VariantState.FAILED, fault=_fault(error))
        VariantReplay.objects.filter(pk=row.pk, claim=row.claim).update(claimed_until=None)
        log.warning(
            "variant %s of experiment %s: %s", row.variant, row.variant.experiment_id, error
        )
        return
    finish(row, found, queues, took_s=time.thread_time() - began)


def _fault(error: Exception) -> str:
    if isinstance(error, ServiceError):
        return str(error)[:300]
    if isinstance(error, MemoryError):
        return "This past asks for more memory than there is. Choose a shorter one, or fewer nodes."
    return "The engine finds no rest in this past. Change less at once, and tell whoever operates Weir."


def finish(row: VariantReplay, found: figures.Json, queues: figures.Json, *, took_s: float) -> bool:
    """Write a result; False where another has taken the replay, or written it, meanwhile."""
    mine = VariantReplay.objects.filter(pk=row.pk, claim=row.claim, done_at=None)
    if not mine.update(figures=found, queues=queues, took_s=took_s, done_at=timezone.now()):
        return False
    left = VariantReplay.objects.filter(variant_id=row.variant_id, done_at=None)
    if not left.exists():
        Variant.objects.filter(pk=row.variant_id, state__in=OPEN).update(state=VariantState.DONE)
    return True


def _figures(row: VariantReplay) -> tuple[figures.Json, figures.Json]:
    variant = row.variant
    stage = _stage(variant.experiment_id)
    world = kind_of(variant.kind).world(stage.world, variant.changes)
    found = live_again(world, stage.drawn(row.seed))
    own = _own(variant.experiment_id, row.seed)
    return figures.of_replay(found, own, world, stage.prices, stage.length_s)


class Stage:
    """World and work of an experiment, read once by a worker that lives several of its replays."""

    def __init__(self, experiment: Experiment) -> None:
        self.world, self.period = world_of(experiment), period_of(experiment)
        self.length_s = (experiment.end - experiment.begin).total_seconds()
        of_cluster = GpuClass.objects.filter(cluster_id=experiment.cluster_id)
        rows = of_cluster.values_list("name", "price_per_gpu_hour")
        self.prices = {name: float(price or 0) for name, price in rows}
        self.drawn: Callable[[int], Period] = lru_cache(maxsize=2)(
            lambda seed: drawn(self.period, seed)
        )


@lru_cache(maxsize=2)
def _stage(experiment_id: int) -> Stage:
    """Neither world nor work of an experiment ever changes."""
    return Stage(Experiment.objects.get(pk=experiment_id))


@lru_cache(maxsize=4)
def _own(experiment_id: int, seed: int) -> Judged:
    """Every queue on the nominal quota that A gives it, alone: what all variants are held against."""
    stage = _stage(experiment_id)
    return live_again(alone(stage.world), stage.drawn(seed))
