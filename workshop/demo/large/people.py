"""Its queues, people and machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from portal.accounts.models import Persona, User
from portal.teams.models import Membership, Team
from portal.teams.shipped_personas import ensure_personas
from scheduling.models import MILLI, Cluster, GpuClass, Node, Queue, Quota, Share

DEPARTMENTS, NODES_EACH, GPUS_EACH = 20, 1000, 8
CLASSES = ("h100-80gb", "a100-40gb")
UNUSABLE = "!"
"""They come in by sessions that are made for them."""
PERSONAS = ("researcher", "team lead", "admin")


@dataclass(frozen=True)
class Tree:
    root: Queue
    departments: Sequence[Queue]
    leaves: Sequence[Queue]

    @property
    def queues(self) -> list[Queue]:
        return [self.root, *self.departments, *self.leaves]


def make_cluster(
    now: datetime, name: str = "large", nodes_each: int = NODES_EACH
) -> tuple[Cluster, list[GpuClass]]:
    """``nodes_each`` nodes of each of two classes."""
    cluster = Cluster.objects.create(
        name=name, mode="enforce", clock_real=now, clock_start=now, clock_speed=1.0
    )
    classes = [
        GpuClass.objects.create(
            cluster=cluster, name=name, position=i, resource_name="nvidia.com/gpu",
            price_per_gpu_hour=2 - i,
        )
        for i, name in enumerate(CLASSES)
    ]  # fmt: skip
    Node.objects.bulk_create(
        Node(
            cluster=cluster, gpu_class=c, name=f"{c.name}-{i:04}", gpus=GPUS_EACH * MILLI,
            allocated_gpus=(i % 9) * MILLI if i % 9 < GPUS_EACH else GPUS_EACH * MILLI,
            topology={"rack": f"r{i // 32}"}, ready=i % 97 > 0,
        )
        for c in classes
        for i in range(nodes_each)
    )  # fmt: skip
    return cluster, classes


def make_tree(cluster: Cluster, queues: int) -> Tree:
    """``queues`` in all: a root, departments, and leaves dealt over them."""
    root = Queue.objects.create(cluster=cluster, name=cluster.name)
    departments = [
        Queue(cluster=cluster, parent=root, name=f"dept-{i:02}", path=f"dept-{i:02}", position=i)
        for i in range(DEPARTMENTS)
    ]
    Queue.objects.bulk_create(departments)
    leaves = [
        Queue(
            cluster=cluster, parent=above, name=f"team-{i:04}", path=f"{above.path}/team-{i:04}",
            namespace=f"team-{i:04}", position=i,
        )
        for i in range(queues - DEPARTMENTS - 1)
        for above in [departments[i % DEPARTMENTS]]
    ]  # fmt: skip
    Queue.objects.bulk_create(leaves, batch_size=500)
    return Tree(root, departments, leaves)


def divide(
    tree: Tree, classes: Sequence[GpuClass], since: datetime, nodes_each: int = NODES_EACH
) -> None:
    """Equal nominal for the leaves, and a division that holds four fifths of it."""
    each = nodes_each * GPUS_EACH // len(tree.leaves) * MILLI
    below = {queue.pk: 0 for queue in tree.departments}
    for leaf in tree.leaves:
        below[leaf.parent_id or 0] += 1
    sizes = {
        tree.root.pk: len(tree.leaves), **below, **dict.fromkeys((q.pk for q in tree.leaves), 1)
    }  # fmt: skip
    places = [(queue, c, sizes[queue.pk] * each) for queue in tree.queues for c in classes]
    Quota.objects.bulk_create(
        (
            Quota(queue=q, gpu_class=c, nominal_gpus=nominal, effective_from=since)
            for q, c, nominal in places
            if not q.is_root
        ),
        batch_size=500,
    )
    Share.objects.bulk_create(
        (
            Share(
                queue=q, gpu_class=c, nominal=nominal, fair_share=nominal, potential=nominal,
                allocated=nominal * 4 // 5, demand=nominal * 3, pending=nominal * 2, guaranteed=nominal,
            )
            for q, c, nominal in places
        ),
        batch_size=500,
    )  # fmt: skip


@dataclass(frozen=True)
class People:
    by_persona: dict[str, list[User]]
    by_department: dict[int, list[User]]
    """Of the departments, by id; admins belong to none."""


def make_people(tree: Tree, count: int) -> People:
    """An admin and a lead in each twenty-five, the others researchers of a department."""
    personas = ensure_personas(researcher={}, service_owner={}, admin={})
    teams = {
        queue.pk: Team.objects.create(name=queue.name, queue=queue)
        for queue in (tree.root, *tree.departments)
    }
    users = User.objects.bulk_create(
        User(username=f"person-{i:03}", password=UNUSABLE, email=f"person-{i:03}@example.org")
        for i in range(count)
    )
    found = People({name: [] for name in PERSONAS}, {q.pk: [] for q in tree.departments})
    members = []
    for i, user in enumerate(users):
        name = PERSONAS[2] if i % 25 == 0 else PERSONAS[1] if i % 25 == 1 else PERSONAS[0]
        queue = tree.root if name == "admin" else tree.departments[i % DEPARTMENTS]
        found.by_persona[name].append(user)
        if not queue.is_root:
            found.by_department[queue.pk].append(user)
        members.append(_member(user, teams[queue.pk], personas[name]))
    Membership.objects.bulk_create(members)
    return found


def join_another(found: People, tree: Tree) -> People:
    """The same people work in a further cluster too: a department of the same number, admins at its root."""
    personas = ensure_personas(researcher={}, service_owner={}, admin={})
    name = tree.root.name
    root = Team.objects.create(name=name, queue=tree.root)
    Membership.objects.bulk_create(
        _member(user, root, personas["admin"]) for user in found.by_persona["admin"]
    )
    there = {}
    for queue, users in zip(tree.departments, found.by_department.values(), strict=True):
        team = Team.objects.create(name=f"{name}-{queue.name}", queue=queue)
        leads = set(found.by_persona["team lead"])
        Membership.objects.bulk_create(
            _member(user, team, personas["team lead" if user in leads else "researcher"])
            for user in users
        )
        there[queue.pk] = users
    return People(found.by_persona, there)


def _member(user: User, team: Team, persona: Persona) -> Membership:
    return Membership(user=user, team=team, persona=persona)
