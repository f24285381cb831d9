"""Sign-in through a real OpenID provider: who comes in as whom, and what their groups give."""

from datetime import timedelta
from urllib.parse import urlparse

import pytest
from allauth.socialaccount.models import SocialAccount
from django.test import Client

from portal.accounts.models import ApiToken, Persona, Session, User
from portal.teams import directory
from portal.teams.models import Membership, ServiceAccount, Team
from portal.teams.tasks import read_directory
from scheduling.models import Queue
from tests.factories import make_cluster, make_user

pytestmark = pytest.mark.django_db

LATER = timedelta(minutes=16)
WHO = {"preferred_username": "i.haddad", "given_name": "Ines", "family_name": "Haddad"}


def begin(client: Client, **fields: str) -> str:
    """The address at the provider that Weir leads to."""
    page = client.post("/sign-in/provider/", fields)
    assert page.status_code == 200, page.content
    return page.context["address"]


def come(client: Client, sso, subject: str, **fields: str):
    """All the way there and back; what Weir answers at the end."""
    back = urlparse(sso.sign_in(begin(client, **fields), subject))
    return client.get(f"{back.path}?{back.query}")


def teams_of(name: str) -> dict[str, str]:
    rows = Membership.objects.filter(user__username=name).select_related("team", "persona")
    return {row.team.name: row.persona.name for row in rows}


@pytest.fixture
def research() -> Team:
    root = Queue.objects.create(cluster=make_cluster(), name="fra1")
    queue = Queue.objects.create(cluster=root.cluster, parent=root, name="research")
    return Team.objects.create(name="research", queue=queue)


@pytest.fixture
def admin() -> User:
    return make_user("root-admin", is_superuser=True)


def rule(by: User, team: Team, group: str, persona: str, order: int = 100):
    given, _ = Persona.objects.get_or_create(name=persona)
    return directory.add_rule(by, group=group, team=team, persona=given, order=order, request=None)


def test_without_a_provider_there_is_no_button_and_no_way(client):
    assert "Example SSO" not in client.get("/sign-in/").content.decode()
    assert client.post("/sign-in/provider/").status_code == 404


def test_person_unknown_until_now_has_an_account_and_a_session(client, sso):
    sso.keep({"sub-1": WHO})
    assert "Sign in with Example SSO" in client.get("/sign-in/").content.decode()

    answer = come(client, sso, "sub-1", next="/account/")

    assert answer.status_code == 302
    assert answer.headers["Location"] == "/account/"
    user = User.objects.get()
    assert (user.username, user.first_name, user.last_name) == ("i.haddad", "Ines", "Haddad")
    assert not user.has_usable_password()
    assert Session.objects.get(user=user).how == "single sign-on"
    assert client.get("/account/").status_code == 200


def test_same_person_comes_back_to_the_same_account_whatever_their_name_is_by_then(sso):
    sso.keep({"sub-1": WHO})
    come(Client(), sso, "sub-1")
    sso.keep({"sub-1": {**WHO, "preferred_username": "i.haddad-weiss"}})
    come(Client(), sso, "sub-1")

    assert [user.username for user in User.objects.all()] == ["i.haddad"]


def test_account_with_a_password_is_not_taken_over_by_its_name(client, sso):
    owner = make_user("i.haddad")
    owner.set_password("correct horse battery")
    owner.save()
    sso.keep({"sub-1": WHO})

    answer = come(client, sso, "sub-1")

    assert answer.status_code == 403
    assert "is an account i.haddad here already" in answer.content.decode()
    assert not Session.objects.filter(user=owner).exists()
    assert not SocialAccount.objects.exists()


def test_account_made_beforehand_without_a_password_is_theirs(client, sso):
    known = make_user("i.haddad")
    sso.keep({"sub-1": WHO})

    assert come(client, sso, "sub-1").status_code == 302
    assert SocialAccount.objects.get().user == known


@pytest.mark.parametrize("kind", ["superuser", "program", "connected"])
def test_account_that_is_somebody_elses_is_not_taken_over(client, sso, research, kind):
    known = make_user("i.haddad", is_superuser=kind == "superuser")
    if kind == "program":
        ServiceAccount.objects.create(user=known, team=research)
    if kind == "connected":
        SocialAccount.objects.create(user=known, provider="oidc", uid="another")
    sso.keep({"sub-1": WHO})

    assert come(client, sso, "sub-1").status_code == 403


def test_who_has_a_password_connects_their_account_from_inside(client, sso):
    owner = make_user("i.haddad")
    owner.set_password("correct horse battery")
    owner.save()
    sso.keep({"sub-1": WHO})
    client.post("/sign-in/", {"username": "i.haddad", "password": "correct horse battery"})

    come(client, sso, "sub-1")

    assert SocialAccount.objects.get().user == owner
    assert come(Client(), sso, "sub-1").status_code == 302


def test_session_without_proof_connects_nobody_and_the_owners_proof_completes_nothing(
    client, sso, time_machine_at
):
    """A thief of the session would come in by their own account at the provider from then on."""
    owner = make_user("i.haddad")
    owner.set_password("correct horse battery")
    owner.save()
    sso.keep({"sub-thief": WHO})
    client.post("/sign-in/", {"username": "i.haddad", "password": "correct horse battery"})
    back = urlparse(sso.sign_in(begin(client), "sub-thief"))
    time_machine_at(LATER)

    assert (
        client.post("/sign-in/provider/").headers["Location"].startswith("/account/confirm/?next=")
    )
    assert client.get(f"{back.path}?{back.query}").status_code == 403
    client.post("/account/confirm/", {"password": "correct horse battery", "next": "/account/"})

    assert not SocialAccount.objects.exists()


def test_who_has_the_provider_alone_proves_themselves_there_and_keeps_what_they_typed(
    client, sso, time_machine_at
):
    sso.keep({"sub-1": WHO})
    come(client, sso, "sub-1")
    time_machine_at(LATER)
    typed = {"name": "nightly", "days": "30"}

    asked = client.post("/account/tokens/", typed).headers["Location"]
    assert asked == "/account/confirm/provider/?next=%2Faccount%2Fgo-on%2F"
    assert "Confirm with Example SSO" in client.get(asked).content.decode()
    assert client.get("/account/go-on/").headers["Location"] == "/account/"
    client.post("/account/tokens/", typed)
    proved = come(client, sso, "sub-1", next="/account/go-on/")

    assert proved.headers["Location"] == "/account/go-on/"
    shown = client.get("/account/go-on/")
    assert "nightly" in shown.content.decode()
    assert not ApiToken.objects.exists()
    client.post(shown.context["typed"].path, dict(shown.context["typed"].fields))
    assert ApiToken.objects.get().name == "nightly"


def test_another_person_of_the_provider_proves_nothing(client, sso, time_machine_at):
    sso.keep({"sub-1": WHO, "sub-2": {**WHO, "preferred_username": "other"}})
    come(Client(), sso, "sub-2")
    come(client, sso, "sub-1")
    time_machine_at(LATER)
    client.post("/account/tokens/", {"name": "t", "days": "30"})

    come(client, sso, "sub-2", next="/account/go-on/")

    assert client.get("/account/go-on/").headers["Location"] == "/account/"


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({}, "says no name of yours"),
        ({"preferred_username": "a b/c"}, "has characters"),
        ({"preferred_username": "weir:lead"}, "has characters"),
        ({"preferred_username": "svc-trainer"}, "begins as those of programs do"),
    ],
)
def test_person_without_a_name_that_can_be_kept_is_told_why(client, sso, claims, said):
    sso.keep({"sub-1": claims})

    answer = come(client, sso, "sub-1")

    assert answer.status_code == 403
    assert said in answer.content.decode()
    assert not User.objects.exists()


def test_answer_to_somebody_elses_question_signs_nobody_in(client, sso):
    sso.keep({"sub-1": WHO})
    back = urlparse(sso.sign_in(begin(Client()), "sub-1"))

    answer = client.get(f"{back.path}?{back.query}")

    assert answer.status_code == 403
    assert "gave no answer that counts" in answer.content.decode()
    assert not Session.objects.exclude(user=None).exists()


def test_answer_is_good_once(client, sso):
    sso.keep({"sub-1": WHO})
    back = urlparse(sso.sign_in(begin(client), "sub-1"))
    client.get(f"{back.path}?{back.query}")
    client.post("/sign-out/")

    assert client.get(f"{back.path}?{back.query}").status_code == 403


def test_provider_that_is_away_is_said(client, sso, settings):
    app = settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"][0]
    app["settings"]["server_url"] = "http://127.0.0.1:9/o"

    answer = client.post("/sign-in/provider/")

    assert answer.status_code == 503
    assert "Example SSO does not answer" in answer.content.decode()


def test_inactive_person_is_not_let_in(client, sso):
    sso.keep({"sub-1": WHO})
    come(Client(), sso, "sub-1")
    User.objects.update(is_active=False)

    assert come(client, sso, "sub-1").headers["Location"] == "/sign-in/"
    assert client.get("/account/").status_code == 302


def test_groups_give_and_take_memberships_at_each_sign_in(sso, research, admin):
    rule(admin, research, "gpu-research", "researcher")
    sso.keep({"sub-1": {**WHO, "groups": ["everybody", "gpu-research"]}})
    come(Client(), sso, "sub-1")
    assert teams_of("i.haddad") == {"research": "researcher"}

    sso.keep({"sub-1": {**WHO, "groups": ["everybody"]}})
    come(Client(), sso, "sub-1")
    assert teams_of("i.haddad") == {}


def test_of_two_rules_for_a_team_the_lower_order_gives_the_persona(sso, research, admin):
    rule(admin, research, "gpu-research", "researcher", order=20)
    rule(admin, research, "gpu-research-leads", "lead", order=10)
    groups = ["gpu-research", "gpu-research-leads"]
    sso.keep({"sub-1": {**WHO, "groups": groups}})
    come(Client(), sso, "sub-1")
    assert teams_of("i.haddad") == {"research": "lead"}

    sso.keep({"sub-1": {**WHO, "groups": groups[:1]}})
    come(Client(), sso, "sub-1")
    assert teams_of("i.haddad") == {"research": "researcher"}


def test_membership_that_a_person_gave_is_neither_changed_nor_taken(sso, research, admin):
    rule(admin, research, "gpu-research", "researcher")
    user = make_user("i.haddad")
    by_hand = Persona.objects.create(name="approver")
    Membership.objects.create(user=user, team=research, persona=by_hand)
    for groups in (["gpu-research"], []):
        sso.keep({"sub-1": {**WHO, "groups": groups}})
        come(Client(), sso, "sub-1")
        assert teams_of("i.haddad") == {"research": "approver"}


def test_provider_that_says_nothing_of_groups_takes_nothing(sso, research, admin):
    rule(admin, research, "gpu-research", "researcher")
    sso.keep({"sub-1": {**WHO, "groups": ["gpu-research"]}})
    come(Client(), sso, "sub-1")
    sso.keep({"sub-1": WHO})
    come(Client(), sso, "sub-1")

    assert teams_of("i.haddad") == {"research": "researcher"}


def test_new_rule_acts_on_who_was_seen_in_the_group_and_a_deleted_one_takes_back(
    sso, research, admin
):
    sso.keep({"sub-1": {**WHO, "groups": ["gpu-research", "leads"]}})
    come(Client(), sso, "sub-1")
    assert teams_of("i.haddad") == {}

    first = rule(admin, research, "leads", "lead", order=1)
    rule(admin, research, "gpu-research", "researcher", order=2)
    assert teams_of("i.haddad") == {"research": "lead"}

    directory.delete_rule(admin, first, request=None)
    assert teams_of("i.haddad") == {"research": "researcher"}


def test_every_claim_is_read_as_text_or_not_at_all(sso, research, admin):
    rule(admin, research, "gpu-research", "researcher")
    sso.keep({"sub-1": {**WHO, "groups": [7, None, {"x": 1}, "", "x" * 300, "gpu-research"]}})
    come(Client(), sso, "sub-1")

    assert User.objects.get(username="i.haddad").seen_groups.names == ["gpu-research"]


HOURS_8 = 8 * 3600


def in_tab_and_by_token(client: Client, token: str) -> tuple[int, int]:
    by_token = Client().get("/api/v1/me", headers={"Authorization": f"Bearer {token}"})
    return client.get("/account/").status_code, by_token.status_code


@pytest.mark.parametrize(("age_s", "after"), [(0, (200, 200)), (HOURS_8, (302, 401))])
def test_whom_the_provider_has_not_confirmed_for_long_is_out_until_it_does(
    client, sso, settings, time_machine_at, age_s, after
):
    """However busily the session is used."""
    settings.WEIR_SIGN_IN_AGE_S, settings.WEIR_SESSION_IDLE_S = age_s, 7 * 24 * 3600
    sso.keep({"s-1": WHO})
    come(client, sso, "s-1")
    user = SocialAccount.objects.get().user
    _, token = ApiToken.issue(user, "mine")
    time_machine_at(timedelta(hours=7, minutes=50))
    read_directory()
    assert in_tab_and_by_token(client, token) == (200, 200)
    time_machine_at(timedelta(hours=8, minutes=5))
    read_directory()
    assert in_tab_and_by_token(client, token) == after

    come(client, sso, "s-1")
    assert in_tab_and_by_token(client, token) == (200, 200)


def test_superuser_is_in_whatever_the_provider_has_said(client, sso, settings, time_machine_at):
    settings.WEIR_SIGN_IN_AGE_S = HOURS_8
    sso.keep({"s-1": WHO})
    come(client, sso, "s-1")
    User.objects.update(is_superuser=True)
    time_machine_at(timedelta(hours=9))
    read_directory()

    assert client.get("/account/").status_code == 200
