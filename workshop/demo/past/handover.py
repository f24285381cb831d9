"""From a simulated past to a live cluster: what had not ended goes on as Jobs.

Each unfinished workload becomes a Job with its true submit time; what held GPUs is admitted in the
same way as enforcement would, to the nodes it was on, and runs for the rest of its time.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from scheduling.cluster.adapters import Admission, ClassSpec, JobAdapter
from scheduling.cluster.connection.client import Client
from scheduling.engine.model import Phase
from scheduling.models import GpuClass, Workload
from scheduling.services.workloads.submit import submit
from workshop.demo.cluster.furnish import SimulatedCluster
from workshop.demo.past.history import History, job_name
from workshop.demo.work.arrivals import manifest_of
from workshop.simulator.jobs import Job

Json = dict[str, Any]


def hand_over(played: SimulatedCluster, history: History, jobs: Iterable[Job]) -> None:
    """Create a Job for each of ``jobs`` and give its ledger row the Job's uid.

    ``history.save`` comes after: rows and Jobs agree from the first cycle on.
    """
    client = Client.connect(played.cluster)
    for job in jobs:
        workload = history.workloads[job.name]
        left_s = _left_s(job, played.clock.now())
        manifest = manifest_of(
            job.submission,
            job_name(job.name),
            history.queues[job.workload.queue],
            history.classes,
            left_s=left_s,
        )
        made = submit(played.cluster, manifest=manifest, user=workload.user)
        played.backdate(made, workload.submitted_at)
        workload.uid = made["metadata"]["uid"]
        if job.workload.phase is Phase.RUNNING and workload.gpu_class is not None:
            _admit(client, made, workload, workload.gpu_class)
    client.close()


def _left_s(job: Job, now: datetime) -> float:
    """Run time still ahead: of the current run, or of the next one."""
    if job.workload.phase is not Phase.RUNNING or job.workload.started is None:
        return job.left_s
    return max(1.0, job.run.restart_s + job.left_s - (now - job.workload.started).total_seconds())


def _admit(client: Client, made: Json, workload: Workload, gpu_class: GpuClass) -> None:
    admission = Admission(
        gpu_class=ClassSpec(gpu_class.name, gpu_class.resource_name, dict(gpu_class.node_labels)),
        members=workload.members,
        nodes=workload.placement,
        placement=workload.placement,
        at=workload.admitted_at or workload.submitted_at,
    )
    adapter = JobAdapter()
    meta = made["metadata"]
    client.patch(adapter.path(meta["namespace"], meta["name"]), adapter.admission(made, admission))
