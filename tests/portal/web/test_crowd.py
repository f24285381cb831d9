"""The overview before a crowd: read once a revision, and for nobody who may not see it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from portal.teams.models import Membership
from scheduling.models import Cluster, Node, Queue

pytestmark = pytest.mark.django_db
PATH = "/c/fra1/"
OF_THE_PERSON = 8
"""Session, person, rights, cluster, last cycle and whether they may submit."""

As = Callable[[str], Client]


@pytest.fixture(autouse=True)
def kept(settings: Any) -> None:
    settings.WEIR_REMEMBERED_S = 60.0


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
