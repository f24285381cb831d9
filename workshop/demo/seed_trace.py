"""Writes the policy of a recorded trace: one queue per virtual cluster, its part as nominal quota."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from django.contrib.auth.hashers import make_password

from portal.accounts.capabilities import TEAM, Capability
from portal.accounts.models import Persona, User
from portal.teams.models import Membership, Team
from scheduling.models import MILLI, Cluster, GpuClass, NodePool, PriorityClass, Queue, Quota
from workshop.demo.cluster.furnish import Machine
from workshop.demo.seed import BLOCK_LABEL, CLASS_LABEL, RACK_LABEL, make_personas, make_user
from workshop.demo.work.arrivals import TraceStream

GPU_CLASS, PRODUCT, RESOURCE = "gpu", "recorded-gpu", "nvidia.com/gpu"
PRIORITY_CLASS = "batch"
NODES_PER_RACK = 8
CPUS, MEMORY_GIB = 128, 1024


def seed_trace(cluster: Cluster, stream: TraceStream) -> None:
    """Class, priority class, queues and quotas in force from the trace's first second."""
    gpu_class = GpuClass.objects.create(
        cluster=cluster, name=GPU_CLASS, resource_name=RESOURCE, node_labels={CLASS_LABEL: PRODUCT}
    )
    NodePool.objects.create(cluster=cluster, gpu_class=gpu_class, name=GPU_CLASS)
    PriorityClass.objects.get_or_create(
        name=PRIORITY_CLASS, defaults={"value": 50, "is_default": True}
    )
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


def seed_trace_people(cluster: Cluster, stream: TraceStream, *, password: str) -> None:
    """``researcher`` in the largest queue's team, ``lead`` over all queues, ``admin`` operates; and everybody
    whose jobs the stream plays, in the team of their queue, to run what was recorded."""
    personas = make_personas()
    operations = Team.objects.create(name="operations", queue=cluster.queues.get(parent=None))
    teams = {
        queue.name: Team.objects.create(name=f"vc-{queue.name}", queue=queue)
        for queue in cluster.queues.exclude(parent=None)
    }
    _join_recorded(stream.people(), teams)
    largest = Quota.objects.filter(queue__cluster=cluster).order_by("-nominal_gpus").first()
    if largest is not None:
        _join(make_user("researcher", password), largest.queue.team, personas["researcher"])
    _join(make_user("lead", password), operations, personas["team lead"])
    _join(make_user("admin", password), operations, personas["admin"])


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


def _join_recorded(people: Iterable[tuple[str, str]], teams: Mapping[str, Team]) -> None:
    """(queue, user) -> a member who may submit anything there, and cannot sign in."""
    recorded, _ = Persona.objects.get_or_create(
        name="recorded", defaults={"grants": {Capability.SUBMIT: TEAM}}
    )
    places = [(teams[queue], user) for queue, user in people]
    names = sorted({user for _, user in places})
    nobody = make_password(None)
    User.objects.bulk_create(
        (User(username=name, password=nobody) for name in names), ignore_conflicts=True
    )
    users = User.objects.in_bulk(names, field_name="username")
    Membership.objects.bulk_create(
        Membership(user=users[user], team=team, persona=recorded) for team, user in places
    )


def _join(user: User, team: Team, persona: Persona) -> None:
    Membership.objects.get_or_create(user=user, team=team, defaults={"persona": persona})
