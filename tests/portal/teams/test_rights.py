"""Who a person is is asked once a request, and never longer than one."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from portal.accounts.capabilities import Capability
from portal.accounts.models import Persona, User
from portal.teams.access import (
    is_operator,
    queues_of_own_work,
    tops,
    visible_clusters,
    visible_workloads,
)
from portal.teams.models import Membership, Team
from portal.teams.rights import keep_rights, rights_of
from scheduling.models import Queue, Workload
from tests.factories import example_cluster, make_cluster, make_member, make_persona

pytestmark = pytest.mark.django_db
PAGES = (
    "/c/fra1/", "/c/fra1/work/", "/c/fra1/work/list/", "/c/fra1/workloads/", "/c/fra1/queues/",
    "/c/fra1/queues/pretraining/", "/c/fra1/quotas/language/", "/c/fra1/nodes/", "/c/fra1/submit/",
    "/c/fra1/search?q=pre", "/c/fra1/reports/utilization", "/api/v1/clusters/fra1/workloads",
)  # fmt: skip


def asked_of(client, path):
    with CaptureQueriesContext(connection) as asked:
        assert client.get(path).status_code == 200
    tables = ('FROM "teams_membership"', 'FROM "accounts_persona"')
    return [q["sql"] for q in asked.captured_queries if any(t in q["sql"] for t in tables)]


@pytest.mark.parametrize("name", ["lead", "admin"])
def test_page_asks_once_who_the_person_is(client, name):
    example_cluster()
    client.force_login(User.objects.get(username=name))
    several = {path: len(found) for path in PAGES if len(found := asked_of(client, path)) > 1}
    # What the persona allows to submit is another question, of the persona and not of the person.
    several.pop("/c/fra1/submit/", None)
    assert several == {}


def test_page_of_a_workload_asks_once(client):
    example_cluster()
    client.force_login(User.objects.get(username="lead"))
    work = Workload.objects.get(name="pt-13b-ctx32k")
    assert len(asked_of(client, f"/c/fra1/w/{work.uid}/")) == 1


def test_right_that_is_taken_away_is_gone_with_the_next_request(client):
    cluster = make_cluster("ams1")
    root = Queue.objects.create(cluster=cluster, name="ams1")
    user = make_member(root, name="reader")
    client.force_login(user)
    assert client.get("/c/ams1/").status_code == 200
    Membership.objects.all().delete()
    assert client.get("/c/ams1/").status_code == 404


def test_rights_are_not_kept_outside_a_request():
    cluster = make_cluster("ams1")
    root = Queue.objects.create(cluster=cluster, name="ams1")
    user = make_member(root, name="reader")
    assert not is_operator(user)
    Persona.objects.update(grants={"operate": "all"})
    assert is_operator(user)


def test_kept_rights_answer_every_question_with_one_query(django_assert_num_queries):
    cluster = make_cluster("ams1")
    root = Queue.objects.create(cluster=cluster, name="ams1")
    leaf = Queue.objects.create(cluster=cluster, parent=root, name="leaf")
    user = make_member(leaf, name="reader", may_submit=True)
    persona = make_persona("reads costs", may_read_costs=True)
    team = Team.objects.create(name="root", queue=root)
    Membership.objects.create(user=user, team=team, persona=persona)
    keep_rights(user)
    with django_assert_num_queries(1):
        assert tops(user, Capability.SUBMIT) == [(cluster.pk, "leaf")]
        assert tops(user, Capability.COSTS) == [(cluster.pk, "")]
        assert len(tops(user)) == 2
        assert not is_operator(user)
    assert list(visible_clusters(user)) == [cluster]


def test_queues_whose_work_one_sees_are_read_once_a_request(django_assert_num_queries):
    cluster = make_cluster("ams1")
    root = Queue.objects.create(cluster=cluster, name="ams1")
    user = make_member(root, name="reader")
    keep_rights(user)
    assert list(visible_workloads(user)) == []
    with django_assert_num_queries(2):
        list(visible_workloads(user))
        list(visible_workloads(user))


def test_queues_too_many_to_name_are_left_to_the_database(monkeypatch):
    cluster = make_cluster("ams1")
    root = Queue.objects.create(cluster=cluster, name="ams1")
    Queue.objects.create(cluster=cluster, parent=root, name="leaf")
    user = keep_rights(make_member(root, name="lead", may_edit_quotas=True))
    named = queues_of_own_work(user)
    monkeypatch.setattr("portal.teams.rights.MOST_IDS", len(named) - 1)
    asked = queues_of_own_work(keep_rights(user))
    assert sorted(asked.values_list("pk", flat=True)) == sorted(named)


def test_membership_that_has_ended_grants_nothing():
    cluster = make_cluster("ams1")
    root = Queue.objects.create(cluster=cluster, name="ams1")
    user = make_member(root, may_operate=True)
    Membership.objects.update(until=timezone.now() - timedelta(seconds=1))
    assert rights_of(user).grants == []


def test_nearest_membership_is_the_one_that_grants():
    cluster = make_cluster("ams1")
    root = Queue.objects.create(cluster=cluster, name="ams1")
    leaf = Queue.objects.create(cluster=cluster, parent=root, name="leaf")
    user = make_member(root, may_read_costs=True)
    near = Team.objects.create(name="near", queue=leaf)
    Membership.objects.create(
        user=user, team=near, persona=make_persona("near", may_read_costs=True)
    )
    found = rights_of(user).granting(Capability.COSTS, cluster.pk, "leaf")
    assert found is not None
    assert found.team == "near"
