"""People of the organisation's directory (LDAP): who is let in, as whom, and what a reading follows."""

from __future__ import annotations

import socket
from dataclasses import replace
from datetime import timedelta

import environ
import pytest
from allauth.socialaccount.models import SocialAccount
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from ldap3 import MOCK_SYNC, NONE, Connection, Server

from portal.accounts import ldap
from portal.accounts.models import ApiToken, Session, User
from portal.config import doctoring
from portal.teams import directory as groups_of_the_directory
from portal.teams import ldap_reading
from portal.teams.models import Membership, Team
from scheduling.models import Queue
from tests.factories import make_cluster, make_persona, make_user

pytestmark = pytest.mark.django_db
PEOPLE, GROUPS = "ou=people,dc=example,dc=org", "ou=groups,dc=example,dc=org"
READER, SECRET, RIGHT = "cn=weir,dc=example,dc=org", "reads", "correct horse"
LATER = timedelta(minutes=16)
SET = {
    "WEIR_LDAP_URL": "ldaps://ldap.example.org",
    "WEIR_LDAP_BIND_DN": READER,
    "WEIR_LDAP_BIND_PASSWORD": SECRET,
    "WEIR_LDAP_BASE": PEOPLE,
    "WEIR_LDAP_GROUPS_BASE": GROUPS,
}


def configured(**more: str) -> ldap.Directory | None:
    env = environ.Env()
    env.ENVIRON = {**SET, **more}
    return ldap.configured(env)


class Tree:
    """A directory in memory; all connections see the same entries."""

    def __init__(self) -> None:
        self.server = Server("mock", get_info=NONE)
        self.asked: list[str] = []
        self.dit = self.connection(None, "ldaps://mock", READER, SECRET).strategy
        for base in (PEOPLE, GROUPS):
            self.dit.add_entry(base, {"objectClass": "organizationalUnit"})
        self.dit.add_entry(READER, {"objectClass": "account", "userPassword": SECRET})

    def connection(self, _: object, url: str, dn: str, password: str) -> Connection:
        self.asked.append(dn)
        made = Connection(self.server, dn, password, client_strategy=MOCK_SYNC)
        made.start_tls = lambda *_, **__: True
        return made

    def add(self, name: str, key: str = "", **more: str) -> str:
        dn = f"uid={name},{PEOPLE}"
        facts = {
            "objectClass": ["person", "inetOrgPerson"], "uid": name, "entryUUID": key or f"key-of-{name}",
            "userPassword": RIGHT, "givenName": name.title(), "sn": "Ada", "mail": f"{name}@example.org",
        }  # fmt: skip
        self.dit.add_entry(dn, {**facts, **more})
        return dn

    def remove(self, dn: str) -> None:
        self.dit.remove_entry(dn)

    def group(self, name: str, *members: str) -> None:
        dn = f"cn={name},{GROUPS}"
        self.dit.remove_entry(dn)
        facts = {"objectClass": "groupOfNames", "cn": name, "member": list(members)}
        self.dit.add_entry(dn, facts)


@pytest.fixture
def tree(monkeypatch, settings) -> Tree:
    made = Tree()
    monkeypatch.setattr(ldap, "connection_to", made.connection)
    settings.WEIR_LDAP = configured()
    settings.AUTHENTICATION_BACKENDS = [
        "django.contrib.auth.backends.ModelBackend",
        "portal.accounts.ldap_backend.DirectoryBackend",
    ]
    return made


@pytest.fixture
def team() -> Team:
    queue = Queue.objects.create(cluster=make_cluster(), name="vision")
    return Team.objects.create(name="vision", queue=queue)


@pytest.fixture
def admin() -> User:
    return make_user("root-admin", is_superuser=True)


def rule(group: str, team: Team) -> None:
    admin = make_user("root-admin", is_superuser=True)
    persona = make_persona("researcher", may_submit=True)
    groups_of_the_directory.add_rule(
        admin, group=group, team=team, persona=persona, order=1, request=None
    )


def come(client: Client, name: str = "ada", password: str = RIGHT):
    return client.post("/sign-in/", {"username": name, "password": password})


def test_person_of_the_directory_gets_an_account_at_the_first_sign_in(client, tree):
    tree.add("ada")

    answer = come(client)

    assert answer.headers["Location"] == "/"
    user = User.objects.get()
    assert (user.username, user.first_name, user.email) == ("ada", "Ada", "ada@example.org")
    assert not user.has_usable_password()
    assert client.get("/account/").status_code == 200


def test_renamed_person_stays_the_same_account(client, tree):
    dn = tree.add("ada", key="1")
    come(Client())
    tree.remove(dn)
    tree.add("countess", key="1")

    come(client, "countess")

    assert User.objects.get().username == "ada"


def test_name_given_to_another_person_is_another_person_and_refused(client, tree):
    dn = tree.add("ada", key="1")
    come(Client())
    tree.remove(dn)
    tree.add("ada", key="2")

    answer = come(client)

    assert "There is an account ada here already" in answer.content.decode()
    assert SocialAccount.objects.get().uid == "1"


@pytest.mark.parametrize("password", ["wrong", ""])
def test_wrong_password_is_said_as_any_other(client, tree, password):
    tree.add("ada")

    page = come(client, password=password).content.decode()

    assert "do not match" in page or not password
    assert not User.objects.exists()


@pytest.mark.parametrize("name", ["*", "a*", "ada)(uid=*", "bob"])
def test_name_is_no_pattern(client, tree, name):
    tree.add("ada")

    assert "do not match" in come(client, name).content.decode()


def test_password_of_an_account_kept_here_is_not_sent_to_the_directory(client, tree):
    tree.add("ada")
    make_user("ada").set_password("of weir alone")
    user = User.objects.get()
    user.set_password("of weir alone")
    user.save()
    tree.asked.clear()

    assert "do not match" in come(client).content.decode()
    assert tree.asked == []
    assert come(client, password="of weir alone").status_code == 302


@pytest.mark.parametrize("facts", [{"is_superuser": True}, {"is_active": False}])
def test_account_that_is_not_free_is_not_taken_over(client, tree, facts):
    tree.add("ada")
    make_user("ada", **facts)

    assert come(client).status_code == 200
    assert not SocialAccount.objects.exists()


def test_name_that_no_person_may_have_is_told(client, tree):
    tree.add("svc-trainer")

    assert "begins as those of programs do" in come(client, "svc-trainer").content.decode()
    assert not User.objects.exists()


def test_filter_keeps_out_whom_it_does_not_name(client, tree, settings):
    settings.WEIR_LDAP = configured(WEIR_LDAP_FILTER="(&(objectClass=person)(mail=*@gpu.org))")
    tree.add("ada")

    assert "do not match" in come(client).content.decode()


def test_directory_that_is_away_is_said_and_lets_accounts_kept_here_in(client, monkeypatch, tree):
    monkeypatch.undo()
    from django.conf import settings

    user = make_user("breakglass")
    user.set_password(RIGHT)
    user.save()
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        away = replace(configured(), servers=(f"ldaps://127.0.0.1:{closed.getsockname()[1]}",))
        settings.WEIR_LDAP = away

        assert "The directory does not answer" in come(client).content.decode()
        assert come(client, "breakglass").status_code == 302


def test_try_while_the_directory_is_away_counts_as_none(client, tree, settings):
    tree.add("ada")
    right = settings.WEIR_LDAP
    settings.WEIR_LDAP = replace(right, bind_password="old")
    for _ in range(settings.WEIR_SIGN_IN_TRIES + 1):
        come(client)
    settings.WEIR_LDAP = right

    assert come(client).status_code == 302


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "1 person of it may sign in"),
        ({"filter": "(objectClass=robot)"}, "nobody of it may sign in"),
        ({"bind_password": "old"}, "it refuses WEIR_LDAP_BIND_DN"),
    ],
)
def test_doctor_says_how_the_directory_stands(tree, settings, more, said):
    tree.add("ada")
    settings.WEIR_LDAP = replace(settings.WEIR_LDAP, **more)

    (item,) = doctoring._directory()

    assert said in item.sentence


def test_directory_that_refuses_the_account_of_weir_is_said_as_away(client, tree, settings):
    tree.add("ada")
    settings.WEIR_LDAP = replace(settings.WEIR_LDAP, bind_password="old")

    assert "The directory does not answer" in come(client).content.decode()


def test_password_of_the_directory_confirms_who_somebody_is(client, tree, time_machine_at):
    tree.add("ada")
    come(client)
    time_machine_at(LATER)

    answer = client.post("/account/confirm/", {"password": RIGHT, "next": "/account/"})

    assert answer.headers["Location"] == "/account/"
    assert (
        "not your password"
        in client.post("/account/confirm/", {"password": "wrong"}).content.decode()
    )


def test_groups_give_what_rules_give_at_sign_in(client, tree, team):
    rule("gpu-users", team)
    tree.group("gpu-users", tree.add("ada"))
    tree.group("others", tree.add("bob"))

    come(client)

    assert Membership.objects.get().user.username == "ada"


def test_groups_are_followed_by_schedule(client, tree, team):
    rule("gpu-users", team)
    dn = tree.add("ada")
    come(client)
    tree.group("gpu-users", dn)

    assert ldap_reading.read().regrouped == ("ada",)
    assert Membership.objects.get().persona.name == "researcher"
    assert ldap_reading.read().regrouped == ()
    tree.group("gpu-users", tree.add("bob"))
    assert ldap_reading.read().regrouped == ("ada",)
    assert not Membership.objects.exists()


def test_who_left_the_directory_leaves_with_sessions_and_tokens(client, tree, admin):
    dn = tree.add("ada")
    come(client)
    user = User.objects.get(username="ada")
    ApiToken.issue(user, "t", scopes=[], expires_at=None, endless=False)
    tree.remove(dn)

    assert ldap_reading.read().left == ("ada",)

    user.refresh_from_db()
    assert not user.is_active
    assert not Session.objects.filter(user=user).exists()
    assert not user.api_tokens.exists()


def test_last_who_administers_stays_whatever_the_directory_says(client, tree, team):
    persona = make_persona("admin")
    persona.grants = {"see": "all", "administer": "all"}
    persona.save()
    dn = tree.add("ada")
    come(client)
    Membership.objects.create(user=User.objects.get(), team=team, persona=persona)
    tree.remove(dn)

    assert ldap_reading.read().left == ()
    assert User.objects.get().is_active


def test_who_is_back_in_the_directory_is_let_in_again(client, tree, admin):
    dn = tree.add("ada")
    come(Client())
    tree.remove(dn)
    ldap_reading.read()
    tree.add("ada")

    assert ldap_reading.read().back == ("ada",)
    assert come(client).status_code == 302


def test_whom_an_admin_deactivated_stays_so(client, tree):
    tree.add("ada")
    come(Client())
    User.objects.update(is_active=False)

    assert ldap_reading.read() == ldap_reading.Passage()
    assert not User.objects.get().is_active


def test_reading_that_finds_hardly_anybody_changes_nothing(tree, settings):
    for number in range(8):
        tree.add(f"person{number}")
        come(Client(), f"person{number}")
    settings.WEIR_LDAP = replace(settings.WEIR_LDAP, filter="(objectClass=robot)")

    found = ldap_reading.read()

    assert "8 of 8 people are not found" in found.fault
    assert User.objects.filter(is_active=True).count() == 8


def test_reading_of_a_directory_that_is_away_changes_nothing(tree, settings):
    tree.add("ada")
    come(Client())
    settings.WEIR_LDAP = replace(settings.WEIR_LDAP, bind_password="old")

    assert "WEIR_LDAP_BIND_DN" in ldap_reading.read().fault
    assert User.objects.get().is_active


def test_without_a_directory_nothing_is_read(settings):
    settings.WEIR_LDAP = None

    assert ldap_reading.read() == ldap_reading.Passage()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"WEIR_LDAP_BASE": ""}, "WEIR_LDAP_BASE is missing"),
        ({"WEIR_LDAP_URL": "ldap.example.org"}, "ldap.example.org is no ldaps://HOST"),
        ({"WEIR_LDAP_TLS": "maybe"}, "write required or none, not maybe"),
        ({"WEIR_LDAP_FILTER": "objectClass=person"}, "WEIR_LDAP_FILTER"),
        ({"WEIR_LDAP_CA": "/nowhere.pem"}, "there is no file /nowhere.pem"),
    ],
)
def test_settings_that_cannot_be_are_refused_with_their_name(given, said):
    with pytest.raises(ImproperlyConfigured, match=said):
        configured(**given)


def test_directory_is_off_unless_set():
    assert ldap.configured(environ.Env()) is None


def test_password_of_weir_is_not_in_what_is_printed():
    assert SECRET not in repr(configured())


def test_server_without_tls_is_sent_no_password():
    """A listener that answers StartTLS with a refusal hears nothing but the question."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = replace(configured(), servers=(f"ldap://127.0.0.1:{listener.getsockname()[1]}",))
        heard = _refusing(listener)
        with pytest.raises(ldap.AwayError):
            ldap.sign_in(place, "ada", RIGHT)

    assert b"1.3.6.1.4.1.1466.20037" in heard[0]
    assert SECRET.encode() not in b"".join(heard)


def _refusing(listener: socket.socket) -> list[bytes]:
    """Answers the first message with "protocol error", then keeps what else is said."""
    from threading import Thread

    heard: list[bytes] = []

    def serve() -> None:
        peer, _ = listener.accept()
        with peer:
            heard.append(peer.recv(4096))
            number = heard[0][4:5]
            peer.sendall(b"\x30\x0c\x02\x01" + number + b"\x78\x07\x0a\x01\x02\x04\x00\x04\x00")
            while more := peer.recv(4096):
                heard.append(more)

    Thread(target=serve, daemon=True).start()
    return heard
