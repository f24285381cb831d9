"""Learned orders of a cluster: begun, worked on in slices, begun anew by night, forgotten.

1. ``begin`` cuts the cluster's past into days to train on and later days to judge by, and keeps the work of
   both, so that every slice lives the same; ``start`` has a task work on it.
2. ``working.work`` searches and lives one slice and hands the rest on.
3. ``look`` has taken up again what a killed worker left, and begins the nightly one where it is due.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from zoneinfo import ZoneInfo

from celery import current_app
from django.db import transaction
from django.db.models import Max, Q
from django.utils import timezone
from kombu.exceptions import OperationalError

from scheduling.engine import model as m
from scheduling.models import (
    Cluster,
    ClusterMode,
    LearnedDifference,
    LearnedEffect,
    LearnedOrder,
    LearnedState,
)
from scheduling.services.errors import ServiceError
from scheduling.services.lab.periods import world_document
from scheduling.services.learned import orders, rivals, states, traced, windows
from scheduling.services.learned.verdicts import LATER_KIND, TRACE_KIND
from scheduling.services.learned.windows import TRAINING, Cut
from scheduling.services.snapshot.asked import live_or_refused

log = logging.getLogger(__name__)

GENERATIONS, POPULATION, REPLAYS = 8, 8, 6
MOST_CPU_S = 1800
EVERY = timedelta(days=7)
"""Cluster time between versions that Weir trains by itself, and the least real time between two of any."""
REAL_EVERY = timedelta(hours=20)
NIGHT = range(1, 6)
"""Local hours in which they begin."""
KEPT = 20
"""Versions."""
TASK = "scheduling.tasks.train_order"


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard is searched, and how often each later window is lived under each order."""

    generations: int = GENERATIONS
    population: int = POPULATION
    replays: int = REPLAYS
    most_cpu_s: int = MOST_CPU_S
    most_days: int = windows.MOST_DAYS
    rivals: bool = True
    """Whether it is held against the orders that the engine cannot be, too."""


def begin(*, cluster: Cluster, author: str, effort: Effort | None = None) -> LearnedOrder:
    """A new version, nothing of it lived yet.

    Raises ServiceError: one is in training already, the past is too short, no work came to a queue that gives
    out by merit, the cluster does not answer.
    """
    effort = effort or Effort()
    cut = windows.cut(cluster, effort.most_days)
    world = replace(live_or_refused(cluster), workloads=())
    trained = windows.read(cluster, world, cut.training, "to train on")
    rule = orders.rule_of(world, trained)
    later = [windows.read(cluster, world, span, "to judge by") for span in cut.later]
    with transaction.atomic():
        _refuse_second(cluster)
        made = _made(cluster, author, effort, cut, world, rule)
        made.workloads = sum(trained.judged)
        made.work = {TRAINING: windows.kept(cut.training, trained)}
        for span, period in zip(cut.later, later, strict=True):
            against = orders.against(world)
            if effort.rivals:
                against += rivals.on(world, period)
            windows.add(made, LATER_KIND, span, period, against)
        _add_trace(made, world)
        made.save()
        states.begun(made)
    return made


def _add_trace(made: LearnedOrder, world: m.Snapshot) -> None:
    """Another recording, if one is kept that says anything; of the cluster's own past it may be a copy."""
    found = traced.taken(world)
    if found is None:
        return
    name, span, period = found
    try:
        windows.add(made, TRACE_KIND, span, period, orders.against(world), name)
    except ServiceError as error:
        log.info("learned order of %s, trace %s: %s", made.cluster.name, name, error)


def _refuse_second(cluster: Cluster) -> None:
    Cluster.objects.select_for_update().get(pk=cluster.pk)
    rows = LearnedOrder.objects.filter(cluster=cluster, state=LearnedState.TRAINING)
    if rows.exists():
        raise ServiceError(
            "busy", "A learned order is in training already.", "Wait until it is judged, or withdraw it."
        )  # fmt: skip


def _made(
    cluster: Cluster, author: str, effort: Effort, cut: Cut, world: m.Snapshot, rule: m.Sharing
) -> LearnedOrder:
    newest = LearnedOrder.objects.filter(cluster=cluster).aggregate(at=Max("version"))["at"] or 0
    now = cluster.now()
    return LearnedOrder(
        cluster=cluster, version=newest + 1, author=author, sharing=rule.value, since=now,
        why="Asked for." if author else "Weir trains one anew each week.",
        trained_from=cut.training.begin, trained_to=cut.training.end, seed=newest + 1,
        generations=effort.generations, population=effort.population, replays=effort.replays,
        most_cpu_s=effort.most_cpu_s, world=world_document(world), asked_at=now, made_at=timezone.now(),
    )  # fmt: skip


def start(order: LearnedOrder) -> None:
    """Have it worked on, once its row can be seen by whoever does."""
    transaction.on_commit(lambda: send(order.pk))


def send(order_id: int) -> None:
    """What the broker does not take now, ``look`` sends again."""
    try:
        current_app.send_task(TASK, args=[order_id])
    except OperationalError as error:
        log.warning("learned order %s: the broker does not answer: %s", order_id, error)


def idle() -> Q:
    """Of rows that nobody is at."""
    return Q(held_until=None) | Q(held_until__lt=timezone.now())


def look(cluster: Cluster) -> None:
    """Send what is not over and nobody is at, and begin the nightly one where it is due."""
    rows = LearnedOrder.objects.filter(idle(), cluster=cluster, state__in=states.ALIVE)
    for pk in rows.order_by("version").values_list("pk", flat=True):
        send(pk)
    if is_due(cluster):
        try:
            start(begin(cluster=cluster, author=""))
        except ServiceError as error:
            log.info("cluster %s, learned order: %s", cluster.name, error)


def is_due(cluster: Cluster) -> bool:
    """Whether it is night, the newest version is a week old, and none is being tried."""
    if cluster.mode == ClusterMode.PAUSED:
        return False
    now = cluster.now()
    if now.astimezone(ZoneInfo(cluster.display_time_zone)).hour not in NIGHT:
        return False
    rows = LearnedOrder.objects.filter(cluster=cluster)
    being_tried = Q(state__in=(LearnedState.TRAINING, LearnedState.JUDGED, LearnedState.SHADOW))
    recent = Q(asked_at__gt=now - EVERY) | Q(made_at__gt=timezone.now() - REAL_EVERY)
    return not rows.filter(being_tried | recent).exists()


def forget(cluster: Cluster) -> int:
    """Drop versions that are over and were followed by many; how many rows."""
    rows = LearnedOrder.objects.filter(cluster=cluster)
    newest = rows.aggregate(at=Max("version"))["at"] or 0
    old = rows.filter(version__lte=newest - KEPT, state__in=states.OVER)
    for model in (LearnedDifference, LearnedEffect):
        model.objects.filter(order__cluster=cluster, order__state__in=states.OVER).delete()
    return old.delete()[0]


def why_not(cluster: Cluster) -> ServiceError | None:
    """What keeps one from being trained now, as far as the ledger alone knows."""
    try:
        windows.cut(cluster)
    except ServiceError as error:
        return error
    return None
