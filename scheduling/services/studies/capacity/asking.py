"""Studies of capacity: asked, and made anew each night.

``ask`` reads the cluster once and keeps from what every life begins; ``look`` asks for the nightly one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Min, Q
from django.utils import timezone

from scheduling.engine.document.reader import dump
from scheduling.engine.model import Snapshot
from scheduling.models import MILLI, Cluster, ClusterMode, Queue, Study, StudyKind, Workload
from scheduling.models.studies import OPEN
from scheduling.services.errors import ServiceError
from scheduling.services.ledger.ready import ready_in
from scheduling.services.snapshot.live import live_or_refused
from scheduling.services.studies import doors
from scheduling.services.studies.capacity.curves import RecordedWaits, recorded
from scheduling.services.studies.capacity.ladder import (
    AS_IT_IS,
    STEPS,
    Ladder,
    ladders,
    quota_ladders,
    way_of,
    whole,
)

log = logging.getLogger(__name__)

DAYS, MOST_DAYS = 30, 30
REPLICATIONS, MOST_REPLICATIONS = 5, 20
MOST_STEP_GPUS = 1024
MOST_CPU_S = 1800
"""Of one study: after so many seconds of one core no further life begins."""
EVERY = timedelta(hours=20)
"""Real time between nightly studies of a cluster."""
NIGHT = range(1, 6)
"""Local hours in which they begin."""
Json = dict[str, Any]


def ask(
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
) -> Study:
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
    begin = last - timedelta(days=days)
    came = recorded(cluster, begin, last, queue)
    return doors.write(
        cluster=cluster,
        kind=StudyKind.CAPACITY,
        is_bounded=end is None,
        name=f"{days} days to {last:%d %b %Y}{f', {queue.name} alone' if queue else ''}",
        author=author,
        queue=queue,
        begin=begin,
        end=last,
        replays=replications,
        question={"step_gpus": step, "most_cpu_s": most_cpu_s},
        world=dump(template),
        basis={"curves": [_curve(one, came.get(one.gpu_class)) for one in found]},
        ways=_ways(found),
    )


def _curve(one: Ladder, was: RecordedWaits | None) -> Json:
    """Of a study of a queue ``installed`` and the rungs are milli-GPU of its nominal quota."""
    return {
        "gpu_class": one.gpu_class,
        "installed": one.installed,
        "node_gpus": one.node_gpus,
        "rungs": [[rung.nodes, rung.gpus] for rung in one.rungs],
        "recorded_p90_s": was.p90_s if was else None,
        "workloads": was.workloads if was else 0,
    }


def _ways(found: Iterable[Ladder]) -> list[doors.Way]:
    """As it is, of all classes at once; then each class on each other number."""
    others = [
        (
            way_of(one.gpu_class, rung.nodes),
            {"gpu_class": one.gpu_class, "nodes": rung.nodes, "gpus": rung.gpus},
        )
        for one in found
        for rung in one.rungs
        if rung.nodes
    ]
    return [(AS_IT_IS, "As it is", []), *((letter, letter, [change]) for letter, change in others)]


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


def look(cluster: Cluster) -> None:
    """Ask for the nightly one where it is due."""
    if is_due(cluster, timezone.now()):
        try:
            doors.start(ask(cluster=cluster, author=""))
        except ServiceError as error:
            log.info("cluster %s, capacity: %s", cluster.name, error)


def is_due(cluster: Cluster, real_now: datetime) -> bool:
    """Whether a night has come since the newest study, of the wall's clock and of the cluster's."""
    if cluster.mode == ClusterMode.PAUSED:
        return False
    if cluster.now().astimezone(ZoneInfo(cluster.display_time_zone)).hour not in NIGHT:
        return False
    rows = Study.objects.filter(cluster=cluster, kind=StudyKind.CAPACITY, queue=None)
    return not rows.filter(Q(made_at__gt=real_now - EVERY) | Q(state__in=OPEN)).exists()
