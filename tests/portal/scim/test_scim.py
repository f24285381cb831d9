"""SCIM: a directory keeps people and groups in step, sees nobody else's, and gives what rules do alone."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from allauth.socialaccount.models import SocialAccount
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from portal.accounts.models import ApiToken, Scope, Session, User
from portal.audit.models import AuditEntry
from portal.teams import people
from portal.teams.directory import note_groups
from portal.teams.models import DirectoryGroup, GroupRule, Membership, ServiceAccount, Team
from scheduling.models import Queue
from scheduling.services import events
from tests.factories import make_cluster, make_member, make_persona, make_user

pytestmark = pytest.mark.django_db
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"


class Directory:
    """As the organisation's directory calls."""

    def __init__(self, token: str) -> None:
        self.client = Client(headers={"Authorization": f"Bearer {token}"})

    def __call__(self, method: str, path: str, body: object = None, **query: str):
        text = "" if body is None else json.dumps(body)
        return self.client.generic(
            method, f"/scim/v2/{path}", text, content_type="application/scim+json",
            query_params=query,
        )  # fmt: skip

    def add(self, who: str = "ann@example.org", **more: object) -> dict:
        told = self("POST", "Users", {"schemas": [USER], "userName": who, **more})
        assert told.status_code == 201, told.content
        return told.json()

    def group(self, name: str, *members: dict) -> dict:
        listed = [{"value": one["id"]} for one in members]
        told = self("POST", "Groups", {"schemas": [GROUP], "displayName": name, "members": listed})
        assert told.status_code == 201, told.content
        return told.json()

    def patch(self, path: str, *operations: dict):
        return self("PATCH", path, {"Operations": list(operations)})


@pytest.fixture
def team(db) -> Team:
    cluster = make_cluster()
    root = Queue.objects.create(cluster=cluster, name="root")
    queue = Queue.objects.create(cluster=cluster, name="vision", parent=root)
    return Team.objects.create(name="vision", queue=queue)


@pytest.fixture
def admin(db) -> User:
    return User.objects.create_superuser("boss", password="a long pass phrase")


def account(team: Team) -> User:
    user = make_user("svc-scim")
    ServiceAccount.objects.create(user=user, team=team)
    return user


@pytest.fixture
def directory(team, admin) -> Directory:
    _, token = ApiToken.issue(account(team), "idp", scopes=[Scope.DIRECTORY])
    return Directory(token)


def one(told: dict) -> User:
    return User.objects.get(pk=told["id"])


# Who may come


@pytest.mark.parametrize("scopes", [[], [Scope.ALL], [Scope.WORK, Scope.QUOTAS]])
@pytest.mark.parametrize("path", ["Users", "Groups", "ServiceProviderConfig", "Schemas"])
def test_a_token_of_another_scope_is_refused(team, scopes, path):
    _, token = ApiToken.issue(account(team), "x", scopes=scopes)
    answer = Directory(token)("GET", path)
    assert answer.status_code == 403
    assert answer.json()["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]


def test_a_person_has_no_way_in(team, admin, client):
    _, token = ApiToken.issue(admin, "x", scopes=[Scope.ALL, Scope.DIRECTORY])
    assert Directory(token)("GET", "Users").status_code == 403
    client.force_login(admin)
    assert client.get("/scim/v2/Users").status_code == 404
    assert Client().get("/scim/v2/Users").status_code == 401
    assert Directory("weir_wrong")("GET", "Users").status_code == 401


def test_directory_token_does_nothing_else(directory):
    assert directory.client.post("/api/v1/teams", {}).status_code == 403


def issued_by(person: User, team: Team, scopes: list[str]) -> int:
    client = Client()
    client.force_login(person)
    session = client.session
    session["account_authentication_methods"] = [
        {"method": "password", "at": timezone.now().timestamp()}
    ]
    session.save()
    url = f"/api/v1/teams/{team.name}/service-accounts/svc-scim/tokens"
    body = {"name": "idp", "scopes": scopes, "days": 30}
    return client.post(url, body, content_type="application/json").status_code


def test_only_an_admin_makes_one_and_only_of_a_service_account(team, admin):
    account(team)
    lead = make_member(team.queue, name="lead", may_give=True)

    assert issued_by(lead, team, ["read"]) == 201
    assert issued_by(lead, team, ["directory"]) == 400
    assert issued_by(admin, team, ["directory"]) == 201
    assert sum("directory" in token.scopes for token in ApiToken.objects.all()) == 1


def test_page_offers_that_scope_to_admins_of_service_accounts_alone(team, admin, client):
    account(team)
    lead = make_member(team.queue, name="lead", may_give=True)
    page = reverse("web:service_accounts", args=[team.name])
    shown = {}
    for who in (admin, lead):
        client.force_login(who)
        shown[who] = 'value="directory"' in client.get(page).content.decode()
    own = client.get(reverse("accounts:account")).content.decode()

    assert shown == {admin: True, lead: False}
    assert 'value="directory"' not in own


# Users


def test_a_person_is_taken_in_found_and_without_any_way_to_sign_in_but_the_provider(directory):
    made = directory.add(
        externalId="e-1", name={"givenName": "Ann", "familyName": "Lee"},
        emails=[{"value": "old@example.org"}, {"value": "ann@example.org", "primary": True}],
        title="has no counterpart",
    )  # fmt: skip

    person = one(made)
    assert not person.has_usable_password()
    assert (person.first_name, person.email) == ("Ann", "ann@example.org")
    assert not Membership.objects.filter(user=person).exists()
    for text in (
        'userName eq "ANN@example.org"',
        'externalId eq "e-1"',
        'username EQ "ann@example.org"',
    ):
        found = directory("GET", "Users", filter=text).json()
        assert [row["id"] for row in found["Resources"]] == [made["id"]], text
    assert directory("GET", "Users", filter='userName eq "bob"').json()["totalResults"] == 0
    assert directory("GET", f"Users/{made['id']}").json() == made
    assert made["meta"]["location"].endswith(f"/scim/v2/Users/{made['id']}")


def test_a_name_that_is_there_is_a_conflict_whatever_its_case(directory):
    directory.add()
    again = directory("POST", "Users", {"userName": "Ann@Example.org"})

    assert again.status_code == 409
    assert again.json()["scimType"] == "uniqueness"


@pytest.mark.parametrize(
    "name", ["", "svc-ci", "system", "weir-engine", "kube-x", "a b", "a\nb", "x" * 200]
)
def test_names_that_no_person_may_have_are_refused(directory, name):
    answer = directory("POST", "Users", {"userName": name})
    assert answer.status_code == 400
    assert answer.json()["scimType"] == "invalidValue"


def test_superusers_programs_and_local_passwords_are_not_the_directorys(directory, admin):
    local = User.objects.create_user("local", password="a long pass phrase")
    linked = User.objects.create_user("linked", password="a long pass phrase")
    SocialAccount.objects.create(user=linked, provider="oidc", uid="1")
    bare = make_user("bare")

    listed = {row["userName"] for row in directory("GET", "Users").json()["Resources"]}

    assert listed == {"linked", "bare"}
    off = {"op": "replace", "path": "active", "value": False}
    for person in (local, admin, User.objects.get(username="svc-scim")):
        assert directory.patch(f"Users/{person.pk}", off).status_code == 404
        assert directory("DELETE", f"Users/{person.pk}").status_code == 404
    assert directory("POST", "Users", {"userName": "local"}).status_code == 409
    assert bare.is_active


def test_pages_are_counted_from_one(directory):
    for number in range(5):
        directory.add(f"p{number}")

    second = directory("GET", "Users", startIndex="3", count="2").json()

    assert [row["userName"] for row in second["Resources"]] == ["p2", "p3"]
    assert (second["totalResults"], second["startIndex"], second["itemsPerPage"]) == (5, 3, 2)
    assert directory("GET", "Users", count="0").json()["Resources"] == []
    for wrong in ("x", "1e3", "9" * 30, "½"):
        assert directory("GET", "Users", count=wrong).status_code == 400


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "active", "value": False},
        {"op": "Replace", "path": "active", "value": "False"},
        {"op": "replace", "value": {"active": False}},
        {"op": "add", "path": f"{USER}:active", "value": False},
    ],
)
def test_deactivating_ends_sessions_and_tokens_at_once_and_for_good(directory, operation):
    made = directory.add()
    person, browser = one(made), Client()
    browser.force_login(person)
    _, token = ApiToken.issue(person, "cli")
    own = Client(headers={"Authorization": f"Bearer {token}"})
    assert own.get("/api/v1/me").status_code == 200

    answer = directory.patch(f"Users/{made['id']}", operation)

    assert answer.json()["active"] is False
    assert not Session.objects.filter(user=person).exists()
    assert own.get("/api/v1/me").status_code == 401
    assert browser.get(reverse("accounts:account")).status_code == 302
    on = {"op": "replace", "path": "active", "value": True}
    assert directory.patch(f"Users/{made['id']}", on).json()["active"] is True
    assert own.get("/api/v1/me").status_code == 401, "what a leaver had does not come back"


def test_whom_an_admin_deactivated_the_directory_does_not_activate(directory, admin):
    made = directory.add()
    on, off = ({"op": "replace", "path": "active", "value": value} for value in (True, False))
    directory.patch(f"Users/{made['id']}", off)
    people.set_active(by=admin, person=one(made), active=True)
    people.set_active(by=admin, person=one(made), active=False)

    assert directory.patch(f"Users/{made['id']}", on).status_code == 403
    assert not one(made).is_active


def test_the_last_admin_stays(directory, admin, team):
    made = directory.add()
    User.objects.filter(pk=admin.pk).update(is_active=False)
    persona = make_persona("ruler")
    persona.grants = {"see": "all", "administer": "all"}
    persona.save()
    Membership.objects.create(user=one(made), team=team, persona=persona)

    for answer in (
        directory.patch(f"Users/{made['id']}", {"op": "replace", "path": "active", "value": False}),
        directory("DELETE", f"Users/{made['id']}"),
    ):
        assert answer.status_code == 403
    assert one(made).is_active


def test_put_replaces_and_keeps_the_name_and_whether_active(directory):
    made = directory.add(name={"givenName": "Ann"}, externalId="e-1")
    place = f"Users/{made['id']}"

    told = directory("PUT", place, {"userName": "ann@example.org", "name": {"familyName": "L"}})

    person = one(made)
    assert told.status_code == 200
    assert (person.first_name, person.last_name, person.is_active) == ("", "L", True)
    assert "externalId" not in told.json()
    other = directory("PUT", place, {"userName": "bob"})
    assert (other.status_code, other.json()["scimType"]) == (400, "mutability")


def test_patch_changes_what_it_names_alone(directory):
    made = directory.add(name={"givenName": "Ann", "familyName": "Lee"})

    directory.patch(
        f"Users/{made['id']}",
        {"op": "replace", "path": "name.familyName", "value": "Moe"},
        {"op": "add", "path": 'emails[type eq "work"].value', "value": "a@example.org"},
        {"op": "replace", "value": {"externalId": "e-9", "title": "x", "name.givenName": "An"}},
        {"op": "add", "path": "phoneNumbers", "value": [{"value": "1"}]},
    )

    person = one(made)
    assert (person.first_name, person.last_name, person.email) == ("An", "Moe", "a@example.org")
    assert person.directory_person.external_id == "e-9"


def test_deleted_is_deactivated_found_no_more_and_the_name_stays_theirs(directory):
    made = directory.add()
    group = directory.group("g", made)

    assert directory("DELETE", f"Users/{made['id']}").status_code == 204

    assert not one(made).is_active
    assert directory("GET", f"Users/{made['id']}").status_code == 404
    assert directory("GET", f"Groups/{group['id']}").json()["members"] == []
    assert directory("POST", "Users", {"userName": "ann@example.org"}).status_code == 409


# Groups


def rule(team: Team, group: str, name: str = "researcher") -> GroupRule:
    return GroupRule.objects.create(group=group, team=team, persona=make_persona(name))


def personas(told: dict) -> list[str]:
    return sorted(str(m.persona) for m in Membership.objects.filter(user=one(told)))


def test_groups_give_what_their_rules_do_and_nothing_without_one(directory, team):
    rule(team, "gpu-users")
    ann = directory.add()

    other = directory.group("other", ann)
    assert personas(ann) == []
    group = directory.group("gpu-users", ann)
    assert personas(ann) == ["researcher"]
    assert {g["display"] for g in directory("GET", f"Users/{ann['id']}").json()["groups"]} == {
        "gpu-users", "other",
    }  # fmt: skip

    directory("DELETE", f"Groups/{other['id']}")
    assert personas(ann) == ["researcher"]
    directory("DELETE", f"Groups/{group['id']}")
    assert personas(ann) == []


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": 'members[value eq "{id}"]'},
        {"op": "remove", "path": "members", "value": [{"value": "{id}"}]},
        {"op": "remove", "path": "members"},
        {"op": "replace", "path": "members", "value": []},
        {"op": "replace", "value": {"members": []}},
        {"op": "replace", "path": "displayName", "value": "renamed"},
    ],
)
def test_who_leaves_a_group_loses_what_it_gave_at_once(directory, team, operation):
    rule(team, "gpu-users")
    ann = directory.add()
    group = directory.group("gpu-users", ann)
    assert personas(ann) == ["researcher"]

    written = json.loads(json.dumps(operation).replace("{id}", ann["id"]))
    answer = directory.patch(f"Groups/{group['id']}", written)

    assert answer.status_code == 200
    assert personas(ann) == []


def test_members_are_added_one_by_one(directory, team):
    rule(team, "gpu-users")
    ann, bob = directory.add("ann"), directory.add("bob")
    group = directory.group("gpu-users", ann)

    directory.patch(
        f"Groups/{group['id']}", {"op": "add", "path": "members", "value": [{"value": bob["id"]}]}
    )

    assert personas(ann) == personas(bob) == ["researcher"]
    found = directory("GET", "Groups", filter='displayName eq "gpu-users"').json()["Resources"][0]
    assert {m["value"] for m in found["members"]} == {ann["id"], bob["id"]}
    short = directory("GET", f"Groups/{group['id']}", excludedAttributes="members").json()
    assert "members" not in short
    mine = directory("GET", "Groups", filter=f'members.value eq "{bob["id"]}"').json()
    assert mine["totalResults"] == 1


def test_nobody_else_becomes_a_member(directory, team, admin):
    rule(team, "gpu-users")
    program = User.objects.get(username="svc-scim")
    for who in (str(admin.pk), str(program.pk), "999999", "1 or 1", "", "9" * 40):
        answer = directory(
            "POST", "Groups", {"displayName": "gpu-users", "members": [{"value": who}]}
        )
        assert answer.status_code == 400, who
    assert not DirectoryGroup.objects.exists()


def test_whose_groups_the_directory_keeps_a_sign_in_does_not_change(directory, team):
    rule(team, "gpu-users")
    ann = directory.add()
    directory.group("gpu-users", ann)
    person = one(ann)
    login = type(
        "Login",
        (),
        {
            "account": SocialAccount(
                user=person, provider="oidc", uid="1", extra_data={"userinfo": {"groups": []}}
            )
        },
    )()

    note_groups(request=None, user=person, sociallogin=login)

    assert personas(ann) == ["researcher"]


def test_what_the_directory_does_is_in_the_audit_log_as_its_program(directory, team):
    rule(team, "gpu-users")
    ann = directory.add()
    directory.group("gpu-users", ann)
    directory("DELETE", f"Users/{ann['id']}")
    events.deliver_due()

    told = list(AuditEntry.objects.order_by("number").values_list("kind", "actor", "via"))
    kinds = [kind for kind, _, _ in told]
    for kind in ("person.added", "directory.group_set", "membership.given", "person.deactivated"):
        assert kind in kinds
    assert {
        (actor, via) for kind, actor, via in told if kind.startswith(("person.", "directory."))
    } == {("svc-scim", "api")}


# What can't be read


@pytest.mark.parametrize(
    "text",
    ["userName", 'userName co "a"', 'title eq "x"', 'userName eq a', 'userName eq "a" or active eq true',
     'userName eq "\\u0000"', 'userName eq "\\x"', "x" * 500],
)  # fmt: skip
def test_filters_that_are_not_read_say_which_are(directory, text):
    answer = directory("GET", "Users", filter=text)
    assert answer.status_code == 400
    assert answer.json()["scimType"] in ("invalidFilter", "invalidValue")


@pytest.mark.parametrize(
    "body",
    [[], "x", 5, None, {"Operations": {}}, {"Operations": [5]}, {"Operations": [{"op": "move"}]},
     {"Operations": [{"op": "replace", "path": 5}]},
     {"Operations": [{"op": "replace", "path": "active", "value": "perhaps"}]},
     {"Operations": [{"op": "replace", "path": "active", "value": []}]},
     {"Operations": [{"op": "remove", "path": "userName"}]},
     {"Operations": [{"op": "replace", "path": "name.givenName", "value": "a\u0000b"}]},
     {"Operations": [{"op": "replace", "path": "name.givenName", "value": "a\nb"}]},
     {"Operations": [{"op": "replace", "path": "name.givenName", "value": {"a": 1}}]},
     {"Operations": [{"op": "replace", "value": [1]}]}],
)  # fmt: skip
def test_bodies_that_are_no_patch_are_refused_and_change_nothing(directory, body):
    made = directory.add()
    answer = directory("PATCH", f"Users/{made['id']}", body)
    assert answer.status_code == 400
    assert answer.json()["status"] == "400"
    assert directory("GET", f"Users/{made['id']}").json() == made


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"displayName": ""},
        {"displayName": 5},
        {"displayName": "a\nb"},
        {"displayName": "g", "members": 5},
        {"displayName": "x" * 300},
    ],
)
def test_bodies_that_are_no_group_are_refused(directory, body):
    assert directory("POST", "Groups", body).status_code == 400


# Discovery


def test_discovery_says_what_there_is(directory):
    config = directory("GET", "ServiceProviderConfig").json()
    kinds = directory("GET", "ResourceTypes").json()["Resources"]

    assert config["patch"] == {"supported": True}
    assert config["bulk"]["supported"] is False
    for kind in kinds:
        schema = directory("GET", f"Schemas/{kind['schema']}").json()
        assert schema["name"] == kind["name"]
        assert directory("GET", kind["endpoint"][1:]).status_code == 200
        assert directory("GET", f"ResourceTypes/{kind['id']}").json() == kind
    assert directory("GET", "Schemas/nothing").status_code == 404
    answer = directory("GET", "ServiceProviderConfig")
    assert answer["Content-Type"].startswith("application/scim+json")
    assert directory("GET", "Me").status_code == 404


def test_expired_token_is_refused(directory):
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert directory("GET", "Users").status_code == 401
