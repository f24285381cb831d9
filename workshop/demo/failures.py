"""Work of the example organisation that fails once the portal serves, and whose pods and log stay as long as
the demo: else what fails leaves the cluster after a day of its clock, and all other work after an hour."""

from __future__ import annotations

from portal.accounts.models import User
from portal.teams.models import Submitted
from portal.teams.submission import submit
from scheduling.models import Cluster
from scheduling.services.workloads.manifest import build_job_manifest
from workshop.demo.organisation import L4
from workshop.demo.work.arrivals import EXIT_CODE, IMAGE, RUN_TIME_LIMIT_S, simulated
from workshop.demo.work.uses import notes_of

USER, QUEUE, NAME = "researcher", "pretraining", "eval-web-corpus"
RUN_S = 25 * 60
GPUS = 1


def fail(cluster: Cluster) -> None:
    """As the researcher submits it; once."""
    if Submitted.objects.filter(cluster=cluster, manifest__metadata__name=NAME).exists():
        return
    queue = cluster.queues.get(name=QUEUE)
    manifest = build_job_manifest(
        name=NAME,
        queue=queue.name,
        namespace=queue.namespace,
        image=IMAGE,
        command=["python", "run.py", "--shards", "/data/shards"],
        gpu_classes=list(cluster.gpu_classes.filter(name=L4)),
        gpus_per_pod=GPUS,
        cpus_per_pod=8,
        memory_gib_per_pod=32,
        run_time_limit_s=RUN_TIME_LIMIT_S,
    )
    made = simulated(manifest, run_s=RUN_S, checkpoint_s=None)
    del made["spec"]["ttlSecondsAfterFinished"]
    made["spec"]["template"]["metadata"]["annotations"] |= {**dict(notes_of(NAME)), EXIT_CODE: "1"}
    submit(User.objects.get(username=USER), cluster, made)
