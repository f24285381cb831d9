"""`manage.py seed_large`: a large organisation in an empty PostgreSQL, and sessions of its people."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from portal.accounts.models import User
from portal.teams.access import visible_workloads
from scheduling.files.arguments import whole
from scheduling.management.command import WeirCommand
from scheduling.models import Cluster
from scheduling.services.ledger.workdays import roll_days
from workshop.demo.large import people, work
from workshop.demo.large.people import People, Tree

MOST = 10_000_000
LEAST_QUEUES = 30


@dataclass(frozen=True, slots=True)
class Each:
    """What one cluster has."""

    workloads: int
    queues: int
    nodes_of_a_class: int


class Command(WeirCommand):
    help = (
        "Fill an empty PostgreSQL with a large organisation; prints sessions of its people as JSON."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--workloads", type=whole(100, MOST), default=50_000)
        parser.add_argument("--queues", type=whole(LEAST_QUEUES, 100_000), default=1_000)
        parser.add_argument("--people", type=whole(25, 100_000), default=500)
        parser.add_argument(
            "--clusters", type=whole(1, 100), default=1, help="that share queues and workloads"
        )
        parser.add_argument("--nodes", type=whole(2, 50_000), default=2_000, help="of a cluster")
        parser.add_argument("--sessions", type=whole(0, 10_000), default=50)

    def handle(self, *args: Any, **options: Any) -> None:
        if connection.vendor != "postgresql":
            raise CommandError(
                "It writes what SQLite has no word for. Name a PostgreSQL in DATABASE_URL."
            )
        call_command("migrate", verbosity=0)
        if Cluster.objects.exists():
            raise CommandError("There is a cluster already. Give it an empty database.")
        each = Each(
            options["workloads"] // options["clusters"],
            options["queues"] // options["clusters"],
            options["nodes"] // 2,
        )
        if each.queues < LEAST_QUEUES:
            raise CommandError(f"--queues: each cluster needs {LEAST_QUEUES} or more.")
        found = _fill(each, options["clusters"], options["people"])
        self.stdout.write(json.dumps(_sessions(found.by_persona, options["sessions"])))


@transaction.atomic
def _fill(each: Each, clusters: int, count: int) -> People:
    found = _cluster("large", each, lambda tree: people.make_people(tree, count))
    for number in range(1, clusters):
        _cluster(f"large-{number:02}", each, lambda tree: people.join_another(found, tree))
    return found


def _cluster(name: str, each: Each, populate: Callable[[Tree], People]) -> People:
    now = timezone.now()
    cluster, classes = people.make_cluster(now, name, each.nodes_of_a_class)
    tree = people.make_tree(cluster, each.queues)
    people.divide(tree, classes, now, each.nodes_of_a_class)
    found = populate(tree)
    work.live(cluster, tree, classes, found, each.workloads, now)
    work.remember(cluster, now)
    roll_days(cluster)  # as the worker leaves the present day
    return found


def _sessions(found: dict[str, list[User]], count: int) -> list[dict[str, str]]:
    """Rows of ``_session``, spread over the personas by how many there are of each."""
    everybody = [(name, user) for name, users in found.items() for user in users]
    step = max(1, len(everybody) // max(1, count))
    return [_session(name, user) for name, user in everybody[::step][:count]]


def _session(persona: str, user: User) -> dict[str, str]:
    """{persona, user, cookie, value, department, queue, workload}: the last two are theirs to see."""
    browser = Client()
    browser.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    name, morsel = next((n, m) for n, m in browser.cookies.items() if "session" in n)
    membership = user.memberships.select_related("team__queue").first()
    department = membership.team.queue if membership else None
    rows = (
        visible_workloads(user).filter(queue__isnull=False).select_related("queue").order_by("pk")
    )
    seen = rows.filter(user=user.username).first() or rows.first()
    return {
        "persona": persona, "user": user.username, "cookie": name, "value": morsel.value,
        "department": department.name if department else "",
        "queue": seen.queue.name if seen and seen.queue else "", "workload": seen.uid if seen else "",
    }  # fmt: skip
