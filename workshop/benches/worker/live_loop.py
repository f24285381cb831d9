"""`python -m workshop.benches.worker.live_loop HOURS SEED FILE`: a life on an embedded cluster.

The cluster's clock is moved on between two cycles. ``bench live-loop`` starts it, in a process and with a
database of its own, reads what it wrote into FILE, and lives the same in the simulator.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scheduling.engine import model as m
from workshop.benches.engine.outcomes import Outcome, Progress

from .live_life import (
    CAP,
    CYCLE_S,
    DELAY_S,
    GPUS,
    NODES,
    PRIORITIES,
    QUEUES,
    EvictionForOther,
    LifeCourse,
    Work,
    drawn,
    figures,
    seconds,
    taken,
)
from .live_simulation import (
    CLASS,
    ORIGIN,
    PHILLY_NODES,
    organisation_figures,
    philly_figures,
    simulated_figures,
)
from .managers import program
from .runner import RESOURCE

if TYPE_CHECKING:
    from scheduling.cluster.connection.client import Client
    from scheduling.models import Cluster
    from workshop.testbed.server import EmbeddedServer

HOURS, SEED = 24.0, 1
ORGANISATION_DAYS = PHILLY_DAYS = 14.0
SPACE = "default"
JOBS = f"/apis/batch/v1/namespaces/{SPACE}/jobs"
SETTLED_S = 30.0
STILL = 1e-9
"""Speed of the cluster's clock between two steps: a cycle takes none of its time. Else what is over after
five ticks to the second is over at the fifth or the sixth, as busy as the machine is."""

Json = dict[str, Any]


def bench_live_loop(traces: Path, progress: Progress) -> Outcome:
    """One life through every part of a live cycle, and the same in the simulator."""
    hours = float(os.environ.get("WEIR_LIVE_LOOP_HOURS", HOURS))
    works = drawn(hours, SEED)
    progress(f"{len(works)} workloads in {hours:g} h on an embedded cluster")
    sizes = {work.name: float(work.gpus) for work in works}
    lived = figures(sizes, _lived_apart(hours))
    progress("the same in the simulator")
    simulated = simulated_figures(works, hours)
    days = ORGANISATION_DAYS * hours / HOURS
    progress(f"{days:g} days of the example organisation in the simulator")
    found = {f"live_{name}": value for name, value in lived.items()}
    found |= {f"simulated_{name}": value for name, value in simulated.items()}
    found |= {
        f"organisation_{name}": value for name, value in organisation_figures(days, SEED).items()
    }
    progress(f"{PHILLY_DAYS * hours / HOURS:g} days of Philly on {PHILLY_NODES} nodes")
    philly, inputs = philly_figures(traces, PHILLY_DAYS * hours / HOURS, SEED)
    found |= {f"philly_{name}": value for name, value in philly.items()}
    return Outcome(
        inputs=inputs,
        measured=found,
        notes=[
            f"{hours:g} h, {NODES} nodes of {GPUS} GPUs, {len(QUEUES)} queues, a cycle every {CYCLE_S} s,"
            f" seed {SEED}; {days:g} days of the example organisation, its own demand and limits",
            "victims take 60 to 360 s to leave; what runs restarts from its beginning after an eviction",
            "definitions: workshop/benches/worker/live_life.py",
        ],
    )


def _lived_apart(hours: float) -> LifeCourse:
    with tempfile.TemporaryDirectory(prefix="weir-live-loop-") as folder:
        found = Path(folder) / "found.json"
        environment = {
            **os.environ,
            "DATABASE_URL": f"sqlite:///{folder}/weir.sqlite3",
            "WEIR_BROKER_URL": "memory://",
        }
        command = program("live_loop", str(hours), str(SEED), found)
        subprocess.run(command, env=environment, check=True)  # noqa: S603 - ourselves
        document = json.loads(found.read_text())
    course = LifeCourse(end_s=document["end_s"], ended=document["ended"], lapsed=document["lapsed"])
    course.taken = [EvictionForOther(*one) for one in document["taken"]]
    course.starts.update(document["starts"])
    course.gone.update(document["gone"])
    return course


def main(hours: float, seed: int, found: Path) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    course = lived(drawn(hours, seed), hours)
    found.write_text(
        json.dumps(
            {
                "end_s": course.end_s, "taken": course.taken, "starts": course.starts,
                "gone": course.gone, "ended": course.ended, "lapsed": course.lapsed,
            }
        )
    )  # fmt: skip


def lived(
    works: Sequence[Work], hours: float, after_cycle: Callable[[Cluster], None] | None = None
) -> LifeCourse:
    """Through the embedded API server, the ledger and the whole cycle. Django has to be set up."""
    from scheduling.cluster.connection.client import Client
    from scheduling.services.worker import cluster_turns as workers
    from scheduling.services.worker.cycles import run_cycle
    from workshop.testbed.server import EmbeddedServer
    from workshop.testbed.server.kinds.clock import ManualClock

    clock = ManualClock(ORIGIN)
    with EmbeddedServer(port=0, clock=clock, startup_s=0.0) as server:
        cluster = furnished(server)
        client, coming, passed_s = Client.connect(cluster), list(works), 0
        while passed_s < hours * 3600:
            until_s = passed_s + CYCLE_S
            while coming and coming[0].at_s <= until_s:
                work = coming.pop(0)
                clock.step(work.at_s - passed_s)
                passed_s = work.at_s
                client.create(JOBS, job_of(work))
            clock.step(until_s - passed_s)
            passed_s = until_s
            _set_clock(cluster, clock.now())
            _catch_up(cluster, client)
            while run_cycle(cluster.pk, trigger="bench").skipped:
                time.sleep(0.1)  # A machine that is busy is slow to show the mirror its first list.
            _await_starts(cluster)
            if after_cycle is not None:
                after_cycle(cluster)
        client.close()
        workers.close_all()
    return course_of(cluster, hours)


def course_of(cluster: Cluster, hours: float) -> LifeCourse:
    """What the ledger has of it."""
    from scheduling.models import Decision, Eviction, State, Transition

    course = LifeCourse(end_s=hours * 3600)
    mine = Transition.objects.filter(workload__cluster=cluster).order_by("at", "pk")
    for name, state, at in mine.values_list("workload__name", "to_state", "at"):
        if state == State.ADMITTED:
            course.starts[name].append(seconds(at, ORIGIN))
        elif state == State.REQUEUED:
            course.gone[name].append(seconds(at, ORIGIN))
        elif state == State.FINISHED:
            course.ended[name] = seconds(at, ORIGIN)
    rows = Eviction.objects.filter(workload__cluster=cluster).exclude(for_workload=None)
    decided = Decision.objects.filter(workload__cluster=cluster, action="evict")
    at_of = dict(decided.values_list("cycle_id", "cycle__at"))
    for row in rows.select_related("workload", "for_workload").order_by("at", "pk"):
        reason = m.Reason.RECLAIMED if row.rule == "reclaim" else ""
        winner = row.for_workload
        at = at_of.get(row.cycle_id or 0, row.at)
        course.taken.append(
            taken(seconds(at, ORIGIN), row.workload.name, winner.name if winner else "",
                   row.gpus / m.MILLI, reason, row.numbers, row.allowed_by)
        )  # fmt: skip
    lapses = Decision.objects.filter(workload__cluster=cluster, action="lapse")
    course.lapsed = [str(row.numbers["rule"]) for row in lapses]
    return course


def job_of(work: Work) -> Json:
    from scheduling.cluster.vocabulary import labels

    container = {
        "name": "main", "image": "work", "resources": {"limits": {RESOURCE: str(work.gpus)}},
    }  # fmt: skip
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": work.name,
            "labels": {labels.QUEUE: work.queue, labels.PRIORITY_CLASS: work.priority},
        },
        "spec": {
            "suspend": True,
            "template": {
                "metadata": {"annotations": {"weir.dev/run-seconds": str(work.run_s)}},
                "spec": {
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": work.grace_s,
                    "containers": [container],
                },
            },
        },
    }


def furnished(server: EmbeddedServer) -> Cluster:
    """The cluster of ``server`` with nodes, queues and policy."""
    from scheduling.cluster.connection.client import Client
    from scheduling.models import (
        Cluster,
        ClusterMode,
        GpuClass,
        PriorityClass,
        Queue,
        Quota,
        Sharing,
    )

    cluster = Cluster.objects.create(
        name="life", mode=ClusterMode.ENFORCE, api_url=server.url, clock_speed=STILL,
        preemption_delay_s=DELAY_S, fair_share_delay_s=DELAY_S, eviction_cap=CAP,
        sharing=Sharing.FAIR_SHARE,
    )  # fmt: skip
    gpu_class = GpuClass.objects.create(cluster=cluster, name=CLASS, node_labels={"gpu": "true"})
    for name, value in PRIORITIES.items():
        PriorityClass.objects.create(name=name, value=value, is_default=name == "normal")
    root = Queue.objects.create(cluster=cluster, name="root")
    for name, gpus in QUEUES.items():
        queue = Queue.objects.create(cluster=cluster, name=name, parent=root, namespace=SPACE)
        Quota.objects.create(
            queue=queue, gpu_class=gpu_class, nominal_gpus=gpus * m.MILLI,
            effective_from=ORIGIN - timedelta(days=1),
        )  # fmt: skip
    client = Client.connect(cluster)
    for i in range(NODES):
        client.create("/api/v1/nodes", _node(f"n{i}"))
    client.close()
    return cluster


def _node(name: str) -> Json:
    amounts = {RESOURCE: str(GPUS), "cpu": "96", "memory": "512Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "gpu": "true"}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _set_clock(cluster: Cluster, now: datetime) -> None:
    from django.utils import timezone

    type(cluster).objects.filter(pk=cluster.pk).update(clock_start=now, clock_real=timezone.now())


def _catch_up(cluster: Cluster, client: Client) -> None:
    """Wait until the mirror, if there is one, holds what the server holds."""
    from scheduling.cluster.connection.reflector import version_of
    from scheduling.services.worker import cluster_turns as workers

    worker = workers._turns.get(cluster.pk)
    if worker is None:
        return
    mirrored = worker.link.mirror._reflectors.values()
    until = time.monotonic() + SETTLED_S
    while time.monotonic() < until:
        lists = (client.get(r._path, **r._chosen)["items"] for r in mirrored if r.served)
        there = {version_of(o) for found in lists for o in found}
        aside = {version for r in mirrored for version in r._aside.values()}
        if there == aside | {version_of(o) for r in mirrored for o in r.objects()}:
            return
        time.sleep(0.01)
    raise TimeoutError("the mirror does not catch up")


def _await_starts(cluster: Cluster) -> None:
    from scheduling.services.worker import cluster_turns as workers

    until = time.monotonic() + SETTLED_S
    while workers._turns[cluster.pk].link.enforcer.starts and time.monotonic() < until:
        time.sleep(0.01)


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
