"""Its work: what waits and runs now, what ended lately, and a year by the day."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from django.db import connection

from portal.teams.shipped_personas import ensure_priority_classes
from scheduling.models import (
    MILLI,
    Cluster,
    Cycle,
    GpuClass,
    Outcome,
    PriorityClass,
    Queue,
    Reason,
    State,
    Workload,
)
from workshop.demo.large.people import People, Tree

RUNNING_PART = 0.2
ENDED_PART = 0.4
"""So many ended within the last day for each that lives; those before are known by the day."""
HOURS, DAYS = 14 * 24, 365
SENTENCE = "Its team-0000 holds 8 h100-80gb, 3 above its fair share of 5."


def live(
    cluster: Cluster, tree: Tree, classes: Sequence[GpuClass], people: People, count: int,
    now: datetime,
) -> None:  # fmt: skip
    """``count`` workloads that wait or run, and those that ended within the day; three people to a leaf."""
    dice = random.Random(7)  # noqa: S311 - the same organisation each time
    ensure_priority_classes()
    priority = PriorityClass.objects.get(is_default=True)
    rows = (
        _work(cluster, dice, tree.leaves, classes, people, priority, now, i)
        for i in range(count + int(ENDED_PART * count))
    )
    Workload.objects.bulk_create(_states(rows, dice, count, now), batch_size=1000)
    _transitions(cluster)
    Cycle.objects.bulk_create(
        Cycle(
            cluster=cluster, number=i + 1, at=now - timedelta(seconds=10 * (1000 - i)), took_ms=400,
            pending=count, running=count // 5,
        )
        for i in range(1000)
    )  # fmt: skip


def _work(
    cluster: Cluster, dice: random.Random, leaves: Sequence[Queue], classes: Sequence[GpuClass],
    people: People, priority: PriorityClass, now: datetime, serial: int,
) -> Workload:  # fmt: skip
    leaf, gpu_class = dice.choice(leaves), dice.choice(classes)
    colleagues = people.by_department[leaf.parent_id or 0]
    return Workload(
        cluster=cluster, uid=f"large-{serial}", namespace=leaf.namespace, name=f"work-{serial}",
        queue=leaf, queue_label=leaf.name, priority_class=priority,
        user=colleagues[(3 * leaf.position + dice.randrange(3)) % len(colleagues)].username,
        gpus=MILLI, min_members=dice.choice((1, 1, 2, 4, 8)), max_members=8,
        gpu_classes=[gpu_class.name], gpu_class=gpu_class,
        submitted_at=now - timedelta(hours=dice.uniform(0.1, 20)),
    )  # fmt: skip


def _states(
    rows: Iterator[Workload], dice: random.Random, count: int, now: datetime
) -> Iterator[Workload]:
    for i, work in enumerate(rows):
        if i < count * (1 - RUNNING_PART):
            work.reason, work.sentence, work.position = Reason.ABOVE_FAIR_SHARE.value, SENTENCE, i
            work.gpu_class = None
        else:
            begun = work.submitted_at + timedelta(minutes=dice.uniform(0, 60))
            work.state, work.members = State.RUNNING, work.min_members
            begun = min(begun, now)
            work.first_started_at = work.started_at = work.admitted_at = begun
        if i >= count:
            work.state, work.members = State.FINISHED, 0
            work.outcome = dice.choice(Outcome.values)
            work.finished_at = begun + dice.uniform(0, 1) * (now - begun)
            work.used_gpu_s = 3600.0 * work.min_members
        yield work


TRANSITIONS = """
INSERT INTO scheduling_transition (workload_id, at, from_state, to_state, reason, sentence, actor, gpus)
SELECT id, at, '', state, '', '', '', gpus FROM (
  SELECT id, submitted_at AS at, 'pending' AS state, 0 AS gpus FROM scheduling_workload WHERE cluster_id = %s
  UNION ALL
  SELECT id, started_at, 'running', gpus * min_members FROM scheduling_workload
  WHERE cluster_id = %s AND started_at IS NOT NULL
  UNION ALL
  SELECT id, finished_at, 'finished', 0 FROM scheduling_workload
  WHERE cluster_id = %s AND finished_at IS NOT NULL
) AS steps
"""


def _transitions(cluster: Cluster) -> None:
    with connection.cursor() as cursor:
        cursor.execute(TRANSITIONS, [cluster.pk] * 3)


SAMPLES = """
INSERT INTO scheduling_usagesample
  (queue_id, gpu_class_id, resolution, start, seconds, installed_gpus, ready_gpus, allocated_gpus, used_gpus,
   demand_gpus, nominal_gpus, fair_share_gpus, pending_gpus)
SELECT s.queue_id, s.gpu_class_id, %s, t, %s,
  CASE WHEN q.parent_id IS NULL THEN s.nominal ELSE 0 END,
  CASE WHEN q.parent_id IS NULL THEN s.nominal ELSE 0 END,
  s.allocated, s.allocated * 0.6, s.nominal * 1.1, s.nominal, s.fair_share, s.pending
FROM scheduling_share s JOIN scheduling_queue q ON q.id = s.queue_id
CROSS JOIN generate_series(%s::timestamptz, %s::timestamptz, %s::interval) AS t
WHERE q.cluster_id = %s
"""
WORK_DAYS = """
INSERT INTO scheduling_workday
  (queue_id, gpu_class_id, "user", type, start, seconds, held_gpu_s, measured_gpu_s, active_gpu_s, lost_gpu_s,
   evictions, started, waited_s, succeeded, failed, cancelled, succeeded_gpu_s, failed_gpu_s, cancelled_gpu_s)
SELECT w.queue_id, w.gpu_class_id, w."user", 'training', t, 86400,
  80000, 80000, 50000, 800, 1, 20, 36000, 16, 3, 1, 70000, 8000, 2000
FROM (
  SELECT DISTINCT ON (queue_id, gpu_class_id) queue_id, gpu_class_id, "user" FROM scheduling_workload
  WHERE cluster_id = %s AND gpu_class_id IS NOT NULL ORDER BY queue_id, gpu_class_id, id
) AS w
CROSS JOIN generate_series(%s::timestamptz, %s::timestamptz, '1 day'::interval) AS t
"""
EVICTIONS = """
INSERT INTO scheduling_eviction
  (workload_id, at, rule, queue_id, for_workload_id, for_queue_id, gpu_class_id, gpus, asked_gpus, lost_gpu_s,
   sentence, numbers, allowed_by, in_vain)
SELECT w.id, %s::timestamptz - random() * '14 days'::interval, 'reclaim', w.queue_id, o.id, o.queue_id,
  w.gpu_class_id, w.gpus * w.min_members, w.gpus * w.min_members, 900, '', '{}', 'above_fair_share', ''
FROM scheduling_workload w
JOIN scheduling_workload o ON o.cluster_id = w.cluster_id AND o.uid = 'large-' || (w.id %% 5000)
WHERE w.cluster_id = %s AND w.state = 'running' LIMIT 4000
"""


def remember(cluster: Cluster, now: datetime) -> None:
    """Samples of two weeks by the hour and a year by the day, what work held by the day, and evictions."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    day = hour.replace(hour=0)
    with connection.cursor() as cursor:
        for resolution, seconds, count, last, step in (
            ("hour", 3600, HOURS, hour, timedelta(hours=1)),
            ("day", 86400, DAYS, day, timedelta(days=1)),
        ):
            begin = last - count * step
            cursor.execute(
                SAMPLES, [resolution, seconds, begin, last - step, f"{seconds} seconds", cluster.pk]
            )
        cursor.execute(WORK_DAYS, [cluster.pk, day - timedelta(days=DAYS), day - timedelta(days=1)])
        cursor.execute(EVICTIONS, [now, cluster.pk])
        cursor.execute("ANALYZE")
