"""The seven steps from an empty installation to enforce. How far it is follows from what is there, so that
it can be left and taken up at any step, by anybody who administers, and by REST as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Max

from portal.display.format import counted
from portal.teams.models import Membership, Team
from scheduling.models import Cluster, ClusterMode, Cycle, Queue, Quota


@dataclass(frozen=True, slots=True)
class SetupStep:
    """``result`` is one line of how it stands."""

    number: int
    slug: str
    title: str
    result: str
    done: bool


SLUGS = ("connect", "seen", "classes", "queues", "people", "would", "enforce")


def steps(cluster: Cluster | None) -> Sequence[SetupStep]:
    """All seven, as they stand for ``cluster``."""
    if cluster is None:
        rows = [("Connect a cluster", "kubeconfig, token or in-cluster", False)]
        rows += [(title, "after a cluster is connected", False) for title in TITLES[1:]]
    else:
        rows = [
            ("Connect a cluster", f"{cluster.name} by {_way(cluster)}", True),
            *(row(cluster) for row in (_look, _classes, _queues, _people, _would, _enforce)),
        ]
    return [
        SetupStep(number, slug, *row)
        for number, (slug, row) in enumerate(zip(SLUGS, rows, strict=True), start=1)
    ]


TITLES = (
    "Connect a cluster", "What Weir sees", "GPU classes and prices", "Queues", "People",
    "What it would have done", "Enforce",
)  # fmt: skip


def next_step(cluster: Cluster | None) -> str:
    """The first that is not done; the last once all are."""
    return next((step.slug for step in steps(cluster) if not step.done), SLUGS[-1])


def _way(cluster: Cluster) -> str:
    if cluster.api_url:
        return "token"
    return "kubeconfig" if cluster.kubeconfig else "the pod's own account"


def _look(cluster: Cluster) -> tuple[str, str, bool]:
    nodes = cluster.nodes.values("name").distinct().count()
    result = f"{counted(nodes, 'node')} with GPUs" if nodes else "the first look is under way"
    return TITLES[1], result, cluster.gpu_classes.exists()


def _classes(cluster: Cluster) -> tuple[str, str, bool]:
    found = cluster.gpu_classes.count()
    priced = cluster.gpu_classes.filter(price_per_gpu_hour__gt=0).count()
    return TITLES[2], f"{found} found, {priced} priced", 0 < found == priced


def _queues(cluster: Cluster) -> tuple[str, str, bool]:
    count = Queue.objects.filter(cluster=cluster).exclude(parent=None).count()
    given = Quota.objects.filter(queue__cluster=cluster, nominal_gpus__gt=0).exists()
    result = counted(count, "queue") if count else "none yet"
    return (
        TITLES[3],
        result + ("" if given or not count else ", none has quota"),
        count > 0 and given,
    )


def _people(cluster: Cluster) -> tuple[str, str, bool]:
    teams = Team.objects.filter(queue__cluster=cluster)
    members = Membership.objects.filter(team__in=teams).values("user").distinct().count()
    people = "person" if members == 1 else "people"
    return TITLES[4], f"{members} {people} in {teams.count()} teams", members > 0


def _would(cluster: Cluster) -> tuple[str, str, bool]:
    cycles = Cycle.objects.filter(cluster=cluster).aggregate(last=Max("number"))["last"] or 0
    return (
        TITLES[5],
        f"{cycles:,} cycles planned" if cycles else "fills while you go on",
        cycles > 0,
    )


def _enforce(cluster: Cluster) -> tuple[str, str, bool]:
    on = cluster.mode == ClusterMode.ENFORCE
    return (
        TITLES[6],
        "on" if on else f"{cluster.get_mode_display().lower()}: nothing is written",
        on,
    )
