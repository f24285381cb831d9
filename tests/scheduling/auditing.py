"""An auditor that stands beside a test and looks after every single write to a Job, whoever made it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from scheduling.cluster.connection.reflector import Reflector, version_of
from scheduling.cluster.vocabulary import labels
from scheduling.models import MILLI, Cluster, Queue, Quota
from tests.scheduling.kube import JOBS, World, eventually
from tests.scheduling.real_server import RealServer
from workshop.testbed.server import EmbeddedServer
from workshop.testbed.server.kinds.resources import JOBS as JOB_RESOURCE

Json = dict[str, Any]
Server = EmbeddedServer | RealServer

NODE_GPUS = 8
"""Of every node of these tests, also of one that is gone: what was sent there still counts."""
CAUGHT_UP_S = 60.0


def jobs_of(server: Server) -> list[Json]:
    """As they stand, past every fault."""
    if isinstance(server, RealServer):
        found: list[Json] = server.direct.get(JOBS)["items"]
        return found
    with server.store.lock:
        return [record.body for record in server.store.listing(JOB_RESOURCE)]


def gpus_of(job: Json) -> int:
    """GPUs that the Job is admitted to."""
    spec = job["spec"]
    ends = ("Complete", "Failed")
    if spec["suspend"] or any(
        c["type"] in ends for c in job.get("status", {}).get("conditions") or ()
    ):
        return 0
    return int(spec["parallelism"]) * gpus_of_pod(job)


def gpus_of_pod(job: Json) -> int:
    container = job["spec"]["template"]["spec"]["containers"][0]
    return int(container["resources"]["limits"]["nvidia.com/gpu"])


@dataclass(frozen=True, slots=True)
class Bound:
    """A queue and all below it may hold so many GPUs of a class."""

    name: str
    gpu_class: str
    queues: frozenset[str]
    gpus: int


def bounds_of(cluster: Cluster) -> list[Bound]:
    """One for each quota with a borrowing limit, as they are now."""
    queues = {queue.pk: queue for queue in Queue.objects.filter(cluster=cluster)}
    quotas = Quota.objects.filter(queue__cluster=cluster, borrowing_limit_gpus__isnull=False)
    return [
        Bound(
            quota.queue.name,
            quota.gpu_class.name,
            frozenset(q.name for q in queues.values() if quota.queue_id in _line(q, queues)),
            (quota.nominal_gpus + (quota.borrowing_limit_gpus or 0)) // MILLI,
        )
        for quota in quotas.select_related("queue", "gpu_class")
    ]


def _line(queue: Queue, queues: dict[int, Queue]) -> Iterator[int]:
    """The queue and all above it."""
    yield queue.pk
    if queue.parent_id is not None:
        yield from _line(queues[queue.parent_id], queues)


def excesses(jobs: Iterable[Json], bounds: Iterable[Bound]) -> list[str]:
    """All that is wrong with what is admitted together: a queue or a node with more than it may
    have, pods of an admitted Job that were given no place."""
    held: Counter[tuple[str, str]] = Counter()
    on_node: Counter[str] = Counter()
    found = []
    for job in jobs:
        gpus, notes = gpus_of(job), job["metadata"].get("annotations") or {}
        if not gpus:
            continue
        placement = json.loads(notes.get(labels.PLACEMENT, "{}"))
        queue = labels.queue_of(job["metadata"]["labels"])
        held[queue, notes.get(labels.GPU_CLASS, "")] += gpus
        on_node.update({node: pods * gpus_of_pod(job) for node, pods in placement.items()})
        if sum(placement.values()) != job["spec"]["parallelism"]:
            found.append(f"{job['metadata']['name']} has no place")
    for bound in bounds:
        total = sum(held[queue, bound.gpu_class] for queue in bound.queues)
        if total > bound.gpus:
            found.append(f"{bound.name} has {total} of {bound.gpus}")
    return found + [f"{n} has {gpus}" for n, gpus in on_node.items() if gpus > NODE_GPUS]


class Auditor:
    """Notes each moment at which more was admitted than the quotas of its beginning allow."""

    def __init__(self, cluster: Cluster) -> None:
        self._bounds = bounds_of(cluster)
        self.found: list[list[str]] = []

    def look(self, jobs: Iterable[Json]) -> None:
        if found := excesses(jobs, self._bounds):
            self.found.append(found)


@contextmanager
def audited(world: World) -> Iterator[None]:
    """Fails at the end of the block if anything was ever exceeded within it; that comes before other
    failures of the block, which it may explain."""
    auditor = Auditor(world.cluster)
    auditor.look(jobs_of(world.server))
    follow = _follow_real if isinstance(world.server, RealServer) else _follow_embedded
    try:
        with follow(world.server, auditor.look):
            yield
    finally:
        assert not auditor.found, auditor.found[0]


@contextmanager
def _follow_embedded(server: EmbeddedServer, look: Callable[[list[Json]], None]) -> Iterator[None]:
    """Within the write itself: the store is locked, so no state between two writes is missed."""
    stop = server.store.watch(JOB_RESOURCE, lambda _: look(jobs_of(server)))
    try:
        yield
    finally:
        stop()


@contextmanager
def _follow_real(server: RealServer, look: Callable[[list[Json]], None]) -> Iterator[None]:
    """By a watch, which tells of every version in order."""
    mirror = Reflector(server.direct, JOBS, on_change=lambda: look(mirror.objects()))
    mirror.start()
    assert mirror.synced.wait(CAUGHT_UP_S)
    try:
        yield
        eventually(lambda: _versions(mirror.objects()) == _versions(jobs_of(server)), CAUGHT_UP_S)
    finally:
        mirror.stop()


def _versions(jobs: Iterable[Json]) -> set[int]:
    return {version_of(job) for job in jobs}


def put_under_one_roof(
    world: World, *, nominal_gpus: int, borrowing: dict[str, int], together: int
) -> None:
    """The queues below one that may hold ``together`` GPUs and borrows none."""
    root = Queue.objects.get(cluster=world.cluster, parent=None)
    roof = Queue.objects.create(cluster=world.cluster, name="roof", parent=root)
    own = Quota.objects.filter(queue__name="research").get()
    own.pk, own.queue = None, roof
    own.nominal_gpus, own.borrowing_limit_gpus = together * MILLI, 0
    own.save()
    for queue in Queue.objects.filter(name__in=borrowing):
        queue.parent = roof
        queue.save()
        queue.quotas.update(
            nominal_gpus=nominal_gpus * MILLI, borrowing_limit_gpus=borrowing[queue.name] * MILLI
        )
