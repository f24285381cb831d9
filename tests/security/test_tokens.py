"""Attacks with tokens: more than they are for, more than their maker, longer than they live, guessed."""

from datetime import timedelta

import pytest
from django.urls import URLPattern, get_resolver, reverse
from django.utils import timezone
from rest_framework.permissions import SAFE_METHODS
from rest_framework.test import APIClient

from portal.accounts.models import LONGEST_TOKEN_DAYS, ApiToken, Scope, User
from portal.api.permissions import WithinScope, scope_of
from portal.teams.models import Membership
from tests.factories import example_cluster, make_user

pytestmark = pytest.mark.django_db
FRA1 = "/api/v1/clusters/fra1"
WRITES = ("POST", "PUT", "PATCH", "DELETE")
GIVEN = {
    "cluster": "fra1", "name": "pretraining", "uid": "uid-there", "number": 48213, "pk": 1,
    "team": "pretraining", "account": "svc-there", "key": "nowhere",
    "username": "m.okafor", "queue": "pretraining", "verb": "decline",
}  # fmt: skip


def client_of(user, *scopes, **terms):
    """(an API client with a new token of these scopes, the token)."""
    token, plain = ApiToken.issue(user, "cli", scopes=scopes, **terms)
    return APIClient(headers={"Authorization": f"Bearer {plain}"}), token


@pytest.fixture
def admin():
    cluster = example_cluster()
    cluster.workloads.filter(name="pretraining-run-1").update(uid="uid-there")
    return User.objects.get(username="admin")


# Every operation has a scope


def views():
    """(address with arguments, view) of everything below /api/v1/ that is a view of the API."""
    for resolver in get_resolver().url_patterns:
        if getattr(resolver, "namespace", None) == "api":
            for entry in resolver.url_patterns:
                if isinstance(entry, URLPattern) and hasattr(entry.callback, "cls"):
                    yield entry, entry.callback.cls


def operations():
    """(name, address, method, view) of every operation that writes."""
    for entry, view in views():
        path = "/api/v1/no-such" if entry.name == "nothing" else ""
        actions = getattr(entry.callback, "actions", ())
        for method in WRITES:
            if method.lower() in actions or hasattr(view, method.lower()):
                yield entry, path, method, view


def url_of(entry):
    return reverse(
        f"api:{entry.name}", kwargs={key: GIVEN[key] for key in entry.pattern.converters}
    )


WRITING = {
    f"{method} {entry.name}": (entry, method, view) for entry, _, method, view in operations()
}


def test_every_view_of_the_api_looks_at_scopes():
    views_of_api = [view for _, view in views()]
    assert len(views_of_api) > 25
    for view in views_of_api:
        assert WithinScope in view.permission_classes, view


SESSION_ONLY = {
    "POST people", "POST webhooks", "POST tokens", "POST service_accounts", "POST service_tokens",
}  # fmt: skip
"""What would outlive a stolen token."""


@pytest.mark.parametrize("operation", WRITING)
def test_every_operation_that_writes_names_its_scope(operation):
    _, method, view = WRITING[operation]
    assert (scope_of(view, method) is None) == (operation in SESSION_ONLY)
    assert scope_of(view, method) is not Scope.READ


def test_writing_operations_are_those_we_know():
    assert set(WRITING) == {
        "POST alerts", "DELETE alert", "POST alert_acknowledge", "POST budgets", "DELETE budget",
        "POST tokens", "DELETE token", "POST cluster_mode", "POST quotas", "POST workloads",
        "POST workload_cancel", "POST workload_hold", "POST workload_release",
        "POST workload_priority", "POST workload_actions", "POST workload_change",
        "POST workload_change_preview",
        "DELETE session", "POST group_rules", "DELETE group_rule", "POST service_accounts",
        "DELETE service_account", "POST service_tokens", "DELETE service_token",
        "POST clusters", "POST gpu_classes", "PUT gpu_class", "POST priority_classes", "PUT priority_class",
        "PUT policy", "PUT tree", "POST queues", "DELETE queue",
        "PUT adaptation", "PUT adapting_parameter", "POST studies", "DELETE study", "POST study_cancel",
        "POST study_promote",
        "POST consolidations", "DELETE consolidation", "POST outside",
        "POST people", "PUT person", "POST teams", "PUT team", "DELETE team", "PUT team_member",
        "DELETE team_member", "POST personas", "PUT persona", "DELETE persona",
        "POST persona_preview",
        "POST quota_preview", "POST quota_revert",
        "POST loans", "POST loan_act", "POST loan_offers", "DELETE loan_offer",
        "POST requests", "PUT request", "POST request_submit", "POST request_forward",
        "POST request_approve", "POST request_ask_changes", "POST request_reject", "POST request_revoke",
        "POST request_withdraw", "POST request_renew", "POST request_comments",
        "PUT request_rule", "POST notices_read", "PUT notice_preferences",
        "POST report_views", "DELETE report_view", "POST webhooks", "DELETE webhook",
        "PUT alert", "POST alert_test",
        "POST webhook_test", "POST dead_letter_again", "POST dead_letter_drop",
    }  # fmt: skip


@pytest.mark.parametrize("operation", WRITING)
def test_token_does_only_what_its_scopes_name(admin, operation):
    entry, method, view = WRITING[operation]
    needed = scope_of(view, method)
    for scope in Scope:
        client, _ = client_of(admin, scope)
        answer = client.generic(method, url_of(entry), "{}", content_type="application/json")
        is_refused = answer.status_code == 403 and answer.data["code"] == "out_of_scope"
        covered = needed is not None and scope in (needed, Scope.ALL)
        assert is_refused == (not covered), scope


def test_refusal_names_the_scope_and_tells_nothing_of_what_exists(admin):
    client, _ = client_of(admin, Scope.READ)
    there = client.post(f"{FRA1}/workloads/uid-there/cancel")
    nowhere = client.post(f"{FRA1}/workloads/uid-nowhere/cancel")
    assert there.status_code == nowhere.status_code == 403
    assert there.data == nowhere.data
    assert "'work'" in there.data["remedy"]


@pytest.mark.parametrize("scope", Scope)
def test_every_token_reads(admin, scope):
    client, _ = client_of(admin, scope)
    for path in ("/api/v1/me", f"{FRA1}/queues", f"{FRA1}/workloads/uid-there"):
        assert client.get(path).status_code == 200


def test_view_that_names_no_scope_is_closed_to_tokens(admin, monkeypatch):
    _, _, view = WRITING["POST cluster_mode"]
    monkeypatch.delattr(view, "write_scope")
    client, _ = client_of(admin, Scope.ALL)
    assert client.post(f"{FRA1}/mode", {"mode": "paused"}, format="json").status_code == 403


@pytest.mark.parametrize("header", ["X-HTTP-Method-Override", "X-Method-Override"])
def test_method_override_does_not_smuggle_a_write(admin, header):
    client, _ = client_of(admin, Scope.READ)
    client.get(f"{FRA1}/mode?_method=POST", headers={header: "POST"})
    admin.refresh_from_db()
    assert client.get(FRA1).data["mode"] == "enforce"
    assert "POST" not in SAFE_METHODS


# Never more than its maker


def test_token_loses_what_its_maker_loses(admin):
    researcher = User.objects.get(username="researcher")
    client, _ = client_of(researcher, Scope.ALL)
    assert client.get(f"{FRA1}/queues/pretraining").status_code == 200
    Membership.objects.filter(user=researcher).delete()

    assert client.get(f"{FRA1}/queues/pretraining").status_code == 404


def test_token_of_an_operator_is_none_when_they_are_none(admin):
    client, _ = client_of(admin, Scope.ALL)
    admin.is_superuser = False
    admin.save()
    Membership.objects.filter(user=admin).delete()

    assert client.post(f"{FRA1}/mode", {"mode": "paused"}, format="json").status_code == 404


def test_token_of_who_left_is_refused():
    user = make_user()
    client, _ = client_of(user, Scope.ALL)
    user.is_active = False
    user.save()

    assert client.get("/api/v1/me").status_code == 401


def test_token_does_not_open_pages():
    """Pages know sessions alone, so a scope is not got round by a form."""
    client, _ = client_of(make_user(), Scope.ALL)
    assert client.get("/account/").status_code == 302
    assert client.post("/account/tokens/", {"name": "more", "days": "365"}).status_code == 302
    assert ApiToken.objects.count() == 1


# Tokens that make tokens


@pytest.mark.parametrize("scope", [Scope.READ, Scope.WORK, Scope.QUOTAS])
def test_narrow_token_makes_and_revokes_none(scope):
    client, token = client_of(make_user(), scope)
    assert (
        client.post("/api/v1/tokens", {"name": "x", "scopes": ["all"]}, format="json").status_code
        == 403
    )
    assert client.delete(f"/api/v1/tokens/{token.pk}").status_code == 403
    assert ApiToken.objects.get() == token


@pytest.mark.parametrize("address", ["tokens", "people"])
def test_token_of_every_scope_makes_nothing_that_outlives_it(address):
    client, token = client_of(make_user(), Scope.ALL)
    answer = client.post(f"/api/v1/{address}", {"name": "more"}, format="json")

    assert answer.status_code == 403
    assert ApiToken.objects.get() == token


# Asked for without saying


@pytest.fixture
def person():
    client, user = APIClient(), make_user()
    client.force_login(user)
    return client


def test_token_reads_only_and_ends_unless_told(person, settings):
    made = person.post("/api/v1/tokens", {"name": "x"}, format="json").data
    token = ApiToken.objects.get()
    assert made["scopes"] == ["read"]
    ends = timezone.now() + timedelta(days=settings.WEIR_TOKEN_DAYS)
    assert abs(token.expires_at - ends) < timedelta(minutes=1)


@pytest.mark.parametrize("days", [None, 0, -1, LONGEST_TOKEN_DAYS + 1, 10**18, "NaN", 1.5])
def test_token_without_an_end_in_sight_is_refused(person, days):
    answer = person.post("/api/v1/tokens", {"name": "x", "days": days}, format="json")
    assert answer.status_code == 400
    assert list(answer.data["fields"]) == ["days"]
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize("scopes", [["root"], ["*"], "all", [["all"]], {"all": 1}, ["read"] * 9])
def test_scope_that_is_none_is_refused(person, scopes):
    answer = person.post("/api/v1/tokens", {"name": "x", "scopes": scopes}, format="json")
    assert answer.status_code == 400
    assert not ApiToken.objects.exists()


def test_endless_token_is_refused_on_the_page_too(client):
    client.force_login(make_user())
    page = client.post("/account/tokens/", {"name": "x", "days": ""})
    assert page.status_code == 400
    assert b"no end" not in page.content
    assert not ApiToken.objects.exists()


def test_page_makes_a_token_of_the_chosen_scopes(client):
    client.force_login(make_user())
    client.post("/account/tokens/", {"name": "ci", "days": "30", "scopes": ["work", "quotas"]})

    assert ApiToken.objects.get().scopes == ["quotas", "read", "work"]
    assert b"read, submit, hold and cancel work, change quotas" in client.get("/account/").content


# Guessed, stolen, found


def test_expired_token_is_refused(time_machine_at):
    client, _ = client_of(make_user(), Scope.ALL)
    time_machine_at(timedelta(days=91))
    assert client.get("/api/v1/me").status_code == 401


@pytest.mark.parametrize("place", ["?token={}", "?access_token={}", "?authorization=Bearer%20{}"])
def test_token_in_an_address_is_none(place):
    """Addresses end up in logs and histories."""
    _, plain = ApiToken.issue(make_user(), "cli")
    assert APIClient().get("/api/v1/me" + place.format(plain)).status_code == 401


def test_digest_from_a_copy_of_the_database_is_no_token():
    token, _ = ApiToken.issue(make_user(), "cli")
    client = APIClient(headers={"Authorization": f"Bearer {token.digest}"})
    assert client.get("/api/v1/me").status_code == 401


def test_use_is_kept_with_its_address_once_a_minute(time_machine_at):
    client, token = client_of(make_user(), Scope.READ)

    def used(address="192.0.2.7"):
        client.get("/api/v1/me", REMOTE_ADDR=address)
        token.refresh_from_db()
        return token.last_used_at, token.last_address

    first = used()
    assert first[1] == "192.0.2.7"
    assert used() == first
    assert used("192.0.2.8")[1] == "192.0.2.8"
    time_machine_at(timedelta(minutes=2))
    assert used("192.0.2.8")[0] > first[0] + timedelta(minutes=1)


def test_life_of_a_token_is_logged_without_it(caplog, person):
    caplog.set_level("INFO", "weir.security")
    made = person.post("/api/v1/tokens", {"name": "x"}, format="json").data
    program = APIClient(headers={"Authorization": f"Bearer {made['token']}"})
    for address in ("192.0.2.7", "192.0.2.7", "198.51.100.1"):
        program.get("/api/v1/me", REMOTE_ADDR=address)
    person.delete(f"/api/v1/tokens/{made['id']}")
    program.get("/api/v1/me")

    events = [r.getMessage().split('"')[3] for r in caplog.records if r.name == "weir.security"]
    assert events == [
        "token.issued", "token.used_elsewhere", "token.used_elsewhere", "token.revoked",
        "token.refused",
    ]  # fmt: skip
    assert made["token"] not in caplog.text
    assert ApiToken.digest_of(made["token"]) not in caplog.text
