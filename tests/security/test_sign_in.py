"""Attacks on the sign-in: guessing, lying about where one comes from, keeping others out, forging the log."""

import json
import logging
from datetime import timedelta
from ipaddress import ip_network

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from portal.accounts import tries
from portal.accounts.models import KnownAddress, SignInTry
from portal.config.proxies import client_address, networks
from tests.factories import make_user

pytestmark = pytest.mark.django_db
RIGHT = "correct horse battery"
PROXY = "10.9.0.2"


@pytest.fixture
def person():
    """``person("lead")``: somebody whose password is right."""

    def make(name):
        user = make_user(name)
        user.set_password(RIGHT)
        user.save()
        return user

    return make


@pytest.fixture
def proxied(settings):
    settings.WEIR_TRUSTED_PROXIES = networks(["10.9.0.0/24"])


WRONG = "wrong"


def sign_in(name="lead", password=WRONG, address="192.0.2.7", client=None, **headers):
    client = client or Client()
    answer = client.post(
        "/sign-in/",
        {"username": name, "password": password},
        REMOTE_ADDR=address,
        headers={key.replace("_", "-"): value for key, value in headers.items()},
    )
    return answer.status_code


def guess(times, **how):
    return [sign_in(**how) for _ in range(times)]


# Where a request comes from


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        ("", PROXY),
        ("192.0.2.7", "192.0.2.7"),
        ("1.1.1.1, 192.0.2.7", "192.0.2.7"),
        ("1.1.1.1, 192.0.2.7, 10.9.0.3", "192.0.2.7"),
        ("192.0.2.7:4711", "192.0.2.7"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("192.0.2.7, unknown", PROXY),
        ("192.0.2.7, 'or 1=1", PROXY),
        ("10.9.0.4, 10.9.0.3", "10.9.0.4"),
    ],
)
def test_address_is_the_right_most_that_no_trusted_proxy_has(forwarded, address):
    assert client_address(PROXY, forwarded, networks(["10.9.0.0/24"])) == address


def test_address_of_a_stranger_is_their_own_whatever_they_say():
    assert client_address("192.0.2.7", "1.1.1.1", [ip_network("10.9.0.0/24")]) == "192.0.2.7"


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Real-IP", "Forwarded", "X-Client-IP"])
def test_rotating_header_does_not_evade_the_lock(person, settings, header):
    person("lead")
    for i in range(settings.WEIR_SIGN_IN_TRIES):
        sign_in(**{header.replace("-", "_"): f"198.51.100.{i}"})

    assert sign_in(password=RIGHT) == 429


def test_rotating_header_before_a_proxy_does_not_evade_the_lock(person, settings, proxied):
    person("lead")
    for i in range(settings.WEIR_SIGN_IN_TRIES):
        sign_in(address=PROXY, X_Forwarded_For=f"198.51.100.{i}, 192.0.2.7")

    forwarded = "203.0.113.9, 192.0.2.7"
    assert sign_in(password=RIGHT, address=PROXY, X_Forwarded_For=forwarded) == 429


def test_forged_header_does_not_lock_its_victim_out(person, settings):
    person("lead")
    guess(settings.WEIR_SIGN_IN_TRIES, X_Forwarded_For="203.0.113.9")

    assert sign_in(password=RIGHT, address="203.0.113.9") == 302


def test_people_behind_one_proxy_are_told_apart(person, settings, proxied):
    person("lead")
    guess(settings.WEIR_SIGN_IN_TRIES, address=PROXY, X_Forwarded_For="192.0.2.7")

    assert sign_in(password=RIGHT, address=PROXY, X_Forwarded_For="192.0.2.8") == 302


def test_addresses_of_one_ipv6_network_are_one(person, settings):
    person("lead")
    for i in range(settings.WEIR_SIGN_IN_TRIES):
        sign_in(address=f"2001:db8:1:2::{i:x}")

    assert sign_in(password=RIGHT, address="2001:db8:1:2:ffff::1") == 429
    assert sign_in(password=RIGHT, address="2001:db8:1:3::1") == 302


# Guessing


def test_name_is_locked_for_one_address_only(person, settings):
    person("lead")
    person("colleague")
    guess(settings.WEIR_SIGN_IN_TRIES)

    assert sign_in(password=RIGHT) == 429
    assert sign_in(password=RIGHT, address="192.0.2.8") == 302
    assert sign_in("colleague", RIGHT) == 302


@pytest.mark.parametrize("spelling", ["LEAD", "Lead", " lead ", "ｌｅａｄ"])
def test_other_spelling_of_a_name_is_the_same_count(person, settings, spelling):
    person("lead")
    guess(settings.WEIR_SIGN_IN_TRIES, name=spelling)

    assert sign_in(password=RIGHT) == 429


def test_lock_ends(person, settings, time_machine_at):
    person("lead")
    guess(settings.WEIR_SIGN_IN_TRIES)

    time_machine_at(timedelta(seconds=settings.WEIR_SIGN_IN_WAIT_S + 1))
    assert sign_in(password=RIGHT) == 302


def test_right_password_starts_the_count_anew(person, settings):
    person("lead")
    guess(settings.WEIR_SIGN_IN_TRIES - 1)
    assert sign_in(password=RIGHT) == 302

    assert guess(settings.WEIR_SIGN_IN_TRIES - 1) == [200] * (settings.WEIR_SIGN_IN_TRIES - 1)


def test_guesses_sent_at_once_all_count(settings):
    """Each is counted before its password is looked at."""
    seen = []
    for _ in range(settings.WEIR_SIGN_IN_TRIES + 3):
        attempt = tries.one_try("lead", "192.0.2.7")
        try:
            attempt.__enter__()
            seen.append(attempt)
        except tries.LockedError:
            continue

    assert len(seen) == settings.WEIR_SIGN_IN_TRIES


def test_refused_tries_leave_no_rows(person, settings):
    person("lead")
    guess(settings.WEIR_SIGN_IN_TRIES + 5)

    assert SignInTry.objects.count() == settings.WEIR_SIGN_IN_TRIES


def test_one_password_tried_on_everybody_is_slowed(person, settings):
    settings.WEIR_SIGN_IN_TRIES_WIDE = 10
    person("lead")
    for i in range(10):
        sign_in(f"somebody-{i}")

    assert sign_in(password=RIGHT) == 429


def test_own_account_does_not_wash_an_address_clean(person, settings):
    settings.WEIR_SIGN_IN_TRIES_WIDE = 10
    person("mallory")
    for i in range(9):
        sign_in(f"somebody-{i}")
        sign_in("mallory", RIGHT)

    assert guess(2, name="victim") == [429, 429]


def test_guesses_from_many_machines_are_slowed(person, settings):
    settings.WEIR_SIGN_IN_TRIES_WIDE = 10
    person("lead")
    for i in range(10):
        sign_in(address=f"198.51.100.{i}")

    assert sign_in(password=RIGHT, address="203.0.113.9") == 429


def test_attack_from_elsewhere_does_not_keep_the_person_out_where_they_work(person, settings):
    settings.WEIR_SIGN_IN_TRIES_WIDE = 10
    person("lead")
    assert sign_in(password=RIGHT, address="192.0.2.7") == 302
    for i in range(12):
        sign_in(address=f"198.51.100.{i}")

    assert sign_in(password=RIGHT, address="192.0.2.7") == 302


def test_attack_from_the_same_office_does_not_keep_colleagues_out(person, settings):
    settings.WEIR_SIGN_IN_TRIES_WIDE = 10
    person("lead")
    assert sign_in(password=RIGHT) == 302
    for i in range(12):
        sign_in(f"somebody-{i}")

    assert sign_in(password=RIGHT) == 302


def test_known_address_still_bounds_guesses(person, settings):
    person("lead")
    assert sign_in(password=RIGHT) == 302
    guess(settings.WEIR_SIGN_IN_TRIES)

    assert sign_in(password=RIGHT) == 429


def test_address_is_forgotten_after_a_while(person, time_machine_at):
    person("lead")
    sign_in(password=RIGHT, address="192.0.2.7")
    time_machine_at(tries.KNOWN_FOR + timedelta(days=1))
    sign_in(password=RIGHT, address="192.0.2.8")

    assert [known.address for known in KnownAddress.objects.all()] == ["192.0.2.8"]


def test_typed_name_is_not_kept(person):
    sign_in("hunter2-typed-in-the-wrong-field")

    row = SignInTry.objects.values().get()
    assert "hunter2" not in str(row)


def test_old_password_cannot_be_guessed_from_a_stolen_session(person, settings, client):
    client.force_login(person("lead"))
    form = {"old_password": "wrong", "new_password1": "x", "new_password2": "x"}
    codes = [
        client.post("/account/password/", form).status_code
        for _ in range(settings.WEIR_SIGN_IN_TRIES)
    ]

    assert codes == [400] * (settings.WEIR_SIGN_IN_TRIES - 1) + [429]
    assert client.post("/account/password/", {**form, "old_password": RIGHT}).status_code == 429


def test_locked_try_checks_no_password(settings):
    for _ in range(settings.WEIR_SIGN_IN_TRIES):
        with pytest.raises(ValidationError), tries.one_try("lead", "192.0.2.7"):
            raise ValidationError("wrong")

    def check():
        with tries.one_try("lead", "192.0.2.7"):
            pytest.fail("the password was looked at")

    with pytest.raises(tries.LockedError):
        check()


# The log


@pytest.fixture
def lines(caplog):
    """Events of the security log so far."""
    caplog.set_level(logging.INFO, "weir.security")

    def read():
        found = [r.getMessage() for r in caplog.records if r.name == "weir.security"]
        return [json.loads(line) for line in found]

    return read


def test_sign_ins_good_bad_and_locked_are_logged(person, settings, lines):
    person("lead")
    sign_in(password=RIGHT)
    guess(settings.WEIR_SIGN_IN_TRIES)

    events = [(line["event"], line["user"], line["address"]) for line in lines()]
    assert events[0] == ("sign_in.succeeded", "lead", "192.0.2.7")
    assert events[1] == ("sign_in.failed", "lead", "192.0.2.7")
    assert events[-1] == ("sign_in.locked", "lead", "192.0.2.7")


def test_sign_out_password_change_and_ended_sessions_are_logged(person, lines):
    lead, here = person("lead"), Client()
    Client().force_login(lead)
    here.force_login(lead)
    new = "a much better horse"
    form = {"old_password": RIGHT, "new_password1": new, "new_password2": new}
    assert here.post("/account/password/", form).status_code == 302
    here.post("/sign-out/")

    events = [line["event"] for line in lines()]
    assert events[-3:] == ["password.changed", "session.others_ended", "sign_out.done"]
    assert lines()[-2]["sessions"] == 1


def test_no_password_and_no_name_of_nobody_is_logged(person, caplog):
    person("lead")
    sign_in(password="wrong-secret-1")
    sign_in("typed-secret-2", "wrong-secret-3")
    sign_in(password=RIGHT)

    assert "secret" not in caplog.text
    assert RIGHT not in caplog.text


@pytest.mark.parametrize(
    "evil", ["x\n2026 INFO weir.security {}", "x\r\x1b[2K", "x\u2028\u202e\x85"]
)
def test_name_with_control_characters_forges_no_line(evil, caplog, lines):
    client = Client()
    client.force_login(make_user(f"evil {evil}"))
    client.post("/account/sessions/end/")

    logged = [r.getMessage() for r in caplog.records if r.name == "weir.security"]
    assert all(text.isascii() and text.isprintable() for text in logged)
    assert lines()[-1]["user"] == f"evil {evil}"
