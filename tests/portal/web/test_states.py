"""What a page says when there is nothing to show, nothing it may show, or nothing new."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from portal.accounts.models import User
from scheduling.models import Cluster, ClusterMode, Queue, Share, Workload
from tests.factories import make_cluster, make_member

pytestmark = pytest.mark.django_db
NOTE = "data-stale-note"


def note(client, path="/c/fra1/work/"):
    html = client.get(path).content.decode()
    return html[html.index(NOTE) : html.index("</p>", html.index(NOTE))]


def test_fresh_plan_is_no_news(cluster, as_user):
    assert note(as_user("m.okafor")).startswith(f"{NOTE} hidden")


def test_plan_that_is_late_by_seconds_is_no_news(cluster, as_user):
    Cluster.objects.update(cycle_interval_s=2, planned_at=timezone.now() - timedelta(seconds=20))
    assert note(as_user("m.okafor")).startswith(f"{NOTE} hidden")


def test_old_plan_says_how_old_and_whom_to_tell(cluster, as_user):
    Cluster.objects.update(planned_at=timezone.now() - timedelta(minutes=7))
    said = note(as_user("m.okafor"))
    assert not said.startswith(f"{NOTE} hidden")
    assert "7 min" in said
    assert "tell somebody who operates the cluster" in said
    assert 'href="/c/fra1/cluster/"' in note(as_user("admin"))


def test_cluster_that_was_never_planned_says_so(cluster, as_user):
    Cluster.objects.update(planned_at=None)
    assert "has not planned this cluster yet" in note(as_user("m.okafor"))


def test_paused_cluster_says_that_it_is_paused(cluster, as_user):
    old = timezone.now() - timedelta(hours=7)
    Cluster.objects.update(planned_at=old, mode=ClusterMode.PAUSED)
    assert "The cluster is paused" in note(as_user("m.okafor"))


@pytest.mark.parametrize("path", ["/c/fra1/queues/vision/", "/c/fra1/queues/nothing/", "/c/x/"])
def test_forbidden_and_absent_pages_read_alike_and_say_what_to_do(cluster, as_user, path):
    response = as_user("p.rossi").get(path)
    assert response.status_code == 404
    html = response.content.decode()
    assert "The page does not exist, or you may not see it." in html
    assert "ask the lead of their team to add you" in html
    assert not re.search(r"\bvision\b", html)


def test_person_without_a_team_is_told_whom_to_ask(cluster, client):
    client.force_login(User.objects.create_user("stranger"))
    response = client.get("/")
    assert response.status_code == 404
    assert "Ask a team lead or an admin to add you to one." in response.content.decode()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/c/empty/", "No GPU class yet"),
        ("/c/empty/queues/", "No GPU class yet"),
        ("/c/empty/work/", "Nothing waits, nothing runs"),
        ("/c/empty/work/list/", "Nothing of yours is here"),
        ("/c/empty/workloads/", "Nothing waits or runs"),
        ("/c/empty/workloads/?name=x", "Nothing matches"),
        ("/c/empty/nodes/", "No GPU class yet"),
    ],
)
def test_empty_page_says_what_will_stand_there(client, path, said):
    cluster = make_cluster("empty")
    root = Queue.objects.create(cluster=cluster, name="empty")
    client.force_login(make_member(root, name="op", may_operate=True, may_submit=True))
    response = client.get(path)
    assert response.status_code == 200
    assert said in response.content.decode()


def test_queue_without_work_says_where_work_will_show(cluster, as_user):
    Workload.objects.all().delete()
    Share.objects.all().delete()
    html = as_user("admin").get("/c/fra1/queues/vision/").content.decode()
    assert "Nothing waits for h100-80gb" in html
