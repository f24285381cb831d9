"""Two weeks of a made-up but consistent past for the example organisation."""

from __future__ import annotations

import math
import random
from datetime import datetime, timedelta

from scheduling.models import (
    MILLI,
    Cluster,
    Cycle,
    Eviction,
    EvictionRule,
    GpuClass,
    Outcome,
    Queue,
    State,
    Transition,
    UsageSample,
    Workload,
)
from scheduling.models.ledger import Resolution
from tests.factories import make_cluster
from workshop.demo import organisation as org
from workshop.demo.seed import seed_cluster

LEAVES = tuple(org.USERS)
SPECS = {spec.name: spec for spec in org.QUEUES}
TYPICAL_WAIT_S = {org.H100: 2400.0, org.A100: 600.0, org.MIG: 40.0, org.L4: 50.0}


def write_samples(
    cluster: Cluster, until: datetime, *, hours: int = 14 * 24, measured: bool = True
) -> None:
    """Hourly samples of every queue and class up to ``until``: a daily and a weekly rhythm."""
    dice = random.Random(1)
    queues = {q.name: q for q in cluster.queues.all()}
    classes = {c.name: c for c in cluster.gpu_classes.all()}
    first = until.replace(minute=0, second=0, microsecond=0) - timedelta(hours=hours)
    rows: list[UsageSample] = []
    for hour in range(hours):
        start = first + timedelta(hours=hour)
        for name, gpu_class in classes.items():
            held = _held(queues, name, start, dice)
            rows += _hour(queues, gpu_class, start, held, measured=measured)
    UsageSample.objects.bulk_create(rows, batch_size=1000)


def _held(
    queues: dict[str, Queue], name: str, start: datetime, dice: random.Random
) -> dict[str, float]:
    """Milli-GPU by queue, inner queues the sum of theirs."""
    load = 0.86 + 0.1 * math.sin((start.hour - 4) / 24 * 2 * math.pi)
    load -= 0.14 if start.weekday() >= 5 else 0
    by_id = {queue.pk: queue for queue in queues.values()}
    held = dict.fromkeys(queues, 0.0)
    for leaf in LEAVES:
        gpus = SPECS[leaf].quotas[name][0] * MILLI * load * dice.uniform(0.85, 1.05)
        queue: Queue | None = queues[leaf]
        while queue is not None:
            held[queue.name] += gpus
            queue = by_id.get(queue.parent_id)
    return held


def _hour(
    queues: dict[str, Queue],
    gpu_class: GpuClass,
    start: datetime,
    held: dict[str, float],
    *,
    measured: bool,
) -> list[UsageSample]:
    name = gpu_class.name
    installed, ready = capacity(name)
    return [
        UsageSample(
            queue=queue,
            gpu_class=gpu_class,
            resolution=Resolution.HOUR,
            start=start,
            seconds=3600,
            installed_gpus=installed * MILLI if queue.is_root else 0,
            ready_gpus=ready * MILLI if queue.is_root else 0,
            allocated_gpus=held[queue.name],
            used_gpus=held[queue.name] * 0.6 if measured else None,
            nominal_gpus=0 if queue.is_root else SPECS[queue.name].quotas[name][0] * MILLI,
            fair_share_gpus=held[queue.name],
        )
        for queue in queues.values()
    ]


def capacity(gpu_class: str) -> tuple[int, int]:
    """(installed, ready) GPUs of a class."""
    pools = [pool for pool in org.POOLS if pool.gpu_class == gpu_class]
    installed = sum(pool.nodes * pool.gpus for pool in pools)
    return installed, installed - sum(len(pool.down) * pool.gpus for pool in pools)


def write_workloads(cluster: Cluster, until: datetime, *, count: int = 1500) -> list[Workload]:
    """Finished workloads of the last fourteen days; office hours wait longer, large gangs too."""
    dice = random.Random(2)
    queues = {q.name: q for q in cluster.queues.all()}
    classes = list(cluster.gpu_classes.all())
    rows = [_workload(queues, classes, until, dice, serial=i) for i in range(count)]
    made = Workload.objects.bulk_create(rows, batch_size=500)
    Transition.objects.bulk_create([step for work in made for step in _steps(work)], batch_size=500)
    return made


def _steps(work: Workload) -> tuple[Transition, Transition]:
    """It held all of its GPUs from its start to its end."""
    gpus = work.gpus * work.members
    return (
        Transition(
            workload=work, at=work.started_at, from_state=State.PENDING, to_state=State.RUNNING,
            gpus=gpus, gpu_class=work.gpu_class,
        ),
        Transition(
            workload=work, at=work.finished_at, from_state=State.RUNNING, to_state=State.FINISHED
        ),
    )  # fmt: skip


def _workload(
    queues: dict[str, Queue],
    classes: list[GpuClass],
    until: datetime,
    dice: random.Random,
    *,
    serial: int,
) -> Workload:
    leaf = dice.choice(LEAVES)
    gpu_class = dice.choice(classes)
    members = dice.choice((1, 1, 1, 1, 2, 4, 8, 16, 40))
    submitted = until - timedelta(seconds=dice.uniform(0, 14 * 86400))
    busy = 4 if 8 <= submitted.hour <= 16 and submitted.weekday() < 5 else 1
    wait_s = TYPICAL_WAIT_S[gpu_class.name] * dice.lognormvariate(0, 1.4) * busy * members**0.3
    started = min(until, submitted + timedelta(seconds=wait_s))
    return Workload(
        cluster=queues[leaf].cluster,
        uid=f"past-{serial}",
        namespace=leaf,
        name=f"past-{serial}",
        queue=queues[leaf],
        queue_label=leaf,
        user=dice.choice(org.USERS[leaf]),
        gpus=MILLI,
        min_members=members,
        max_members=members,
        members=members,
        gpu_classes=[gpu_class.name],
        gpu_class=gpu_class,
        state=State.FINISHED,
        outcome=Outcome.SUCCEEDED,
        submitted_at=submitted,
        admitted_at=started,
        first_started_at=started,
        started_at=started,
        finished_at=started + timedelta(hours=2),
    )


def write_evictions(cluster: Cluster, until: datetime, *, count: int = 70) -> None:
    """Evictions of workloads that ``write_workloads`` made, of all rules, for each other."""
    dice = random.Random(3)
    work = list(Workload.objects.filter(cluster=cluster, uid__startswith="past-"))
    rules = [*[EvictionRule.RECLAIM] * 6, *[EvictionRule.PREEMPT] * 2]
    rules += [EvictionRule.STALE_GANG, EvictionRule.CONSOLIDATE]
    first = (Cycle.objects.filter(cluster=cluster).order_by("-number").first() or Cycle()).number
    rows = []
    for i in range(count):
        rule, victim = dice.choice(rules), dice.choice(work)
        winner = _winner(rule, victim, work, dice)
        at = until - timedelta(seconds=dice.uniform(0, 14 * 86400))
        cycle = Cycle.objects.create(cluster=cluster, number=(first or 0) + 1 + i, at=at)
        gpus = victim.gpus * victim.members
        rows.append(
            Eviction(
                workload=victim,
                cycle=cycle,
                at=at,
                rule=rule,
                queue=victim.queue,
                for_workload=winner,
                for_queue=winner.queue if winner else None,
                gpu_class=victim.gpu_class,
                gpus=gpus,
                asked_gpus=round(gpus * dice.uniform(0.6, 1.1)) if winner else 0,
                lost_gpu_s=gpus / MILLI * dice.lognormvariate(6, 1),
            )
        )
    Eviction.objects.bulk_create(rows)


def _winner(
    rule: EvictionRule, victim: Workload, work: list[Workload], dice: random.Random
) -> Workload | None:
    if rule == EvictionRule.RECLAIM:
        return dice.choice([w for w in work if w.queue_id != victim.queue_id])
    if rule == EvictionRule.PREEMPT:
        return dice.choice([w for w in work if w.queue_id == victim.queue_id])
    return None


def write_past(cluster: Cluster, until: datetime) -> None:
    """Samples, workloads and evictions of the last fourteen days."""
    write_samples(cluster, until)
    write_workloads(cluster, until)
    write_evictions(cluster, until)


def small_past(until: datetime, *, hours: int) -> Cluster:
    """A cluster of the example organisation without people and nodes, with a short history."""
    cluster = make_cluster(name="past")
    seed_cluster(cluster, since=until - timedelta(days=60))
    write_samples(cluster, until, hours=hours)
    write_workloads(cluster, until, count=120)
    write_evictions(cluster, until, count=20)
    return cluster
