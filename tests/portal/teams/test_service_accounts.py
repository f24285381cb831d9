"""Programs that act for a team: who makes them, what they may do, and that nobody signs in as one.

fra1 ── research ── vision
     └─ products
"""

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import ApiToken, Persona, User
from portal.teams.access import submittable_queues
from portal.teams.giving import givable
from portal.teams.models import Membership, ServiceAccount, Team
from scheduling.models import GpuClass, PriorityClass, Queue
from tests.factories import make_cluster, make_persona, make_user

pytestmark = pytest.mark.django_db
PAGE = "/access/teams/{}/service-accounts/"


@pytest.fixture
def teams() -> dict[str, Team]:
    root = Queue.objects.create(cluster=make_cluster(), name="fra1")
    research = Queue.objects.create(cluster=root.cluster, parent=root, name="research")
    vision = Queue.objects.create(cluster=root.cluster, parent=research, name="vision")
    products = Queue.objects.create(cluster=root.cluster, parent=root, name="products")
    made = (Team.objects.create(name=q.name, queue=q) for q in (root, research, vision, products))
    return {team.name: team for team in made}


def persona(name: str, **fields) -> Persona:
    return make_persona(name, **fields)


@pytest.fixture
def researcher() -> Persona:
    return persona("researcher", may_submit=True, max_gpus_per_workload=16_000)


@pytest.fixture
def lead(teams) -> User:
    user = make_user("lead")
    mine = persona("team lead", may_submit=True, may_give=True, max_gpus_per_workload=32_000)
    Membership.objects.create(user=user, team=teams["research"], persona=mine)
    return user


@pytest.fixture
def browser(client, lead) -> Client:
    client.force_login(lead)
    return client


def make(browser: Client, team: str = "vision", given: str = "researcher", name: str = "nightly"):
    return browser.post(PAGE.format(team), {"name": name, "persona": given, "purpose": "evals"})


def token_of(browser: Client, *scopes: str) -> str:
    fields = {"name": "ci", "days": "30", "scopes": scopes}
    page = browser.post(f"{PAGE.format('vision')}svc-nightly/tokens/", fields)
    assert page.context["plain"] in page.content.decode()
    return page.context["plain"]


def test_lead_makes_an_account_whose_token_acts_within_its_persona(browser, researcher):
    assert make(browser).status_code == 302
    plain = token_of(browser, "work")
    account = ServiceAccount.objects.get()

    me = APIClient().get("/api/v1/me", headers={"Authorization": f"Bearer {plain}"}).json()
    assert (me["username"], me["operator"]) == ("svc-nightly", False)
    assert [m["persona"] for m in me["memberships"]] == ["researcher"]
    assert [q.name for q in submittable_queues(account.user)] == ["vision"]
    assert plain not in browser.get(PAGE.format("vision")).content.decode()


def test_account_and_tokens_stay_when_whoever_made_them_goes(browser, lead, researcher):
    make(browser)
    plain = token_of(browser)
    lead.delete()

    answer = APIClient().get("/api/v1/me", headers={"Authorization": f"Bearer {plain}"})
    assert answer.status_code == 200


def test_nobody_signs_in_as_a_program(browser, researcher):
    make(browser)
    user = User.objects.get(username="svc-nightly")
    assert not user.has_usable_password()
    for word in ("", "!", user.password):
        fields = {"username": "svc-nightly", "password": word}
        assert Client().post("/sign-in/", fields).status_code != 302


@pytest.mark.parametrize(
    "fields",
    [
        {"may_approve": True},
        {"may_operate": True},
        {"max_gpus_per_workload": 64_000},
        {"max_gpus_per_workload": None},
    ],
)
def test_lead_gives_no_persona_that_has_more_than_theirs(browser, teams, lead, fields):
    more = persona("more", **{"may_submit": True, "max_gpus_per_workload": 8_000, **fields})
    page = make(browser, given="more")

    assert page.status_code == 400
    assert "Choose one of the listed" in page.content.decode()
    assert more not in givable(lead, teams["vision"])
    assert not ServiceAccount.objects.exists()


def test_classes_count_for_what_may_be_given(teams, lead):
    cluster = teams["research"].queue.cluster
    h100, l4 = (GpuClass.objects.create(cluster=cluster, name=name) for name in ("h100", "l4"))
    high = PriorityClass.objects.create(name="high", value=1000)
    mine = Persona.objects.get(name="team lead")
    mine.gpu_classes.add(l4)
    bounds = {"may_submit": True, "max_gpus_per_workload": 1000}
    every, other, same = (persona(name, **bounds) for name in ("every", "other", "same"))
    other.gpu_classes.add(h100, l4)
    same.gpu_classes.add(l4)
    same.priority_classes.add(high)

    given = givable(lead, teams["vision"])
    assert (every in given, other in given, same in given) == (False, False, True)


def test_lead_reaches_teams_below_and_no_others(browser, researcher):
    assert browser.get(PAGE.format("vision")).status_code == 200
    for team in ("fra1", "products", "nowhere"):
        assert browser.get(PAGE.format(team)).status_code == 404
        assert make(browser, team).status_code == 404


def test_operator_gives_every_persona(teams):
    admin = make_user("admin", is_superuser=True)
    powerful = persona("powerful", may_operate=True)
    assert powerful in givable(admin, teams["vision"])


@pytest.mark.parametrize("name", ["", "a b", "x/y", "x" * 101])
def test_bad_name_is_refused_at_the_field_and_shown_again(browser, researcher, name):
    page = make(browser, name=name)

    assert page.status_code == 400
    assert list(page.context["form"].errors) == ["name"]
    assert page.context["form"]["name"].value() == name


def test_name_that_is_taken_is_refused_without_saying_by_whom(browser, researcher):
    make(browser)
    page = make(browser, team="research")
    assert page.status_code == 400
    assert "cannot be used here" in page.content.decode()


def test_deleted_account_takes_its_tokens_along(browser, researcher):
    make(browser)
    plain = token_of(browser)
    assert browser.post(f"{PAGE.format('vision')}svc-nightly/delete/").status_code == 302

    answer = APIClient().get("/api/v1/me", headers={"Authorization": f"Bearer {plain}"})
    assert answer.status_code == 401
    assert not User.objects.filter(username="svc-nightly").exists()


def test_revoked_token_is_refused_and_the_log_says_who(browser, researcher, caplog):
    make(browser)
    token_of(browser)
    token = ApiToken.objects.get()
    browser.post(f"{PAGE.format('vision')}svc-nightly/tokens/{token.pk}/revoke/")

    assert not ApiToken.objects.exists()
    assert '"by": "lead"' in caplog.text


def test_api_does_what_the_page_does(lead, researcher):
    api = APIClient()
    api.force_login(lead)
    at = "/api/v1/teams/vision/service-accounts"
    made = api.post(at, {"name": "nightly", "persona": "researcher"}, format="json")
    assert (made.status_code, made.json()["name"]) == (201, "svc-nightly")
    asked = {"name": "ci", "scopes": ["work"], "days": 7}
    token = api.post(f"{at}/svc-nightly/tokens", asked, format="json")
    assert token.json()["token"].startswith("weir_")
    listed = api.get(at).json()["results"]
    assert [t["name"] for t in listed[0]["tokens"]] == ["ci"]
    assert api.delete(f"{at}/svc-nightly/tokens/{token.json()['id']}").status_code == 204
    assert api.delete(f"{at}/svc-nightly").status_code == 204


def test_api_refuses_a_persona_that_has_more(lead, teams):
    persona("more", may_operate=True)
    api = APIClient()
    api.force_login(lead)
    at = "/api/v1/teams/vision/service-accounts"
    answer = api.post(at, {"name": "nightly", "persona": "more"}, format="json")

    assert answer.status_code == 400
    assert answer.json()["code"] == "not_yours"
    assert list(answer.json()["fields"]) == ["persona"]
