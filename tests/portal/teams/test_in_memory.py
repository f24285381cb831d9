"""What is decided of rows that are read already is what the database would answer."""

from __future__ import annotations

import pytest

from portal.accounts.capabilities import Capability
from portal.accounts.models import User
from portal.approvals.models import QuotaRequest
from portal.approvals.states import State
from portal.approvals.who import sees, visible_requests
from portal.teams.access import places, visible_queues
from portal.teams.reading import seen_of
from portal.teams.rights import rights_of
from scheduling.models import Cluster, Queue
from tests.factories import NOW, example_cluster

pytestmark = pytest.mark.django_db
STATES = (State.DRAFT, State.SUBMITTED, State.CHANGES, State.ACTIVE)


@pytest.fixture
def cluster() -> Cluster:
    return example_cluster()


def test_each_capability_covers_the_queues_that_its_query_finds(cluster: Cluster) -> None:
    queues = list(Queue.objects.filter(cluster=cluster))
    for user in User.objects.all():
        for capability in Capability:
            found = set(Queue.objects.filter(places(user, capability)).values_list("pk", flat=True))
            covered = {one.pk for one in queues if rights_of(user).covers(capability, one)}
            assert covered == found, (user.username, capability)


def test_queues_that_are_seen_are_those_that_the_query_finds(cluster: Cluster) -> None:
    queues = list(Queue.objects.filter(cluster=cluster))
    for user in User.objects.all():
        found = set(visible_queues(user).filter(cluster=cluster).values_list("pk", flat=True))
        assert seen_of(user, queues) == found, user.username


def test_requests_that_are_seen_are_those_that_the_query_finds(cluster: Cluster) -> None:
    authors, queues = list(User.objects.all()), list(cluster.queues.exclude(parent=None))
    for i, queue in enumerate(queues):
        QuotaRequest.objects.create(
            cluster=cluster, queue=queue, giver=queues[-1 - i] if i % 2 else None, kind="quota",
            author=authors[i % len(authors)], state=STATES[i % len(STATES)], created_at=NOW, since=NOW,
        )  # fmt: skip
    rows = list(QuotaRequest.objects.select_related("queue__parent", "giver"))
    for user in authors:
        found = set(visible_requests(user).values_list("pk", flat=True))
        assert {row.pk for row in rows if sees(user, row)} == found, user.username
