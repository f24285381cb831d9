"""The page and the API of group rules; what rules do is told in tests/portal/accounts/test_oidc.py."""

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from portal.accounts.models import Session, User
from portal.teams.models import GroupRule, Membership, SeenGroups, Team
from scheduling.models import Queue
from tests.factories import make_cluster, make_member, make_persona, make_user

pytestmark = pytest.mark.django_db
PAGE = "/access/groups/"


@pytest.fixture
def team() -> Team:
    root = Queue.objects.create(cluster=make_cluster(), name="fra1")
    return Team.objects.create(name="research", queue=root)


@pytest.fixture
def admin(client, team) -> User:
    user = make_user("admin", is_superuser=True)
    make_persona("researcher", may_submit=True)
    client.force_login(user)
    return user


ASKED = {"group": "gpu-research", "team": "research", "persona": "researcher", "order": "5"}


def test_rule_is_added_acts_at_once_and_takes_back_what_it_gave(client, admin, team):
    seen = make_user("i.haddad")
    SeenGroups.objects.create(user=seen, names=["gpu-research"], at=timezone.now())

    assert client.post(PAGE, ASKED).status_code == 302
    assert "gpu-research" in client.get(PAGE).content.decode()
    assert Membership.objects.get(user=seen).persona.name == "researcher"

    client.post(f"{PAGE}{GroupRule.objects.get().pk}/delete/")
    assert not Membership.objects.exists()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"group": ""}, "group"),
        ({"group": "x" * 256}, "group"),
        ({"team": "nowhere"}, "team"),
        ({"persona": ""}, "persona"),
        ({"order": "-1"}, "order"),
        ({"order": "many"}, "order"),
    ],
)
def test_bad_rule_is_refused_at_its_field_and_shown_again(client, admin, fields, field):
    page = client.post(PAGE, {**ASKED, **fields})

    assert page.status_code == 400
    assert list(page.context["form"].errors) == [field]
    assert not GroupRule.objects.exists()


def test_second_rule_of_a_group_for_a_team_is_refused(client, admin):
    client.post(PAGE, ASKED)
    page = client.post(PAGE, ASKED)

    assert page.status_code == 400
    assert "has a rule for research already" in page.content.decode()


def test_operator_of_a_cluster_rules_and_a_lead_does_not(client, team):
    client.force_login(make_member(team.queue, name="lead", may_edit_quotas=True))
    assert client.get(PAGE).status_code == 404
    assert client.post(PAGE, ASKED).status_code == 404


def test_api_lists_adds_and_deletes(admin):
    api = APIClient()
    api.force_login(admin)
    made = api.post("/api/v1/group-rules", {**ASKED, "order": 5}, format="json")
    assert made.status_code == 201
    assert api.post("/api/v1/group-rules", ASKED, format="json").json()["code"] == "name_taken"
    assert [rule["group"] for rule in api.get("/api/v1/group-rules").json()["results"]] == [
        "gpu-research"
    ]
    assert api.delete(f"/api/v1/group-rules/{made.json()['id']}").status_code == 204


def test_one_session_is_ended_by_page_and_by_api_and_the_others_stay(client, admin):
    began = {"began_at": timezone.now(), "seen_at": timezone.now()}
    for key in ("one", "two"):
        ends = timezone.now() + timezone.timedelta(hours=1)
        Session.objects.create(pk=key, user=admin, expire_date=ends, **began)

    assert client.post("/account/sessions/one/end/").status_code == 302
    assert {s["key"] for s in client.get("/api/v1/sessions").json()["results"]} > {"two"}
    assert client.delete("/api/v1/sessions/two").status_code == 204
    assert client.get("/account/").status_code == 200
