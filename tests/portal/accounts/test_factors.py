"""The second factor: what signing in asks for, what it refuses, and how it is changed."""

import pytest
from allauth.mfa.models import Authenticator
from django.test import Client

from portal.accounts.models import Session, User
from portal.accounts.tries import SignInTry
from tests.factories import make_user
from tests.portal.accounts.codes import code_of

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"
FACTORS = "/account/second-factor/"


@pytest.fixture
def person() -> User:
    user = make_user("m.okafor")
    user.set_password(PASSWORD)
    user.save()
    return user


@pytest.fixture
def inside(client, person) -> Client:
    """A browser of the person, who has just confirmed that it is them."""
    client.post("/sign-in/", {"username": person.username, "password": PASSWORD})
    client.post("/account/confirm/?next=/account/", {"password": PASSWORD})
    return client


@pytest.fixture
def secret(inside) -> str:
    """Of an app that is set up."""
    key = inside.get(f"{FACTORS}app/").context["form"].secret
    assert inside.post(f"{FACTORS}app/", {"code": code_of(key)}).status_code == 302
    return key


def knock(client: Client) -> str:
    """The password alone; where it leads."""
    fields = {"username": "m.okafor", "password": PASSWORD}
    return client.post("/sign-in/?next=/account/", fields).headers["Location"]


def signed_in() -> list[str]:
    return [session.how for session in Session.objects.exclude(user=None)]


def test_factors_change_only_after_the_password_once_more(client, person):
    client.post("/sign-in/", {"username": person.username, "password": PASSWORD})

    for page in ("app/", "passkeys/add/"):
        asked = client.get(FACTORS + page)
        assert asked.headers["Location"].startswith("/account/confirm/?next=")
    assert client.post("/account/confirm/", {"password": "wrong"}).status_code == 200
    assert client.get(f"{FACTORS}app/").status_code == 302


def test_wrong_first_code_sets_up_no_app_and_keeps_the_key(inside):
    key = inside.get(f"{FACTORS}app/").context["form"].secret
    page = inside.post(f"{FACTORS}app/", {"code": "000000"})

    assert "not right" in page.content.decode()
    assert page.context["form"].secret == key
    assert not Authenticator.objects.exists()


def test_app_asks_for_its_code_before_there_is_a_session(secret):
    Session.objects.all().delete()
    client = Client()
    assert knock(client) == "/sign-in/second-step/"
    assert client.get("/account/").status_code == 302
    assert signed_in() == []

    answer = client.post("/sign-in/second-step/", {"code": code_of(secret)})

    assert answer.status_code == 302
    assert client.get("/account/").status_code == 200
    assert signed_in() == ["password, app"]


def test_code_is_good_once(secret):
    clients = [Client(), Client()]
    for client in clients:
        knock(client)
    code = code_of(secret)
    answers = [c.post("/sign-in/second-step/", {"code": code}) for c in clients]

    assert [answer.status_code for answer in answers] == [302, 200]
    assert "was used already" in answers[1].content.decode()


def test_code_of_a_clock_half_a_minute_off_counts_and_an_older_one_does_not(secret):
    late, old = Client(), Client()
    knock(old)
    assert (
        old.post("/sign-in/second-step/", {"code": code_of(secret, steps_ago=3)}).status_code == 200
    )
    knock(late)
    assert (
        late.post("/sign-in/second-step/", {"code": code_of(secret, steps_ago=1)}).status_code
        == 302
    )


def test_codes_are_guessed_no_more_often_than_passwords(secret, settings):
    client = Client()
    for _ in range(settings.WEIR_SIGN_IN_TRIES):
        knock(client)
        page = client.post("/sign-in/second-step/", {"code": "000000"})

    assert "Too many attempts" in page.content.decode()
    knock(client)
    right = client.post("/sign-in/second-step/", {"code": code_of(secret)})
    assert "Too many attempts" in right.content.decode()


def test_second_step_without_a_first_leads_to_sign_in(client, person):
    assert client.get("/sign-in/second-step/").headers["Location"] == "/sign-in/"
    assert client.post("/sign-in/second-step/", {"code": "1"}).headers["Location"] == "/sign-in/"


def test_recovery_codes_are_shown_once_and_each_signs_in_once(inside, secret):
    shown = inside.get(f"{FACTORS}codes/").context["unused_codes"]
    assert len(set(shown)) == 10
    assert shown[0] not in inside.get(f"{FACTORS}codes/").content.decode()

    for expected in (302, 200):
        client = Client()
        knock(client)
        assert client.post("/sign-in/second-step/", {"code": shown[0]}).status_code == expected
    assert "password, recovery code" in signed_in()


def test_new_recovery_codes_replace_the_old(inside, secret):
    old = inside.get(f"{FACTORS}codes/").context["unused_codes"]
    inside.post(f"{FACTORS}codes/new/")
    new = inside.get(f"{FACTORS}codes/").context["unused_codes"]

    assert not set(old) & set(new)


def test_removed_app_leaves_the_password_alone_and_no_recovery_codes(inside, secret):
    assert inside.post(f"{FACTORS}app/remove/").status_code == 302

    assert not Authenticator.objects.exists()
    assert knock(Client()) == "/account/"


def test_copy_of_the_database_gives_no_codes(secret):
    kept = str(list(Authenticator.objects.values_list("data", flat=True)))
    assert secret not in kept


def test_key_before_the_present_one_still_reads_factors(secret, settings):
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another-key-of-this-portal-" * 3
    client = Client()
    knock(client)
    assert client.post("/sign-in/second-step/", {"code": code_of(secret)}).status_code == 302


def test_log_tells_what_changed_and_no_secret(secret, caplog):
    client = Client()
    knock(client)
    client.post("/sign-in/second-step/", {"code": "123456"})

    lines = caplog.text
    assert '"factor.refused"' in lines
    assert "123456" not in lines
    assert secret not in lines


def test_right_code_clears_the_count_of_wrong_ones(secret):
    client = Client()
    knock(client)
    client.post("/sign-in/second-step/", {"code": "000000"})
    client.post("/sign-in/second-step/", {"code": code_of(secret)})

    assert not SignInTry.objects.exists()


@pytest.mark.parametrize(
    "credential", ["", "{}", "[]", "no JSON", '{"id": 7}', '{"id": "x", "response": {}}']
)
@pytest.mark.parametrize("address", ["/sign-in/passkey/", f"{FACTORS}passkeys/add/"])
def test_passkey_that_is_none_is_refused(inside, credential, address):
    client = Client() if address.startswith("/sign-in") else inside
    client.get(address, headers={"X-Requested-With": "XMLHttpRequest"})
    answer = client.post(address, {"credential": credential})

    assert answer.status_code in (200, 302)
    assert not Authenticator.objects.exists()
