"""Attacks on sessions: kept alive for ever, stolen, left open elsewhere, read from a copy of the database."""

from datetime import timedelta

import pytest
from django.conf import settings as django_settings
from django.test import Client

from portal.accounts.models import Session
from portal.accounts.sessions import digest_of
from portal.accounts.signals import browser_of
from tests.factories import make_cluster, make_user

pytestmark = pytest.mark.django_db
OLD, NEW = "correct horse battery", "a much better horse"


@pytest.fixture
def person():
    user = make_user("m.okafor")
    user.set_password(OLD)
    user.is_superuser = True
    user.save()
    return user


@pytest.fixture
def browser(person):
    """``browser()``: another browser in which the person is signed in."""

    def open_one():
        client = Client()
        client.force_login(person)
        return client

    return open_one


def is_in(client, **headers):
    return client.get("/account/", headers=headers).status_code == 200


def test_session_ends_when_idle(browser, settings, time_machine_at):
    tab = browser()
    time_machine_at(timedelta(seconds=settings.WEIR_SESSION_IDLE_S + 60))

    assert not is_in(tab)


def test_use_keeps_a_session(browser, settings, time_machine_at):
    tab = browser()
    for half in (1, 2, 3):
        time_machine_at(timedelta(seconds=half * settings.WEIR_SESSION_IDLE_S * 0.6))
        assert is_in(tab)


def test_session_in_use_ends_after_days_in_any_case(browser, settings, time_machine_at):
    tab = browser()
    for hours in range(6, settings.SESSION_COOKIE_AGE // 3600, 6):
        time_machine_at(timedelta(hours=hours))
        assert is_in(tab)
    time_machine_at(timedelta(seconds=settings.SESSION_COOKIE_AGE + 60))

    assert not is_in(tab)


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/c/fra1/live?once=1", {}),
        ("/c/fra1/live", {}),
        ("/c/fra1/", {"X-Weir-Live": "1"}),
        ("/c/fra1/", {"X-Weir-Unattended": "1"}),
    ],
)
def test_open_page_does_not_keep_the_session_of_who_left(
    browser, settings, time_machine_at, path, headers
):
    make_cluster()
    tab = browser()
    for half in (1, 2):
        time_machine_at(timedelta(seconds=half * settings.WEIR_SESSION_IDLE_S * 0.6))
        tab.get(path, headers=headers)

    assert not is_in(tab)


def test_shorter_idle_time_holds_for_sessions_that_are_open(browser, settings, time_machine_at):
    tab = browser()
    settings.WEIR_SESSION_IDLE_S = 60
    time_machine_at(timedelta(seconds=90))

    assert not is_in(tab)


def test_use_is_written_once_a_minute(browser, django_assert_num_queries, time_machine_at):
    tab = browser()
    is_in(tab)
    before = Session.objects.get().seen_at
    time_machine_at(timedelta(seconds=30))
    is_in(tab)
    assert Session.objects.get().seen_at == before
    time_machine_at(timedelta(seconds=90))
    is_in(tab)
    assert Session.objects.get().seen_at > before


def test_other_sessions_end_and_this_one_stays(browser):
    here, there = browser(), browser()

    assert here.get("/account/sessions/end/").status_code == 405
    assert here.post("/account/sessions/end/").status_code == 302
    assert is_in(here)
    assert not is_in(there)


def test_nobody_ends_sessions_of_others(browser, client):
    tab = browser()
    client.force_login(make_user("mallory"))
    client.post("/account/sessions/end/")

    assert is_in(tab)


def change(client, new=NEW, old=OLD):
    form = {"old_password": old, "new_password1": new, "new_password2": new}
    return client.post("/account/password/", form)


def test_new_password_ends_other_sessions(browser, person):
    here, there = browser(), browser()

    assert change(here).status_code == 302
    assert is_in(here)
    assert not is_in(there)
    assert person.sessions.count() == 1
    person.refresh_from_db()
    assert person.check_password(NEW)


@pytest.mark.parametrize("new", ["short", "password1234", "m.okafor1234"])
def test_guessable_new_password_is_refused(browser, person, new):
    assert change(browser(), new).status_code == 400
    person.refresh_from_db()
    assert person.check_password(OLD)


def test_new_password_without_the_old_one_is_refused(browser, person):
    assert change(browser(), old="wrong").status_code == 400
    person.refresh_from_db()
    assert person.check_password(OLD)


def test_sign_in_takes_a_new_key(person, client):
    """A key that somebody planted before does not become a signed-in one."""
    client.get("/sign-in/")
    client.cookies[django_settings.SESSION_COOKIE_NAME] = "planted0planted0planted0planted0"
    client.post("/sign-in/", {"username": person.username, "password": OLD})
    planted = Client()
    planted.cookies[django_settings.SESSION_COOKIE_NAME] = "planted0planted0planted0planted0"

    assert is_in(client)
    assert not is_in(planted)


def test_copy_of_the_database_signs_nobody_in(browser):
    tab = browser()
    key = tab.cookies[django_settings.SESSION_COOKIE_NAME].value
    row = Session.objects.get()
    thief = Client()
    thief.cookies[django_settings.SESSION_COOKIE_NAME] = row.pk

    assert row.pk == digest_of(key)
    assert key not in str(Session.objects.values().get())
    assert not is_in(thief)


def test_sign_out_ends_the_session_on_the_server(browser):
    tab = browser()
    key = tab.cookies[django_settings.SESSION_COOKIE_NAME].value
    tab.post("/sign-out/")
    again = Client()
    again.cookies[django_settings.SESSION_COOKIE_NAME] = key

    assert not is_in(again)
    assert not Session.objects.exists()


def test_person_sees_where_they_are_signed_in_and_nobody_else(person, client):
    tabs = [Client(headers={"user-agent": "X11; Linux x86_64 Firefox/140.0"}) for _ in range(2)]
    for tab in tabs:
        tab.post("/sign-in/", {"username": person.username, "password": OLD})
    page = tabs[0].get("/account/").content.decode()
    assert page.count('<span class="name">Firefox on Linux</span>') == 2
    assert "End the others" in page

    client.force_login(make_user("mallory"))
    assert "Firefox" not in client.get("/account/").content.decode()


def test_deactivated_person_is_out_at_once(browser, person):
    tab = browser()
    person.is_active = False
    person.save()

    assert not is_in(tab)


def test_sessions_that_ran_out_are_logged_and_cleared_away(
    browser, settings, time_machine_at, caplog
):
    caplog.set_level("INFO", "weir.security")
    browser()
    time_machine_at(timedelta(seconds=settings.WEIR_SESSION_IDLE_S + 60))
    browser()

    assert Session.objects.count() == 1
    assert caplog.text.count("session.expired") == 1


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537 Chrome/140 Safari/537 Edg/140", "Edge on Windows"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 14) Version/18 Safari/605", "Safari on macOS"),
        ("curl/8.1", "curl"),
        ("<script>alert(1)</script>", ""),
        ("Firefox on <b>\x1b[31m", "Firefox"),
        ("", ""),
    ],
)  # fmt: skip
def test_browser_is_told_in_words_of_our_own(agent, words):
    assert browser_of(agent) == words
