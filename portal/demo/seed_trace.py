"""Writes the policy of a recorded trace: one queue per virtual cluster, its part as nominal quota."""

from __future__ import annotations

from decimal import Decimal

from portal.accounts.models import Persona, User
from portal.demo.seed import BLOCK_LABEL, CLASS_LABEL, RACK_LABEL, make_personas, make_user
from portal.teams.models import Membership, Team
from scheduling.models import MILLI, Cluster, GpuClass, NodePool, PriorityClass, Queue, Quota
from scheduling.services.furnishing import Machine
from scheduling.services.streams import TraceStream

GPU_CLASS, PRODUCT, RESOURCE = "gpu", "recorded-gpu", "nvidia.com/gpu"
NODES_PER_RACK = 8
CPUS, MEMORY_GIB = 128, 1024


def seed_trace(cluster: Cluster, stream: TraceStream) -> None:
    """Class, priority class, queues and quotas in force from the trace's first second."""
    gpu_class = GpuClass.objects.create(
        cluster=cluster, name=GPU_CLASS, resource_name=RESOURCE, node_labels={CLASS_LABEL: PRODUCT}
    )
    NodePool.objects.create(cluster=cluster, gpu_class=gpu_class, name=GPU_CLASS)
    PriorityClass.objects.get_or_create(name="batch", defaults={"value": 50, "is_default": True})
    root = Queue.objects.create(cluster=cluster, name=cluster.name)
    for position, (name, nominal) in enumerate(stream.nominal_gpus.items()):
        queue = Queue.objects.create(
            cluster=cluster,
            parent=root,
            name=name,
            position=position,
            namespace=name,
            access_group=f"weir:{name}",
        )
        Quota.objects.create(
            queue=queue,
            gpu_class=gpu_class,
            nominal_gpus=nominal,
            weight=Decimal(nominal) / MILLI / stream.gpus_per_node,
            effective_from=stream.origin,
        )


def seed_trace_people(cluster: Cluster, *, password: str) -> None:
    """``researcher`` in the largest queue's team, ``lead`` over all queues, ``admin`` operates."""
    researcher, lead, operator = make_personas()
    operations = Team.objects.create(name="operations", queue=cluster.queues.get(parent=None))
    for queue in cluster.queues.exclude(parent=None):
        team = Team.objects.create(name=f"vc-{queue.name}", queue=queue)
        _join(make_user(f"user-{queue.name}", None), team, researcher)
    largest = Quota.objects.filter(queue__cluster=cluster).order_by("-nominal_gpus").first()
    if largest is not None:
        _join(make_user("researcher", password), largest.queue.team, researcher)
    _join(make_user("lead", password), operations, lead)
    _join(make_user("admin", password), operations, operator)


def trace_machines(stream: TraceStream) -> list[Machine]:
    """The pool's nodes, eight to a rack."""
    return [
        Machine(
            name=f"node-{i:03}",
            resource_name=RESOURCE,
            gpus=stream.gpus_per_node,
            cpus=CPUS,
            memory_gib=MEMORY_GIB,
            labels={
                CLASS_LABEL: PRODUCT,
                BLOCK_LABEL: "b1",
                RACK_LABEL: f"r{(i - 1) // NODES_PER_RACK + 1:02}",
            },
        )
        for i in range(1, stream.nodes + 1)
    ]


def _join(user: User, team: Team, persona: Persona) -> None:
    Membership.objects.get_or_create(user=user, team=team, defaults={"persona": persona})
