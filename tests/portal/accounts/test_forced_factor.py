"""An installation that asks for a second factor: who is led to set one up, and who is left alone."""

import pytest
from allauth.mfa.models import Authenticator
from django.test import Client

from portal.accounts.models import ApiToken, Scope, User
from portal.accounts.sessions import HOW
from portal.config.checks import second_factor_is_asked_of_somebody
from tests.factories import example_cluster
from tests.portal.accounts.codes import code_of

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"
FACTORS = "/account/second-factor/"


@pytest.fixture
def cluster(db):
    return example_cluster()


@pytest.fixture
def sign_in(cluster):
    def by_password(name: str) -> Client:
        user = User.objects.get(username=name)
        user.set_password(PASSWORD)
        user.save()
        client = Client()
        client.post("/sign-in/", {"username": name, "password": PASSWORD})
        return client

    return by_password


@pytest.fixture
def asks(settings):
    def of(*names: str) -> None:
        settings.WEIR_SECOND_FACTOR = list(names)

    return of


def set_up(client: Client) -> None:
    client.post(f"/account/confirm/?next={FACTORS}app/", {"password": PASSWORD})
    key = client.get(f"{FACTORS}app/").context["form"].secret
    assert client.post(f"{FACTORS}app/", {"code": code_of(key)}).status_code == 302


def test_nobody_is_asked_unless_the_installation_says_so(sign_in):
    assert sign_in("admin").get("/people/").status_code == 200


@pytest.mark.parametrize(("wanted", "name", "asked"), [
    (("everybody",), "researcher", True),
    (("administer", "members"), "researcher", False),
    (("administer", "members"), "lead", True),
    (("administer",), "lead", False),
    (("administer",), "admin", True),
])  # fmt: skip
def test_asked_is_who_holds_what_the_setting_lists(asks, sign_in, wanted, name, asked):
    asks(*wanted)
    answer = sign_in(name).get("/people/")
    assert (answer.status_code, answer.headers.get("Location")) == (
        (302, FACTORS) if asked else (200, None)
    )


def test_superuser_is_asked_whatever_is_listed(asks, sign_in):
    User.objects.filter(username="researcher").update(is_superuser=True)
    asks("audit")
    assert sign_in("researcher").get("/people/").headers["Location"] == FACTORS


def test_everything_opens_once_the_factor_is_set_up(asks, sign_in):
    asks("everybody")
    client = sign_in("researcher")
    page = client.get("/people/", follow=True).content.decode()
    assert "Set up a second factor first" in page
    assert "everything else opens then" in page
    set_up(client)
    assert client.get("/people/").status_code == 200
    assert "Go on to your work" in client.get(FACTORS).content.decode()


def test_recovery_codes_alone_are_no_factor(asks, sign_in):
    asks("everybody")
    client = sign_in("researcher")
    set_up(client)
    Authenticator.objects.exclude(type=Authenticator.Type.RECOVERY_CODES).delete()
    assert client.get("/people/").headers["Location"] == FACTORS


@pytest.mark.parametrize("path", ["/c/fra1/submit/", "/account/tokens/", "/api/v1/tokens"])
def test_nothing_is_written_without_it(asks, sign_in, path):
    asks("everybody")
    answer = sign_in("researcher").post(path, {"name": "t"})
    assert answer.status_code in (302, 403)
    assert not ApiToken.objects.exists()


def test_api_says_what_is_needed_in_its_own_form(asks, sign_in):
    asks("everybody")
    answer = sign_in("researcher").get("/api/v1/me")
    assert answer.status_code == 403
    assert answer.json() == {
        "code": "second_factor_needed",
        "sentence": "Set up a second factor first: this installation asks you for one.",
        "remedy": "Set it up at /account/second-factor/.",
    }


def test_fragment_leads_the_whole_page(asks, sign_in):
    asks("everybody")
    answer = sign_in("researcher").get("/people/", HTTP_HX_REQUEST="true")
    assert answer.headers["HX-Redirect"] == FACTORS


def test_page_that_refreshes_itself_is_refused_without_a_message(asks, sign_in):
    asks("everybody")
    client = sign_in("researcher")
    assert client.get("/c/fra1/", HTTP_X_WEIR_LIVE="1").status_code == 403


def test_token_goes_on_working(asks, cluster):
    asks("everybody")
    user = User.objects.get(username="researcher")
    _, plain = ApiToken.issue(user, "pipeline", scopes=[Scope.READ])
    answer = Client().get("/api/v1/me", HTTP_AUTHORIZATION=f"Bearer {plain}")
    assert answer.status_code == 200


def test_who_came_by_the_provider_is_left_to_its_rule(asks, sign_in):
    client = sign_in("researcher")
    session = client.session
    session[HOW] = "single sign-on"
    session.save()
    asks("everybody")
    assert client.get("/people/").status_code == 200


def test_sign_out_stays_open(asks, sign_in):
    asks("everybody")
    assert sign_in("researcher").post("/sign-out/").headers["Location"] == "/sign-in/"


def test_sign_in_says_whom_it_asks(asks):
    asks("administer", "members")
    page = Client().get("/sign-in/").content.decode()
    assert (
        "A second factor is asked of whoever may: clusters, classes, policy, personas, members and"
        " their personas." in page
    )


def test_setting_that_names_nothing_is_refused_at_the_start(asks):
    asks("administer", "fly")
    (fault,) = second_factor_is_asked_of_somebody()
    assert (fault.id, "names fly" in fault.msg) == ("weir.E004", True)
