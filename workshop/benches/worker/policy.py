"""A load's queues and quotas as rows: cohorts are inner queues that share nothing with each other."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from scheduling.models import (
    MILLI,
    Cluster,
    ClusterMode,
    GpuClass,
    PriorityClass,
    Queue,
    Quota,
    Sharing,
)

from .runner import RESOURCE
from .work import Load

CLASS = "unit"


@transaction.atomic
def write_policy(load: Load, kubeconfig: str) -> Cluster:
    """The enforced cluster of ``kubeconfig`` with the queues of ``load``.

    A queue may borrow from its cohort, takes its nominal quota back from whoever borrowed it, and
    evicts lower priorities of its own.
    """
    cluster = Cluster.objects.create(
        name="bench",
        mode=ClusterMode.ENFORCE,
        kubeconfig=kubeconfig,
        preemption_delay_s=0,
        sharing=Sharing.FAIR_SHARE,
    )
    gpu_class = GpuClass.objects.create(cluster=cluster, name=CLASS, resource_name=RESOURCE)
    for kind in load.classes:
        PriorityClass.objects.create(name=kind.name, value=kind.priority)
    root = Queue.objects.create(cluster=cluster, name="bench")
    quotas: list[Quota] = []

    def entitle(queue: Queue, nominal: int, borrowing: int) -> None:
        quotas.append(
            Quota(
                queue=queue,
                gpu_class=gpu_class,
                nominal_gpus=nominal * MILLI,
                borrowing_limit_gpus=borrowing * MILLI,
                effective_from=timezone.now(),
            )
        )

    for name in load.cohort_names:
        cohort = Queue.objects.create(cluster=cluster, name=name, parent=root)
        entitle(cohort, load.queues * load.nominal, 0)
        for leaf in load.queues_of(name):
            queue = Queue.objects.create(cluster=cluster, name=leaf, parent=cohort)
            entitle(queue, load.nominal, load.borrowing)
    Quota.objects.bulk_create(quotas)
    return cluster
