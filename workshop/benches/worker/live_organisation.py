"""Two weeks of the example organisation in the simulator, with victims that take their time to leave."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from scheduling.engine import model as m
from scheduling.simulation.run.jobs import Submission
from workshop.demo import organisation as org
from workshop.demo.past.live import KINDS
from workshop.scenario import Organisation, Source, generate

from .live_life import CAP, DELAY_S

GRACE_S = (60, 360)
"""What pods take to leave, at least and at most."""


def template(now: datetime) -> m.Snapshot:
    """Its nodes, queues and policy."""
    return m.Snapshot(
        now=now,
        gpu_classes=tuple(m.GpuClass(spec.name) for spec in org.CLASSES),
        nodes=tuple(_nodes()),
        queues=tuple(map(_queue, org.QUEUES)),
        priority_classes=tuple(
            m.PriorityClass(name, value, preemptible, min_run_time_s)
            for name, value, preemptible, min_run_time_s, _, _ in org.PRIORITY_CLASSES
        ),
        policy=m.Policy(preemption_delay_s=DELAY_S, fair_share_delay_s=DELAY_S, eviction_cap=CAP),
    )


def _nodes() -> Iterator[m.Node]:
    for pool in org.POOLS:
        for number in range(1, pool.nodes + 1):
            yield m.Node(
                f"{pool.name}-{number}",
                pool.gpu_class,
                pool.gpus * m.MILLI,
                topology={"rack": pool.racks[number % len(pool.racks)], "block": pool.block},
                ready=number not in pool.down,
            )


def _queue(spec: org.QueueSpec) -> m.Queue:
    quotas = {
        name: m.Quota(
            nominal=nominal * m.MILLI,
            borrowing_limit=None if borrows is None else borrows * m.MILLI,
            lending_limit=None if lends is None else lends * m.MILLI,
            weight=weight,
        )
        for name, (nominal, borrows, lends, weight) in spec.quotas.items()
    }
    return m.Queue(spec.name, parent=spec.parent, quotas=quotas)


def submissions(snapshot: m.Snapshot, days: float, seed: int) -> Iterator[Submission]:
    """What its people ask for, but for gangs that no limit of theirs lets start."""
    dice = random.Random(seed)  # noqa: S311 - a load, no secret
    limits = _limits(snapshot)
    for one in generate(_demand(snapshot), snapshot.now, days, seed):
        work = one.workload
        need = work.gpus * work.members.min
        if any(need <= limits[work.queue, name] for name in work.gpu_classes):
            yield replace(one, leave_s=dice.randint(*GRACE_S))


def _demand(snapshot: m.Snapshot) -> Organisation:
    quotas = {spec.name: spec.quotas for spec in org.QUEUES}
    ready = {name.name: 0.0 for name in snapshot.gpu_classes}
    for node in snapshot.nodes:
        ready[node.gpu_class] += node.gpus / m.MILLI if node.ready else 0.0
    return Organisation(
        sources=tuple(
            Source(
                queue=leaf,
                users=tuple(org.USERS[leaf]),
                demand={c: n + (b or 0) / 2 for c, (n, b, *_) in quotas[leaf].items()},
                kinds=tuple((KINDS[name], weight) for name, weight in org.WORK[leaf].items()),
                fallback=org.FALLBACKS.get(leaf, {}),
            )
            for leaf in org.USERS
        ),
        capacity_gpus=ready,
        load=org.LOAD,
    )


def _limits(snapshot: m.Snapshot) -> dict[tuple[str, str], int]:
    """(queue, class) -> the smallest limit from the queue up."""
    queues = {queue.name: queue for queue in snapshot.queues}
    found = {}
    for queue in snapshot.queues:
        for gpu_class in snapshot.gpu_classes:
            above: m.Queue | None = queue
            least = m.UNLIMITED
            while above is not None:
                quota = above.quotas[gpu_class.name]
                if quota.borrowing_limit is not None:
                    least = min(least, quota.nominal + quota.borrowing_limit)
                above = queues[above.parent] if above.parent else None
            found[queue.name, gpu_class.name] = least
    return found
