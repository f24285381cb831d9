"""People, teams, members and personas by REST: everything that their pages do."""

import pytest

from portal.accounts.models import Persona, User
from portal.teams.models import Membership, Team
from tests.factories import example_cluster, make_user

pytestmark = pytest.mark.django_db
API = "/api/v1"


@pytest.fixture
def cluster(db):
    return example_cluster()


@pytest.fixture
def api(client):
    def sign_in(name):
        client.force_login(User.objects.get(username=name))
        return client

    return sign_in


def send(client, method, path, body=None):
    return getattr(client, method)(f"{API}{path}", body or {}, content_type="application/json")


def test_admin_makes_person_team_persona_and_member(cluster, api):
    client = api("admin")
    Team.objects.get(name="search").memberships.all().delete()
    assert send(client, "delete", "/teams/search").status_code == 204
    new = {"name": "finders", "cluster": "fra1", "queue": "search"}
    assert send(client, "post", "/teams", new).status_code == 201
    grants = {"submit": "team", "see": "team"}
    persona = {"name": "guest", "grants": grants, "max_gpus_per_workload": 1}
    assert send(client, "post", "/personas", persona).status_code == 201
    assert send(client, "post", "/people", {"username": "new.one"}).json()["password"]
    given = send(client, "put", "/teams/finders/members/new.one", {"persona": "guest"})
    assert given.json() == {"user": "new.one", "persona": "guest"}
    assert Persona.objects.get(name="guest").max_gpus_per_workload == 1000


def test_lead_who_hands_out_too_much_is_told_at_the_field(cluster, api):
    make_user("new.one")
    answer = send(api("lead"), "put", "/teams/speech/members/new.one", {"persona": "admin"})
    assert answer.status_code == 400
    assert (answer.json()["code"], list(answer.json()["fields"])) == (
        "more_than_you_have", ["persona"],
    )  # fmt: skip


def test_may_answers_in_the_sentence_of_the_page(cluster, api):
    answer = api("admin").get(f"{API}/people/lead/may?capability=act&on=pretraining-run-1")
    told = answer.json()["answer"]
    assert (told["yes"], told["persona"], told["team"]) == (True, "team lead", "research")


def test_may_names_the_field_that_cannot_be_read(cluster, api):
    client = api("admin")
    for query, field in (("capability=fly&on=x", "capability"), ("capability=act&on=x", "on")):
        answer = client.get(f"{API}/people/lead/may?{query}")
        assert list(answer.json()["fields"]) == [field]


def test_member_is_removed(cluster, api):
    assert send(api("admin"), "delete", "/teams/search/members/p.rossi").status_code == 204
    assert not Membership.objects.filter(user__username="p.rossi").exists()


def test_persona_in_use_stays(cluster, api):
    assert send(api("admin"), "delete", "/personas/researcher").status_code == 409


def test_deactivated_person_is_not_active(cluster, api):
    answer = send(api("admin"), "put", "/people/p.rossi", {"is_active": False})
    assert answer.json()["is_active"] is False
