"""Data for tests: the example organisation at one moment, and small makers for single rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from portal.accounts.capabilities import ALL, NOT_BY_RIGHT, SUBTREE, Capability, ordered
from portal.accounts.models import Persona, User
from portal.teams.models import Membership, Team
from scheduling.models import (
    MILLI,
    Cluster,
    ClusterMode,
    Cycle,
    Eviction,
    EvictionRule,
    PriorityClass,
    Queue,
    Share,
    Sharing,
    State,
    Transition,
    Workload,
)
from tests.seeding import laid_down
from workshop.demo import organisation as org
from workshop.demo.seed import seed_cluster, seed_nodes, seed_people

NOW = datetime(2026, 11, 19, 9, 42, 16, tzinfo=UTC)
_serial = count(1)

# queue -> (allocated, fair share, pending, potential) of h100-80gb: the figures of one real moment.
H100_MOMENT = {
    "research": (64, 68, 32, 96),
    "language": (52, 56, 32, 64),
    "pretraining": (40, 39, 24, 64),
    "alignment": (12, 17, 8, 24),
    "vision": (8, 8, 0, 20),
    "speech": (4, 4, 0, 13.3),
    "robotics": (0, 0, 0, 8),
    "platform": (16, 16, 0, 32),
    "inference": (14, 14, 0, 24),
    "ci": (1, 1, 0, 8),
    "notebooks": (1, 1, 0, 4),
    "products": (34, 34, 28, 56),
    "search": (8, 13, 8, 24),
    "recommend": (16, 13, 4, 20),
    "translate": (2, 2, 0, 8),
    "assistant": (8, 6, 16, 16),
}


def make_cluster(name: str = "fra1", **fields: Any) -> Cluster:
    return Cluster.objects.create(
        name=name,
        **{
            "mode": ClusterMode.ENFORCE,
            "sharing": Sharing.FAIR_SHARE,
            "display_time_zone": "Europe/Berlin",
            **fields,
        },
    )


def make_user(name: str = "", **fields: Any) -> User:
    return User.objects.create_user(name or f"user-{next(_serial)}", password=None, **fields)


EVERYWHERE = {name: ALL for name in Capability if name not in NOT_BY_RIGHT}
FLAGS = {
    "may_submit": {Capability.SUBMIT: SUBTREE, Capability.ASK: SUBTREE},
    "may_edit_quotas": {
        Capability.EDIT_QUOTAS: SUBTREE, Capability.LEND: SUBTREE, Capability.ACT: SUBTREE
    },
    "may_approve": {Capability.APPROVE: SUBTREE},
    "may_give": {Capability.MEMBERS: SUBTREE},
    "may_read_costs": {Capability.COSTS: SUBTREE},
    "may_audit": {Capability.AUDIT: SUBTREE},
    "may_operate": EVERYWHERE,
}  # fmt: skip
"""What tests say in one word of a persona, besides seeing the work of the team's subtree."""


def make_persona(name: str = "", **fields: Any) -> Persona:
    """``fields`` are FLAGS, and columns."""
    grants = {Capability.SEE: SUBTREE}
    for flag, granted in FLAGS.items():
        grants |= granted if fields.pop(flag, False) else {}
    name = name or f"persona-{next(_serial)}"
    return Persona.objects.create(name=name, grants=ordered(grants), **fields)


def make_member(queue: Queue, *, name: str = "", **flags: bool) -> User:
    """A user in the team of ``queue`` (made if needed) whose persona has just these flags."""
    user = make_user(name)
    team, _ = Team.objects.get_or_create(queue=queue, defaults={"name": f"team-{queue.name}"})
    persona = make_persona(**flags)
    Membership.objects.create(user=user, team=team, persona=persona)
    return user


def make_workload(
    queue: Queue | None, *, cluster: Cluster | None = None, **fields: Any
) -> Workload:
    """A pending workload of one 1-GPU member; ``state`` and the rest as given, times filled in."""
    serial = next(_serial)
    cluster = cluster or (queue.cluster if queue else None)
    assert cluster is not None
    values: dict[str, Any] = {
        "uid": f"uid-{serial}",
        "name": f"work-{serial}",
        "namespace": (queue.namespace or queue.name) if queue else "default",
        "queue_label": queue.name if queue else "nowhere",
        "user": "m.okafor",
        "priority_class": PriorityClass.objects.filter(name="research-normal").first(),
        "submitted_at": NOW - timedelta(hours=3),
        "gpu_classes": [org.H100],
        **fields,
    }
    if values.get("state") in (State.ADMITTED, State.RUNNING, State.EVICTED):
        started = values["submitted_at"] + timedelta(minutes=10)
        values.setdefault("admitted_at", started)
        values.setdefault("first_started_at", started)
        values.setdefault("started_at", started)
        values.setdefault("members", values.get("min_members", 1))
        values.setdefault(
            "gpu_class", cluster.gpu_classes.filter(name=values["gpu_classes"][0]).first()
        )
    values.setdefault("max_members", values.get("min_members", 1))
    work = Workload.objects.create(cluster=cluster, queue=queue, **values)
    Transition.objects.create(workload=work, at=work.submitted_at, to_state=State.PENDING)
    return work


def example_cluster(*, at: datetime = NOW) -> Cluster:
    """The example organisation with nodes, people, and what held and waited for h100 at ``at``.

    Nothing mirrors it; ``cluster.now()`` starts at ``at``.
    """
    laid_down(("example cluster", at), lambda: _example_cluster(at))
    began = datetime.now(UTC)
    Cluster.objects.filter(name="fra1").update(
        clock_real=began, planned_at=began, sharing=Sharing.FAIR_SHARE
    )
    return Cluster.objects.get(name="fra1")


def _example_cluster(at: datetime) -> None:
    cluster = make_cluster(clock_real=datetime.now(UTC), clock_start=at)
    seed_cluster(cluster, since=at - timedelta(days=60))
    seed_nodes(cluster)
    seed_people(cluster, password=None)
    Cycle.objects.create(cluster=cluster, number=48213, at=at, took_ms=410, mode=cluster.mode)
    _shares(cluster)
    _workloads(cluster, at)


def _shares(cluster: Cluster) -> None:
    h100 = cluster.gpu_classes.get(name=org.H100)
    nodes = cluster.nodes.filter(gpu_class=h100)
    quotas = {spec.name: spec.quotas[org.H100] for spec in org.QUEUES}
    for queue in cluster.queues.exclude(parent=None):
        allocated, fair, pending, potential = H100_MOMENT[queue.name]
        nominal, borrow, lend, _ = quotas[queue.name]
        idle = max(0, nominal - allocated - pending)
        kept = 0 if lend is None else max(0, idle - lend)
        Share.objects.create(
            queue=queue,
            gpu_class=h100,
            fair_share=fair * MILLI,
            potential=potential * MILLI,
            allocated=allocated * MILLI,
            nominal=nominal * MILLI,
            limit=None if borrow is None else (nominal + borrow) * MILLI,
            demand=(allocated + pending) * MILLI,
            pending=pending * MILLI,
            guaranteed=min(nominal, allocated + pending) * MILLI,
            lent=(idle - kept) * MILLI,
            kept_back=kept * MILLI,
        )
    Share.objects.create(
        queue=cluster.queues.get(parent=None),
        gpu_class=h100,
        fair_share=sum(n.gpus for n in nodes if n.ready),
        potential=sum(n.gpus for n in nodes if n.ready),
        allocated=114 * MILLI,
        nominal=sum(n.gpus for n in nodes),
        limit=None,
        demand=174 * MILLI,
        pending=60 * MILLI,
    )


def _workloads(cluster: Cluster, at: datetime) -> None:
    queues = {q.name: q for q in cluster.queues.all()}
    nodes = [n.name for n in cluster.nodes.filter(gpu_class__name=org.H100, ready=True)]
    free = dict.fromkeys(nodes, 8)
    for name in org.USERS:
        allocated, _, pending, _ = H100_MOMENT[name]
        for i, size in enumerate(_pieces(int(allocated))):
            node = next(n for n in nodes if free[n] >= size)
            free[node] -= size
            make_workload(
                queues[name],
                name=f"{name}-run-{i + 1}",
                user=org.USERS[name][i % len(org.USERS[name])],
                gpus=size * MILLI,
                state=State.RUNNING,
                placement={node: 1},
                submitted_at=at - timedelta(hours=5 + i),
            )
        for i, size in enumerate(_pieces(int(pending))):
            make_workload(
                queues[name],
                name=f"{name}-wait-{i + 1}",
                user=org.USERS[name][i % len(org.USERS[name])],
                gpus=size * MILLI,
                submitted_at=at - timedelta(minutes=21 + 90 * i),
                reason="at_limit" if name == "assistant" else "above_fair_share",
                sentence=f"{queues[name].path} holds {allocated}; this gang needs {size} at once.",
                numbers={"allocated": allocated, "needs": size},
                position=i + 1,
            )
    _evictions(cluster, queues, at)


def _pieces(gpus: int) -> list[int]:
    return [8] * (gpus // 8) + ([gpus % 8] if gpus % 8 else [])


def _evictions(cluster: Cluster, queues: dict[str, Queue], at: datetime) -> None:
    victim = make_workload(
        queues["pretraining"],
        name="pt-13b-ctx32k",
        gpus=8 * MILLI,
        min_members=2,
        state=State.REQUEUED,
        submitted_at=at - timedelta(hours=20),
        reason="above_fair_share",
        sentence="research/language/pretraining holds 40 h100-80gb, 1 above its fair share of 39.",
        numbers={"allocated": 40, "fair_share": 39},
        eviction_count=1,
        lost_gpu_s=7.5 * 3600,
    )
    winner = Workload.objects.get(cluster=cluster, name="alignment-run-1")
    evicted = at - timedelta(hours=2, minutes=44)
    for before, after, when in (
        (State.PENDING, State.ADMITTED, at - timedelta(hours=19, minutes=20)),
        (State.ADMITTED, State.RUNNING, at - timedelta(hours=19, minutes=18)),
        (State.RUNNING, State.EVICTED, evicted),
        (State.EVICTED, State.REQUEUED, evicted + timedelta(seconds=30)),
    ):
        Transition.objects.create(workload=victim, at=when, from_state=before, to_state=after)
    Eviction.objects.create(
        workload=victim,
        at=evicted,
        rule=EvictionRule.RECLAIM,
        queue=victim.queue,
        for_workload=winner,
        for_queue=winner.queue,
        gpu_class=cluster.gpu_classes.get(name=org.H100),
        gpus=16 * MILLI,
        asked_gpus=12 * MILLI,
        lost_gpu_s=7.5 * 3600,
        sentence="pretraining held 56, 12 above its fair share of 44.",
        numbers={
            "victim_held_before": 56,
            "victim_held_after": 40,
            "victim_fair_share": 44,
            "for_held_before": 0,
            "for_held_after": 12,
            "for_fair_share": 12,
        },
    )
