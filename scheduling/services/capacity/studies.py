"""Studies of capacity: begun, worked on in slices, cancelled, made anew each night.

1. ``begin`` reads the cluster once and keeps from what every life begins; ``start`` has a task work on it.
2. ``working.work`` lives one slice of it and hands the rest on.
3. ``look`` begins the nightly ones, and has taken up again what a killed worker left.
4. ``cancel``, ``drop`` and ``forget`` are the other doors.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from celery import current_app
from django.db import transaction
from django.db.models import Min, Q
from django.utils import timezone
from kombu.exceptions import OperationalError

from scheduling.engine.document.reader import dump
from scheduling.engine.model import Snapshot
from scheduling.models import (
    MILLI,
    CapacityCurve,
    CapacityStudy,
    Cluster,
    ClusterMode,
    Queue,
    WhatIfState,
    Workload,
)
from scheduling.services.capacity.ladder import STEPS, Ladder, ladders, whole
from scheduling.services.capacity.quota import quota_ladders
from scheduling.services.capacity.recorded import recorded
from scheduling.services.errors import ServiceError
from scheduling.services.ledger.ready import ready_in
from scheduling.services.snapshot.asked import live_or_refused

log = logging.getLogger(__name__)

DAYS, MOST_DAYS = 30, 30
REPLICATIONS, MOST_REPLICATIONS = 5, 20
MOST_STEP_GPUS = 1024
MOST_CPU_S = 1800
"""Of one study: after so many seconds of one core no further life begins."""
OPEN = (WhatIfState.WAITING, WhatIfState.RUNNING)
EVERY = timedelta(hours=20)
"""Real time between nightly studies of a cluster."""
NIGHT = range(1, 6)
"""Local hours in which they begin."""
KEPT = timedelta(days=400)
TASK = "scheduling.tasks.study_capacity"


def begin(
    *,
    cluster: Cluster,
    author: str,
    days: int = DAYS,
    replications: int = REPLICATIONS,
    steps: Iterable[int] = STEPS,
    most_cpu_s: int = MOST_CPU_S,
    end: datetime | None = None,
    queue: Queue | None = None,
    step_gpus: float = 0,
) -> CapacityStudy:
    """A study of the ``days`` up to ``end`` (default: now), or of as many as are known: of all work on all
    nodes, or of ``queue`` and what is below it on its own quota. Steps are nodes, or ``step_gpus`` GPUs each.

    Raises ServiceError: a number out of bounds, a study of now that is being made already, a cluster that
    does not answer, has no GPUs or no past, a queue without quota.
    """
    _check(days, replications)
    step = _step(step_gpus)
    queue = None if queue is None or queue.is_root else queue
    last = cluster.now() if end is None else end
    days = min(days, _known_days(cluster, last))
    template = whole(live_or_refused(cluster))
    found = _ladders(cluster, template, steps, queue, step, (last - timedelta(days=days), last))
    classes = {one.name: one for one in cluster.gpu_classes.all()}
    came = recorded(cluster, last - timedelta(days=days), last, queue)
    with transaction.atomic():
        if end is None:
            _refuse_second(cluster)
        study = CapacityStudy.objects.create(
            cluster=cluster, author=author, end=last, days=days, replications=replications, queue=queue,
            step_gpus=step, most_cpu_s=most_cpu_s, template=dump(template), asked_at=cluster.now(),
            made_at=timezone.now(),
        )  # fmt: skip
        for one in found:
            gpu_class, was = classes[one.gpu_class], came.get(one.gpu_class)
            CapacityCurve.objects.create(
                study=study, gpu_class=gpu_class, installed=one.installed, node_gpus=one.node_gpus,
                rungs=[[rung.nodes, rung.gpus] for rung in one.rungs],
                recorded_p90_s=was.p90_s if was else None, workloads=was.workloads if was else 0,
            )  # fmt: skip
    return study


def _step(gpus: float) -> int:
    """Milli-GPU. Raises ServiceError out of bounds."""
    step = round(gpus * MILLI)
    if not 0 <= gpus <= MOST_STEP_GPUS or 0 < step < MILLI:
        raise ServiceError(
            "bad_step", "That is no step from one number of GPUs to the next.",
            f"Ask for 1 to {MOST_STEP_GPUS} GPUs, or 0 for whole nodes.", field="step_gpus",
        )  # fmt: skip
    return step


def _ladders(
    cluster: Cluster,
    template: Snapshot,
    steps: Iterable[int],
    queue: Queue | None,
    step: int,
    window: tuple[datetime, datetime],
) -> tuple[Ladder, ...]:
    """Raises ServiceError where there is nothing to try."""
    if queue is None:
        then = {name: known.ready for name, known in ready_in(cluster, *window).items()}
        found = ladders(template, steps, step_gpus=step, ready_then=then)
        if not found:
            raise ServiceError("no_gpus", "No node has GPUs of a class.", "Add a GPU class first.")
        return found
    found = quota_ladders(template, queue.name, steps, step)
    if not found:
        raise ServiceError(
            "no_quota", f"{queue.name} has no nominal quota of its own.", "Choose a queue that has.",
            field="queue",
        )  # fmt: skip
    return found


def _check(days: int, replications: int) -> None:
    if not 1 <= days <= MOST_DAYS:
        raise ServiceError(
            "bad_days", "So many days are not replayed.", f"Ask for 1 to {MOST_DAYS}.", field="days"
        )
    if not REPLICATIONS <= replications <= MOST_REPLICATIONS:
        raise ServiceError(
            "bad_replications", "So many replications are not made.",
            f"Ask for {REPLICATIONS} to {MOST_REPLICATIONS}.", field="replications",
        )  # fmt: skip


def _known_days(cluster: Cluster, end: datetime) -> int:
    """Whole days before ``end`` of which work is known. Raises ServiceError where there is none."""
    first = Workload.objects.filter(cluster=cluster).aggregate(at=Min("submitted_at"))["at"]
    days = (end - first).days if first else 0
    if days < 1:
        raise ServiceError(
            "too_young", "Less than a day of work is known.", "Ask again after a day of work."
        )
    return days


def _refuse_second(cluster: Cluster) -> None:
    """One at a time."""
    Cluster.objects.select_for_update().get(pk=cluster.pk)
    if CapacityStudy.objects.filter(cluster=cluster, state__in=OPEN).exists():
        raise ServiceError(
            "busy", "A study is being made already.", "Wait until it is done, or cancel it first."
        )


def start(study: CapacityStudy) -> None:
    """Have it worked on, once its row can be seen by whoever does."""
    transaction.on_commit(lambda: send(study.pk))


def send(study_id: int) -> None:
    """What the broker does not take now, ``look`` sends again."""
    try:
        current_app.send_task(TASK, args=[study_id])
    except OperationalError as error:
        log.warning("capacity study %s: the broker does not answer: %s", study_id, error)


def look(cluster: Cluster) -> None:
    """Send what nobody is at, and begin the nightly one where it is due."""
    now = timezone.now()
    idle = Q(held_until=None) | Q(held_until__lt=now)
    rows = CapacityStudy.objects.filter(idle, cluster=cluster, state__in=OPEN).order_by("made_at")
    for pk in rows.values_list("pk", flat=True):
        send(pk)
    if is_due(cluster, now):
        try:
            start(begin(cluster=cluster, author=""))
        except ServiceError as error:
            log.info("cluster %s, capacity: %s", cluster.name, error)


def is_due(cluster: Cluster, real_now: datetime) -> bool:
    """Whether a night has come since the newest study, of the wall's clock and of the cluster's."""
    if cluster.mode == ClusterMode.PAUSED:
        return False
    if cluster.now().astimezone(ZoneInfo(cluster.display_time_zone)).hour not in NIGHT:
        return False
    rows = CapacityStudy.objects.filter(cluster=cluster, queue=None)
    return not rows.filter(Q(made_at__gt=real_now - EVERY) | Q(state__in=OPEN)).exists()


def cancel(study: CapacityStudy) -> bool:
    """Whether it waited or was worked on still; what was lived stays."""
    mine = CapacityStudy.objects.filter(pk=study.pk, state__in=OPEN)
    ended = {"state": WhatIfState.CANCELLED, "done_at": study.cluster.now(), "template": {}}
    return bool(mine.update(**ended))


def drop(study: CapacityStudy) -> None:
    """It is gone with all that was lived."""
    CapacityStudy.objects.filter(pk=study.pk).delete()


def forget(cluster: Cluster) -> int:
    """Drop studies whose end is too far back to be compared with anything; how many rows."""
    old = CapacityStudy.objects.filter(cluster=cluster, end__lt=cluster.now() - KEPT)
    return old.delete()[0]
