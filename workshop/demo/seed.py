"""Writes the example organisation: policy and people, no workloads. Safe to run twice."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from portal.accounts.capabilities import SUBTREE, Capability, Grants, ordered
from portal.accounts.models import Persona, User
from portal.teams.models import Membership, Team
from portal.teams.shipped_personas import ensure_personas
from scheduling.models import MILLI, Cluster, GpuClass, Node, NodePool, PriorityClass, Queue, Quota
from workshop.demo import organisation as org
from workshop.demo.cluster.furnish import Machine
from workshop.demo.work.uses import MEMORY_MIB

MEMORY_LABEL = "nvidia.com/gpu.memory"
CLASS_LABEL, POOL_LABEL = "nvidia.com/gpu.product", "weir.dev/pool"
BLOCK_LABEL, RACK_LABEL = "weir.dev/block", "weir.dev/rack"


def seed_cluster(cluster: Cluster, *, since: datetime) -> None:
    """Classes, pools, priority classes, queues and quotas in force from ``since``."""
    classes = _classes(cluster)
    _priority_classes()
    queues = _queues(cluster)
    if not Quota.objects.filter(queue__cluster=cluster).exists():
        _quotas(queues, classes, since)


def _classes(cluster: Cluster) -> dict[str, GpuClass]:
    classes = {}
    for position, spec in enumerate(org.CLASSES):
        classes[spec.name], _ = GpuClass.objects.get_or_create(
            cluster=cluster,
            name=spec.name,
            defaults={
                "resource_name": spec.resource_name,
                "node_labels": {CLASS_LABEL: spec.product},
                "exchange_rate": spec.exchange_rate,
                "price_per_gpu_hour": spec.price,
                "position": position,
            },
        )
    for pool in org.POOLS:
        NodePool.objects.get_or_create(
            cluster=cluster,
            name=pool.name,
            defaults={"gpu_class": classes[pool.gpu_class], "node_labels": {POOL_LABEL: pool.name}},
        )
    return classes


def _priority_classes() -> None:
    for name, value, preemptible, min_run_time_s, type_, default in org.PRIORITY_CLASSES:
        PriorityClass.objects.get_or_create(
            name=name,
            defaults={
                "value": value,
                "preemptible": preemptible,
                "min_run_time_s": min_run_time_s,
                "type": type_,
                "is_default": default,
            },
        )


def _queues(cluster: Cluster) -> dict[str | None, Queue]:
    queues: dict[str | None, Queue] = {}
    queues[None], _ = Queue.objects.get_or_create(cluster=cluster, parent=None, name=cluster.name)
    leaves = set(org.USERS)
    for position, spec in enumerate(org.QUEUES):
        queues[spec.name], _ = Queue.objects.get_or_create(
            cluster=cluster,
            name=spec.name,
            defaults={
                "parent": queues[spec.parent],
                "position": position,
                "sharing": spec.sharing,
                "namespace": spec.name if spec.name in leaves else "",
                "access_group": f"weir:{spec.name}",
            },
        )
    return queues


def _quotas(queues: dict[str | None, Queue], classes: dict[str, GpuClass], since: datetime) -> None:
    Quota.objects.bulk_create(
        Quota(
            queue=queues[spec.name],
            gpu_class=classes[name],
            nominal_gpus=nominal * MILLI,
            borrowing_limit_gpus=None if borrow is None else borrow * MILLI,
            lending_limit_gpus=None if lend is None else lend * MILLI,
            weight=Decimal(weight),
            effective_from=since,
        )
        for spec in org.QUEUES
        for name, (nominal, borrow, lend, weight) in spec.quotas.items()
    )


def machines() -> list[Machine]:
    """The organisation's nodes, to be simulated."""
    products = {c.name: c for c in org.CLASSES}
    return [
        Machine(
            name=name,
            resource_name=products[pool.gpu_class].resource_name,
            gpus=pool.gpus,
            cpus=pool.cpus,
            memory_gib=pool.memory_gib,
            labels={
                CLASS_LABEL: products[pool.gpu_class].product,
                POOL_LABEL: pool.name,
                BLOCK_LABEL: topology["block"],
                RACK_LABEL: topology["rack"],
                MEMORY_LABEL: str(MEMORY_MIB[pool.gpu_class]),
            },
            ready=ready,
            speed=pool.speed,
        )
        for pool, name, topology, ready in node_rows()
    ]


def node_rows() -> list[tuple[org.PoolSpec, str, dict[str, str], bool]]:
    """(pool, node name, topology, ready) of every node of the organisation."""
    rows = []
    for pool in org.POOLS:
        per_rack = -(-pool.nodes // len(pool.racks))
        for i in range(1, pool.nodes + 1):
            rack = pool.racks[(i - 1) // per_rack]
            topology = {"block": pool.block, "rack": rack}
            rows.append((pool, f"{pool.name}-{i:02}", topology, i not in pool.down))
    return rows


def seed_nodes(cluster: Cluster) -> None:
    """Node rows as the mirror would write them; only for clusters that nothing mirrors (tests)."""
    classes = {c.name: c for c in cluster.gpu_classes.all()}
    pools = {p.name: p for p in cluster.node_pools.all()}
    Node.objects.bulk_create(
        [
            Node(
                cluster=cluster,
                gpu_class=classes[pool.gpu_class],
                node_pool=pools[pool.name],
                name=name,
                gpus=pool.gpus * MILLI,
                topology=topology,
                ready=ready,
            )
            for pool, name, topology, ready in node_rows()
        ],
        ignore_conflicts=True,
    )


def seed_people(cluster: Cluster, *, password: str | None) -> None:
    """Personas, a team per queue, and the people.

    Without a password nobody can sign in (tests log in by other means). ``researcher`` is in
    pretraining and alignment, ``lead`` leads research, ``admin`` administers the installation.
    """
    personas = make_personas()
    researcher, serving = personas["researcher"], personas["service owner"]
    teams = {
        queue.name: Team.objects.get_or_create(name=_team_name(queue), defaults={"queue": queue})[0]
        for queue in cluster.queues.all()
    }
    root = teams[cluster.name]
    for leaf, names in org.USERS.items():
        for name in names:
            serves = "service" in org.WORK[leaf] and name != "researcher"
            _member(make_user(name, None), teams[leaf], serving if serves else researcher)
    _member(make_user("researcher", password), teams["pretraining"], researcher)
    _member(make_user("lead", password), teams["research"], personas["team lead"])
    _member(make_user("admin", password), root, personas["admin"])


def _team_name(queue: Queue) -> str:
    return "operations" if queue.is_root else queue.name


def make_personas() -> dict[str, Persona]:
    """The shipped ones by name. Those who submit may ask for as much as the example's work does; its lead
    and its admin submit too, so that one sign-in shows everything. Its lead hands larger requests to the
    admin, as leads do."""
    members = {"max_gpus_per_workload": 32 * MILLI, "max_run_time_s": 7 * 86400}
    everywhere: Grants = {Capability.SUBMIT: SUBTREE, Capability.ASK: SUBTREE}
    found = ensure_personas(researcher=members, service_owner=members, admin={})
    researcher = found["researcher"]
    if not researcher.priority_classes.exists():
        researcher.priority_classes.set(PriorityClass.objects.exclude(name="inference"))
    for name in ("team lead", "admin"):
        persona = found[name]
        persona.grants = ordered({**persona.grants, **everywhere})
        persona.save(update_fields=["grants"])
    return found


def make_user(name: str, password: str | None) -> User:
    user, made = User.objects.get_or_create(username=name)
    if made or (password and not user.has_usable_password()):
        user.set_password(password)
        user.save()
    return user


def _member(user: User, team: Team, persona: Persona) -> None:
    Membership.objects.get_or_create(user=user, team=team, defaults={"persona": persona})
