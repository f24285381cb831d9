"""The overview before a crowd: read once a revision, and for nobody who may not see it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import User
from portal.teams.models import Membership
from scheduling.models import Cluster, Eviction, Node, Queue
from tests.factories import NOW, make_member, make_user, make_workload

pytestmark = pytest.mark.django_db
PATH = "/c/fra1/"
LONG = timedelta(days=9)
OF_THE_PERSON = 8
"""Session, person, rights, cluster, last cycle, notices and what is theirs by name."""

As = Callable[[str], Client]


@pytest.fixture(autouse=True)
def kept(settings: Any) -> None:
    settings.WEIR_REMEMBERED_S = 60.0


def alike(queue: Queue, count: int) -> list[User]:
    """People of one persona in the team of ``queue``."""
    first, *others = [make_member(queue), *(make_user() for _ in range(count - 1))]
    of = Membership.objects.get(user=first)
    for user in others:
        Membership.objects.create(user=user, team=of.team, persona=of.persona)
    return [first, *others]


def queues_on(client: Client) -> set[str]:
    html = client.get(PATH).content.decode()
    return set(re.findall(r'data-path="[^"]*?([\w-]+)"', html))


def cells_of(client: Client) -> list[str]:
    """What the page says of each class."""
    html = client.get(PATH).content.decode()
    return re.findall(r'capacity-sum">(.*?)</span>', html)


def queries_of(client: Client) -> int:
    with CaptureQueriesContext(connection) as asked:
        assert client.get(PATH).status_code == 200
    return len(asked)


def test_figures_are_read_once_a_revision(cluster: Cluster, as_user: As) -> None:
    client = as_user("admin")
    first = queries_of(client)

    assert queries_of(client) <= OF_THE_PERSON < first


def test_change_that_live_pages_are_told_of_is_shown(cluster: Cluster, as_user: As) -> None:
    client = as_user("admin")
    before = cells_of(client)
    Node.objects.filter(cluster=cluster).update(ready=False)
    assert cells_of(client) == before
    cluster.touch()

    assert cells_of(client) != before


def test_what_an_operator_was_shown_is_not_shown_to_a_member(cluster: Cluster, as_user: As) -> None:
    everything = queues_on(as_user("admin"))
    assert len(everything) == Queue.objects.filter(cluster=cluster, parent__isnull=False).count()
    seen = queues_on(as_user("p.rossi"))

    assert seen - {"others"} < everything
    assert "vision" not in seen


def test_rights_that_end_end_at_once(cluster: Cluster, as_user: As) -> None:
    client = as_user("p.rossi")
    assert queues_on(client)
    Membership.objects.filter(user__username="p.rossi").delete()

    assert client.get(PATH).status_code == 404


def test_what_is_the_same_for_two_people_is_read_once(cluster: Cluster, as_user: As) -> None:
    queue = Queue.objects.get(name="pretraining")
    first, second = alike(queue, 2)
    make_workload(queue, user=second.username)
    assert queries_of(as_user(first.username)) > OF_THE_PERSON

    assert queries_of(as_user(second.username)) <= OF_THE_PERSON


@pytest.mark.parametrize("own", ["waits", "was evicted", "was evicted where it is no more"])
def test_what_one_sees_as_theirs_alone_is_not_shown_to_their_like(
    cluster: Cluster, as_user: As, own: str
) -> None:
    queue, elsewhere = Queue.objects.get(name="pretraining"), Queue.objects.get(name="vision")
    people = alike(queue, 3)
    for person in people[:2]:
        at = queue if own == "was evicted where it is no more" else elsewhere
        work = make_workload(
            at, user=person.username, name=f"of-{person.username}", submitted_at=NOW - LONG,
            state="pending" if own == "waits" else "running",
        )  # fmt: skip
        if own != "waits":
            Eviction.objects.create(
                workload=work, at=NOW, rule="reclaim", queue=elsewhere, gpus=1000
            )

    for person in people:
        html = as_user(person.username).get(PATH).content.decode()
        shown = {one.username for one in people if f"of-{one.username}" in html}
        assert shown == ({person.username} & {one.username for one in people[:2]})
