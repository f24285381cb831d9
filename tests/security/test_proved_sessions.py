"""What goes on when a session has ended is made by who proved a moment ago that it is them."""

import re
from datetime import timedelta

import pytest
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
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
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


@pytest.mark.parametrize("page", PAGES)
def test_page_asks_for_a_proof_and_goes_on_with_what_was_typed(stale, page):
    (kwargs, typed), before = PAGES[page], made()
    address = reverse(page, kwargs=kwargs)

    asked = stale.post(address, typed)

    assert asked.headers["Location"] == f"/account/confirm/?next={address.replace('/', '%2F')}"
    assert made() == before
    wrong = stale.post(asked.headers["Location"], {"password": "wrong", "next": address})
    assert (wrong.status_code, made()) == (200, before)
    done = stale.post(asked.headers["Location"], {"password": PASSWORD, "next": address})
    assert done.status_code in (200, 302)
    assert made() != before


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
