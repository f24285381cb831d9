"""Who gets in, where they land, and what the page gives away."""

import pytest
from django.test import Client
from django.urls import reverse

from tests.factories import make_user

pytestmark = pytest.mark.django_db
URL = "/sign-in/"


RIGHT = "correct horse"


@pytest.fixture
def lead():
    user = make_user("lead")
    user.set_password(RIGHT)
    user.save()
    return user


def sign_in(client, password=RIGHT, username="lead", **fields):
    return client.post(URL, {"username": username, "password": password, **fields})


def test_right_password_lands_on_the_first_page(client, lead):
    assert sign_in(client).headers["Location"] == "/"


@pytest.mark.parametrize("target", ["/account/", "/c/fra1/quotas/?class=l4"])
def test_next_inside_the_site_is_followed(client, lead, target):
    assert sign_in(client, next=target).headers["Location"] == target


@pytest.mark.parametrize(
    "target",
    ["https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example", ""],
)
def test_next_outside_the_site_is_dropped(client, lead, target):
    assert sign_in(client, next=target).headers["Location"] == "/"


@pytest.mark.parametrize("username", ["lead", "nobody"])
def test_wrong_password_and_unknown_name_read_the_same(client, lead, username):
    page = sign_in(client, "wrong", username).content.decode()

    assert "User name and password do not match." in page
    assert f'value="{username}"' in page
    assert "wrong" not in page


def test_inactive_person_is_told_nothing_more(client, lead):
    lead.is_active = False
    lead.save()

    assert "do not match" in sign_in(client).content.decode()


def test_too_many_failures_lock_the_name_and_say_for_how_long(client, lead, settings):
    for _ in range(settings.WEIR_SIGN_IN_TRIES):
        answer = sign_in(client, "wrong")

    assert answer.status_code == 429
    assert answer.headers["Retry-After"] == "900"
    assert "Wait 15 minutes" in answer.content.decode()
    assert sign_in(client).status_code == 429


def test_locked_name_does_not_lock_others(client, lead, settings):
    for _ in range(settings.WEIR_SIGN_IN_TRIES):
        sign_in(client, "wrong", "somebody")

    assert sign_in(client).status_code == 302


def test_sign_out_is_a_post(client, lead):
    client.force_login(lead)
    url = reverse("accounts:sign_out")

    assert client.get(url).status_code == 405
    assert client.post(url).headers["Location"] == URL
    assert client.get("/account/").status_code == 302


def test_demo_people_show_in_the_demo_only(client, settings):
    assert "demo" not in client.get(URL).content.decode()
    settings.DEMO = True
    page = client.get(URL).content.decode()
    assert all(f'value="{name}"' in page for name in ("researcher", "lead", "admin"))


def test_signed_in_person_is_led_on(client, lead):
    client.force_login(lead)

    assert client.get(f"{URL}?next=/account/").headers["Location"] == "/account/"


def test_sign_in_without_csrf_token_is_refused(lead):
    strict = Client(enforce_csrf_checks=True)
    assert sign_in(strict).status_code == 403
