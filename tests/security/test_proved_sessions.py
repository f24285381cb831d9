"""What goes on when a session has ended is made by who proved a moment ago that it is them."""

import re
from datetime import timedelta

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from portal.accounts.models import ApiToken, User
from portal.api.permissions import scope_of
from portal.notices.models import Webhook
from portal.teams.models import ServiceAccount
from tests.factories import example_cluster
from tests.security.test_tokens import SESSION_ONLY, WRITING, url_of

PASSWORD = "correct horse battery"
LATER = timedelta(minutes=16)
PAGES = {
    "accounts:issue_token": ({}, {"name": "t", "days": "30"}),
    "web:people": ({}, {"username": "fresh.person", "email": "f@example.org"}),
    "web:service_accounts": ({"team": "research"}, {"name": "bot", "persona": "researcher"}),
    "web:webhook_add": ({}, {"name": "w", "address": "https://127.0.0.1/x"}),
}


@pytest.fixture
def admin(db, settings) -> User:
    settings.WEIR_WEBHOOK_INSIDE = ["127.0.0.1"]
    example_cluster()
    user = User.objects.get(username="admin")
    user.set_password(PASSWORD)
    user.save()
    return user


@pytest.fixture
def stale(admin, time_machine_at) -> Client:
    """A browser that was signed in sixteen minutes ago."""
    client = Client()
    client.force_login(admin)
    time_machine_at(LATER)
    return client


def made() -> list[int]:
    kinds = (ApiToken, ServiceAccount, User, Webhook)
    return [kind.objects.count() for kind in kinds]


def confirm(client, way, **shown):
    return client.post(way, {"next": reverse("accounts:go_on"), **shown})


@pytest.mark.parametrize("page", PAGES)
def test_page_asks_for_a_proof_and_shows_what_was_typed_before_it_is_sent(stale, page):
    (kwargs, typed), before = PAGES[page], made()
    address = reverse(page, kwargs=kwargs)

    asked = stale.post(address, typed)

    way = asked.headers["Location"]
    assert way == "/account/confirm/?next=%2Faccount%2Fgo-on%2F"
    assert (confirm(stale, way, password="wrong").status_code, made()) == (200, before)
    done = confirm(stale, way, password=PASSWORD)
    assert (done.headers["Location"], made()) == (reverse("accounts:go_on"), before)
    shown = stale.get(done.headers["Location"])
    text = shown.content.decode()
    assert made() == before
    assert f'action="{address}"' in text
    assert all(value in text for value in typed.values())
    assert stale.post(address, dict(shown.context["typed"].fields)).status_code in (200, 302)
    assert made() != before


def test_form_that_a_thief_of_the_session_left_is_not_sent_by_the_victims_proof(stale):
    """The thief posts, and the victim confirms for something of their own: nothing is made unseen."""
    before = made()
    stale.post(reverse("web:people"), {"username": "backdoor"})

    stale.post(reverse("account_reauthenticate"), {"password": PASSWORD, "next": "/people/"})

    assert made() == before
    shown = stale.get(reverse("accounts:go_on")).content.decode()
    assert "backdoor" in shown
    assert "Send it only if you typed it" in shown
    stale.post(reverse("accounts:go_on"))
    assert stale.get(reverse("accounts:go_on")).status_code == 302
    assert made() == before


def test_copy_of_the_cookie_does_not_share_in_the_victims_proof(stale):
    thief = Client()
    thief.cookies[settings.SESSION_COOKIE_NAME] = stale.cookies[settings.SESSION_COOKIE_NAME].value
    stale.post(reverse("account_reauthenticate"), {"password": PASSWORD, "next": "/people/"})

    before = made()
    address = reverse("accounts:issue_token")
    answer = thief.post(address, PAGES["accounts:issue_token"][1])
    assert answer.headers["Location"].startswith("/sign-in/")
    assert made() == before


def test_what_was_typed_is_forgotten_after_a_while_and_is_shown_to_nobody_else(
    stale, time_machine_at
):
    stale.post(reverse("web:people"), {"username": "fresh.person"})
    time_machine_at(LATER + LATER)
    stale.post(reverse("account_reauthenticate"), {"password": PASSWORD, "next": "/people/"})
    assert stale.get(reverse("accounts:go_on")).status_code == 302


@pytest.mark.parametrize("page", PAGES)
def test_page_of_who_signed_in_just_now_asks_for_nothing_more(admin, page):
    (kwargs, typed), before = PAGES[page], made()
    client = Client()
    client.post("/sign-in/", {"username": "admin", "password": PASSWORD})

    assert client.post(reverse(page, kwargs=kwargs), typed).status_code in (200, 302)
    assert made() != before


@pytest.mark.parametrize("operation", sorted(SESSION_ONLY))
def test_api_refuses_a_session_without_proof_and_says_where_it_proves_itself(stale, operation):
    entry, method, view = WRITING[operation]
    assert scope_of(view, method) is None
    before = made()

    refused = stale.generic(method, url_of(entry), "{}", content_type="application/json")

    assert refused.status_code == 403
    assert refused.json()["code"] == "proof_needed"
    way = re.search(r"/account/\S+/", refused.json()["remedy"]).group()
    stale.post(way, {"password": PASSWORD})
    again = stale.generic(method, url_of(entry), "{}", content_type="application/json")
    assert again.status_code != 403
    assert made() == before


def test_proof_of_another_person_in_the_same_browser_counts_for_nothing(stale, admin):
    session = stale.session
    session["account_authentication_methods_user"] = "0"
    session.save()

    assert (
        stale.post(reverse("accounts:issue_token"), PAGES["accounts:issue_token"][1]).status_code
        == 302
    )


def test_person_of_the_provider_alone_is_told_to_sign_in_again(stale, admin):
    admin.set_unusable_password()
    admin.save()
    stale.force_login(admin)
    session = stale.session
    session["account_authentication_methods"] = []
    session.save()

    asked = stale.post(
        reverse("accounts:issue_token"), PAGES["accounts:issue_token"][1], follow=True
    )

    assert asked.redirect_chain == [("/account/", 302)]
    assert "sign in again" in asked.content.decode()
    assert not ApiToken.objects.exists()
