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
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scheduling.engine import model as m
from scheduling.simulation.run.jobs import Submission
from scheduling.simulation.run.options import Options
from workshop.benches.engine.outcomes import Outcome, Progress
from workshop.simulator.jobs import Job
from workshop.simulator.simulator import Observer, simulate

from .live_life import (
    CAP,
    CYCLE_S,
    DELAY_S,
    GPUS,
    NODES,
    PRIORITIES,
    QUEUES,
    Course,
    Taken,
    Work,
    drawn,
    figures,
    seconds,
)
from .managers import program
from .runner import RESOURCE

if TYPE_CHECKING:
    from scheduling.cluster.connection.client import Client
    from scheduling.models import Cluster
    from workshop.testbed.server import EmbeddedServer

HOURS, SEED = 24.0, 1
ORGANISATION_DAYS = 14.0
ORIGIN = datetime(2026, 1, 5, 8, tzinfo=UTC)
SPACE = "default"
JOBS = f"/apis/batch/v1/namespaces/{SPACE}/jobs"
SETTLED_S = 30.0
CLASS = "gpu"

Json = dict[str, Any]


def bench_live_loop(_traces: Path, progress: Progress) -> Outcome:
    """One life through every part of a live cycle, and the same in the simulator."""
    hours = float(os.environ.get("WEIR_LIVE_LOOP_HOURS", HOURS))
    works = drawn(hours, SEED)
    progress(f"{len(works)} workloads in {hours:g} h on an embedded cluster")
    asked = {work.name: float(work.gpus) for work in works}
    lived = figures(asked, _lived_apart(hours))
    progress("the same in the simulator")
    simulated = figures(asked, simulated_course(works, hours))
    days = ORGANISATION_DAYS * hours / HOURS
    progress(f"{days:g} days of the example organisation in the simulator")
    found = {f"live_{name}": value for name, value in lived.items()}
    found |= {f"simulated_{name}": value for name, value in simulated.items()}
    found |= {f"organisation_{name}": value for name, value in organisation_figures(days).items()}
    return Outcome(
        measured=found,
        notes=[
            f"{hours:g} h, {NODES} nodes of {GPUS} GPUs, {len(QUEUES)} queues, a cycle every {CYCLE_S} s,"
            f" seed {SEED}; {days:g} days of the example organisation, its own demand and limits",
            "victims take 60 to 360 s to leave; what runs restarts from its beginning after an eviction",
            "definitions: workshop/benches/worker/live_life.py",
        ],
    )


def _lived_apart(hours: float) -> Course:
    with tempfile.TemporaryDirectory(prefix="weir-live-loop-") as folder:
        found = Path(folder) / "found.json"
        environment = {
            **os.environ,
            "DATABASE_URL": f"sqlite:///{folder}/weir.sqlite3",
            "WEIR_BROKER_URL": "memory://",
        }
        command = program("live_loop", str(hours), str(SEED), found)
        subprocess.run(command, env=environment, check=True)  # noqa: S603 - ourselves
        kept = json.loads(found.read_text())
    course = Course(end_s=kept["end_s"], ended=kept["ended"], lapsed=kept["lapsed"])
    course.taken = [Taken(*one) for one in kept["taken"]]
    course.starts.update(kept["starts"])
    course.gone.update(kept["gone"])
    return course


def template() -> m.Snapshot:
    """The same cluster and policy as the simulator sees them."""
    quotas = {name: {CLASS: m.Quota(nominal=gpus * m.MILLI)} for name, gpus in QUEUES.items()}
    return m.Snapshot(
        now=ORIGIN,
        gpu_classes=(m.GpuClass(CLASS),),
        nodes=tuple(m.Node(f"n{i}", CLASS, GPUS * m.MILLI) for i in range(NODES)),
        queues=tuple(m.Queue(name, quotas=quotas[name]) for name in QUEUES),
        priority_classes=tuple(m.PriorityClass(n, value) for n, value in PRIORITIES.items()),
        policy=m.Policy(preemption_delay_s=DELAY_S, fair_share_delay_s=DELAY_S, eviction_cap=CAP),
    )


def simulated_course(works: Sequence[Work], hours: float) -> Course:
    return _followed(template(), map(_submission, works), timedelta(hours=hours))


def organisation_figures(days: float) -> dict[str, float]:
    """Of the example organisation in the simulator."""
    from . import live_organisation as organisation

    world = organisation.template(ORIGIN)
    coming = list(organisation.submissions(world, days, SEED))
    asked = {
        one.workload.name: one.workload.gpus * one.workload.members.min / m.MILLI for one in coming
    }
    return figures(asked, _followed(world, coming, timedelta(days=days)))


def _followed(world: m.Snapshot, coming: Iterable[Submission], lasts: timedelta) -> Course:
    follow = _Follow()
    options = Options(cycle_s=CYCLE_S, until=world.now + lasts)
    simulate(world, coming, options=options, observer=follow)
    follow.course.end_s = lasts.total_seconds()
    return follow.course


def _submission(work: Work) -> Submission:
    engine = m.Workload(
        work.name, work.queue, work.priority, ORIGIN + timedelta(seconds=work.at_s),
        work.gpus * m.MILLI, gpu_classes=(CLASS,),
    )  # fmt: skip
    return Submission(engine, work.run_s, checkpoint_s=None, restart_s=0, leave_s=work.grace_s)


class _Follow(Observer):
    """Writes down what becomes of the work of a simulated life."""

    def __init__(self) -> None:
        self.course = Course()
        self._claims: set[str] = set()

    def on_plan(self, now: datetime, snapshot: m.Snapshot | None, plan: m.Plan) -> None:
        lines = {d.workload: d for d in plan.decisions if d.action is not m.Action.LAPSE}
        for one in plan.decisions:
            if one.action is m.Action.LAPSE:
                self.course.lapsed.append(one.rule)
                self._claims.discard(one.workload)
        awaits = {n for n, d in lines.items() if d.reason is m.Reason.AWAITS_VICTIMS}
        lost = {n for n in self._claims - awaits if n in lines and not _starts(lines[n])}
        self.course.lapsed += ["given_up"] * len(lost)
        self._claims = awaits

    def on_start(self, now: datetime, job: Job, decision: m.Decision) -> None:
        self.course.starts[job.name].append(seconds(now, ORIGIN))

    def on_evict(self, now: datetime, job: Job, decision: m.Decision) -> None:
        if decision.for_workload is None:
            return
        self.course.taken.append(
            _taken(seconds(now, ORIGIN), job.name, decision.for_workload, job.run.gpus / m.MILLI,
                   decision.reason, decision.numbers)
        )  # fmt: skip

    def on_requeue(self, now: datetime, job: Job) -> None:
        self.course.gone[job.name].append(seconds(now, ORIGIN))

    def on_finish(self, now: datetime, job: Job) -> None:
        self.course.ended[job.name] = seconds(now, ORIGIN)


def _starts(decision: m.Decision) -> bool:
    return decision.action is m.Action.ADMIT


def _taken(at_s: float, victim: str, winner: str, gpus: float, reason: str, numbers: Any) -> Taken:
    is_reclaim = reason == m.Reason.RECLAIMED
    keeps, nominal = (numbers.get(name) if is_reclaim else None for name in ("keeps", "nominal"))
    return Taken(at_s, victim, winner, gpus, keeps, nominal)


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


def lived(works: Sequence[Work], hours: float) -> Course:
    """Through the embedded API server, the ledger and the whole cycle. Django has to be set up."""
    from scheduling.cluster.connection.client import Client
    from scheduling.services.worker import held as workers
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
        client.close()
        workers.close_all()
    return course_of(cluster, hours)


def course_of(cluster: Cluster, hours: float) -> Course:
    """What the ledger has of it."""
    from scheduling.models import Decision, Eviction, State, Transition

    course = Course(end_s=hours * 3600)
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
            _taken(seconds(at, ORIGIN), row.workload.name, winner.name if winner else "",
                   row.gpus / m.MILLI, reason, row.numbers)
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
    from scheduling.models import Cluster, ClusterMode, GpuClass, PriorityClass, Queue, Quota

    cluster = Cluster.objects.create(
        name="life", mode=ClusterMode.ENFORCE, api_url=server.url, clock_speed=1,
        preemption_delay_s=DELAY_S, fair_share_delay_s=DELAY_S, eviction_cap=CAP,
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
    from scheduling.services.worker import held as workers

    worker = workers._held.get(cluster.pk)
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
    from scheduling.services.worker import held as workers

    until = time.monotonic() + SETTLED_S
    while workers._held[cluster.pk].link.enforcer.starts and time.monotonic() < until:
        time.sleep(0.01)


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
