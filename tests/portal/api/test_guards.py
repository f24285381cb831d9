"""Versions of what can be edited, and calls that are sent twice."""

import threading
from datetime import timedelta
from unittest import mock
from uuid import uuid4

import pytest
from django.db import connection
from django.urls import get_resolver
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator
from rest_framework.test import APIClient

from portal.accounts.models import ApiToken, Persona, User
from portal.alerts.models import Rule
from portal.api import guards, personas
from portal.approvals.models import ApprovalRule, LoanOffer
from portal.idempotency import answers, tasks
from portal.idempotency.models import KeptAnswer
from portal.reports.models import Budget, SavedView
from portal.teams.models import GroupRule, Membership, ServiceAccount, Team
from scheduling.models import Consolidation, GpuClass, PriorityClass, Queue
from tests.factories import example_cluster, make_user
from tests.lab import empty_experiment

pytestmark = pytest.mark.django_db
FRA1 = "/api/v1/clusters/fra1"
CELL = {"queue": "pretraining", "gpu_class": "h100-80gb", "field": "nominal", "value": 20}
FEWER = {"queue": "language", "cells": [CELL], "reason": "less for now"}
NEW = {"name": "urgent", "value": 500, "type": "training"}


@pytest.fixture
def admin(api):
    return api("admin")


REQUESTS = {name for name in guards.VERSIONED if name.startswith(("Request", "Loan"))}
"""Tried in ``test_requests`` and ``test_loans``: what may be done to them goes by their state."""


def key():
    return {"HTTP_IDEMPOTENCY_KEY": str(uuid4())}


def patterns():
    """(view, name) of each address of the API."""
    (api,) = [p for p in get_resolver().url_patterns if getattr(p, "namespace", "") == "api"]
    return {
        getattr(p.callback, "cls", None).__name__
        for p in api.url_patterns
        if hasattr(p.callback, "cls")
    }


def test_tables_name_views_that_there_are():
    assert {*guards.VERSIONED, *guards.ONLY_READ} <= patterns()


def operations():
    document = SchemaGenerator().get_schema(request=None, public=True)
    for path, verbs in document["paths"].items():
        for method, operation in verbs.items():
            yield path, verbs, method, operation


def headers(operation):
    return {p["name"] for p in operation.get("parameters", ()) if p["in"] == "header"}


ENDED = ("/sessions/{key}", "/tokens/{id}", "/tokens/{pk}", "/webhooks/{id}")


def test_whatever_can_be_edited_tells_its_version_and_takes_it():
    lacking = []
    for path, verbs, method, operation in operations():
        if method not in ("put", "patch", "delete") or path.endswith(ENDED):
            continue
        told = verbs.get("get", {}).get("responses", {}).get("200", {}).get("headers", {})
        if "If-Match" not in headers(operation) or "412" not in operation["responses"]:
            lacking.append(f"{method} {path}")
        if "ETag" not in told:
            lacking.append(f"get {path}")
    assert lacking == []


def test_whatever_is_posted_takes_a_key():
    lacking = [
        path
        for path, _, method, operation in operations()
        if method == "post"
        and not (
            {"409", "422"} <= operation["responses"].keys()
            and "Idempotency-Key" in headers(operation)
        )
    ]
    assert lacking == [f"{FRA1.replace('fra1', '{cluster}')}/quotas/preview"]


@pytest.fixture
def edited(cluster):
    """View -> (method, address, body) of something that the admin edits."""
    priority = PriorityClass.objects.first()
    gpu_class, admin = (
        GpuClass.objects.filter(cluster=cluster).first(),
        User.objects.get(username="admin"),
    )
    research = Queue.objects.get(name="research")
    team, persona = Team.objects.first(), Persona.objects.first()
    member = Membership.objects.exclude(user=admin).select_related("team", "user").first()
    rule = GroupRule.objects.create(group="g", team=team, persona=persona)
    ServiceAccount.objects.create(user=make_user("svc-bot"), team=team)
    ApprovalRule.objects.create(queue=research, below_gpus=1000, author=admin, at=timezone.now())
    study = empty_experiment(cluster)
    order = Consolidation.objects.create(cluster=cluster, gpu_class=gpu_class, nodes=1, author="admin",
                                         asked_at=timezone.now(), most_moves=1)  # fmt: skip
    offer = LoanOffer.objects.create(
        cluster=cluster, lender=research, gpu_class=gpu_class, gpus=1000, created_at=timezone.now(),
        ends_at=timezone.now() + timedelta(days=900),
    )  # fmt: skip
    place = f"/api/v1/teams/{member.team}/members/{member.user}"
    view = SavedView.objects.create(user=admin, cluster=cluster, name="v", kind="use")
    alert = Rule.objects.create(cluster=cluster, figure="longest_wait", over=60)
    budget = Budget.objects.create(queue=research, amount=5, begin="2026-11-01", end="2026-11-30")
    return {
        "Budgets": ("delete", f"{FRA1}/budgets/{budget.pk}", None),
        "AdaptationView": ("put", f"{FRA1}/adaptation", {"is_on": True}),
        "AdaptingParameterView": ("put", f"{FRA1}/adaptation/parameters/charge", {"is_pinned": True}),
        "Alerts": ("put", f"{FRA1}/alerts/{alert.pk}", {"escalate_s": 3600}),
        "Consolidations": ("delete", f"{FRA1}/consolidations/{order.pk}", None),
        "GroupRules": ("delete", f"/api/v1/group-rules/{rule.pk}", None),
        "NoticePreferences": ("put", "/api/v1/notices/preferences", {}),
        "Offers": ("delete", f"{FRA1}/loan-offers/{offer.pk}", None),
        "GpuClasses": ("put", f"{FRA1}/gpu-classes/{gpu_class}", {"name": str(gpu_class)}),
        "PriorityClasses": ("put", f"/api/v1/priority-classes/{priority}", {"name": "z"}),
        "Queues": ("delete", f"{FRA1}/queues/pretraining", None),
        "Teams": ("delete", f"/api/v1/teams/{team}", None),
        "People": ("put", f"/api/v1/people/{member.user}", {"is_active": False}),
        "Personas": ("put", f"/api/v1/personas/{persona}", {"name": "z"}),
        "PolicyView": ("put", f"{FRA1}/policy", {"values": {}, "reason": "x"}),
        "QuotaList": ("post", f"{FRA1}/quotas", {}),
        "RequestRules": ("put", f"{FRA1}/request-rules/research", {"below_gpus": 2}),
        "SavedViews": ("delete", f"{FRA1}/reports/views/{view.pk}", None),
        "ServiceAccounts": ("delete", f"/api/v1/teams/{team}/service-accounts/svc-bot", None),
        "Studies": ("delete", f"{FRA1}/studies/{study.pk}", None),
        "TeamMember": ("delete", place, None),
        "Tree": ("put", f"{FRA1}/tree", {"queues": [{"name": "new"}]}),
    }  # fmt: skip


def test_every_view_of_the_table_is_tried(edited):
    assert {*edited, *REQUESTS} == set(guards.VERSIONED)


@pytest.mark.parametrize("view", sorted(set(guards.VERSIONED) - REQUESTS))
def test_edit_of_another_version_changes_nothing(admin, edited, view):
    method, url, body = edited[view]
    version = admin.get(url)["ETag"]
    refused = getattr(admin, method)(url, body, format="json", HTTP_IF_MATCH='"other"')
    assert refused.status_code == 412
    assert refused.json()["code"] == "changed_since_read"
    assert refused.json()["remedy"]
    assert admin.get(url)["ETag"] == version


@pytest.fixture
def gpu_class(admin, cluster):
    return f"{FRA1}/gpu-classes/{GpuClass.objects.filter(cluster=cluster).first()}"


def put(client, url, version=None, **values):
    name = url.rpartition("/")[2]
    more = {"HTTP_IF_MATCH": version} if version else {}
    return client.put(url, {"name": name, **values}, format="json", **more)


def test_edit_of_the_version_that_was_read_is_kept_and_tells_the_next(admin, gpu_class):
    saved = put(admin, gpu_class, admin.get(gpu_class)["ETag"], exchange_rate="0.5")
    assert saved.status_code == 200
    assert saved["ETag"] == admin.get(gpu_class)["ETag"]


def test_edit_of_a_former_version_is_told_what_changed(admin, gpu_class):
    former = admin.get(gpu_class)["ETag"]
    put(admin, gpu_class, price_per_gpu_hour="7")
    refused = put(admin, gpu_class, former, exchange_rate="0.5")
    assert refused.status_code == 412
    assert list(refused.json()["fields"]) == ["price_per_gpu_hour"]
    assert "price_per_gpu_hour" in refused.json()["sentence"]


def test_field_of_a_policy_that_changed_is_named(admin):
    url = f"{FRA1}/policy"
    former = admin.get(url)["ETag"]
    change = {"values": {"cooldown_s": 601}, "reason": "x"}
    assert admin.put(url, change, format="json").status_code == 200
    refused = admin.put(url, change, format="json", HTTP_IF_MATCH=former)
    assert list(refused.json()["fields"]) == ["cooldown_s"]


def test_edit_without_a_version_wins_as_ever(admin, gpu_class):
    assert put(admin, gpu_class, exchange_rate="0.5").status_code == 200


@pytest.mark.parametrize("form", ["*", "W/{}", '"x", {}'])
def test_version_stands_in_any_form_of_the_header(admin, gpu_class, form):
    version = form.format(admin.get(gpu_class)["ETag"])
    assert put(admin, gpu_class, version).status_code == 200


def test_header_that_is_no_tag_is_told_what_one_is(admin, gpu_class):
    assert put(admin, gpu_class, "nonsense").json()["code"] == "bad_if_match"


def test_shares_of_a_queue_are_no_edit(admin, cluster):
    url = f"{FRA1}/queues/pretraining"
    before = admin.get(url)["ETag"]
    Queue.objects.get(name="pretraining").shares.update(allocated=123)
    assert admin.get(url)["ETag"] == before


def test_version_of_quotas_moves_with_a_change(admin, cluster):
    url = f"{FRA1}/quotas"
    former = admin.get(url)["ETag"]
    changed = admin.post(url, FEWER, format="json", HTTP_IF_MATCH=former)
    assert changed.status_code == 201, changed.json()
    assert admin.post(url, FEWER, format="json", HTTP_IF_MATCH=former).status_code == 412


def test_tree_that_is_read_changes_nothing_when_it_is_put_back(admin, cluster):
    url = f"{FRA1}/tree"
    read = admin.get(url)
    again = admin.put(url, read.json(), format="json", HTTP_IF_MATCH=read["ETag"])
    assert again.status_code == 200, again.json()
    assert admin.get(url).json() == read.json()


def test_who_may_not_see_it_is_told_nothing_by_a_version(api, cluster):
    stranger = APIClient()
    stranger.force_authenticate(make_user("stranger"))
    absent = stranger.delete(f"{FRA1}/queues/pretraining", HTTP_IF_MATCH='"x"')
    assert absent.status_code == 404


def post(client, headers, **values):
    return client.post("/api/v1/priority-classes", {**NEW, **values}, format="json", **headers)


def test_call_that_is_sent_again_is_carried_out_once(admin):
    once = key()
    first, again = post(admin, once), post(admin, once)
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert again["Idempotency-Replayed"] == "true"
    assert PriorityClass.objects.filter(name="urgent").count() == 1


def test_key_of_another_body_is_refused(admin):
    once = key()
    post(admin, once)
    refused = post(admin, once, value=501)
    assert (refused.status_code, refused.json()["code"]) == (422, "key_reused")


def test_key_of_another_address_is_refused(admin):
    once = key()
    post(admin, once)
    assert admin.post("/api/v1/notices/read", {}, format="json", **once).status_code == 422


def test_key_belongs_to_who_sent_it(admin, api):
    once = key()
    post(admin, once)
    assert "Idempotency-Replayed" not in post(api("lead"), once).headers


def test_refusal_leaves_the_key_free(admin):
    once = key()
    assert post(admin, once, name="").status_code == 400
    assert post(admin, once).status_code == 201


@pytest.mark.parametrize("bad", ["short", "with spaces in it", "x" * 201])
def test_key_that_is_none_is_refused(admin, bad):
    assert post(admin, {"HTTP_IDEMPOTENCY_KEY": bad}).json()["code"] == "bad_idempotency_key"


def test_key_is_free_after_a_day(admin):
    once = key()
    post(admin, once)
    KeptAnswer.objects.update(at=timezone.now() - timedelta(hours=25))
    refused = post(admin, once)
    assert "name" in refused.json()["fields"]  # carried out again: the class is there by now


def test_answer_is_dropped_after_a_day(admin):
    post(admin, key())
    tasks.forget()
    assert KeptAnswer.objects.count() == 1
    KeptAnswer.objects.update(at=timezone.now() - timedelta(hours=25))
    tasks.forget()
    assert not KeptAnswer.objects.exists()


def test_call_that_was_cut_off_is_never_done_twice(admin):
    once = key()
    admin.raise_request_exception = False
    with mock.patch.object(personas, "save_persona", side_effect=RuntimeError):
        assert (
            admin.post("/api/v1/personas", {"name": "p"}, format="json", **once).status_code == 500
        )
    again = admin.post("/api/v1/personas", {"name": "p"}, format="json", **once)
    assert (again.status_code, again.json()["code"]) == (409, "under_way")
    KeptAnswer.objects.update(at=timezone.now() - answers.LONGEST_CALL * 2)
    again = admin.post("/api/v1/personas", {"name": "p"}, format="json", **once)
    assert (again.status_code, again.json()["code"]) == (409, "outcome_unknown")


def test_secret_that_is_shown_once_is_not_kept_in_the_clear(admin):
    once = key()
    made = admin.post("/api/v1/tokens", {"name": "t"}, format="json", **once)
    row = KeptAnswer.objects.get()
    assert made.json()["token"] not in row.answer
    assert once["HTTP_IDEMPOTENCY_KEY"] not in row.key
    assert admin.post("/api/v1/tokens", {"name": "t"}, format="json", **once).json() == made.json()
    assert ApiToken.objects.count() == 1


def test_retried_edit_of_a_version_gets_its_first_answer(admin, cluster):
    url = f"{FRA1}/quotas"
    more = {**key(), "HTTP_IF_MATCH": admin.get(url)["ETag"]}
    first, again = (admin.post(url, FEWER, format="json", **more) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201), first.json()
    assert again.json() == first.json()


def at_once(call, *values):
    """What ``call`` gives for each of the values, in threads with connections of their own."""
    met, answers = threading.Barrier(len(values)), []

    def run(value):
        try:
            met.wait()
            answers.append(call(value))
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=[value]) for value in values]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def signed_in(user):
    client = APIClient()
    client.force_authenticate(user)
    return client


@pytest.mark.django_db(transaction=True)
def test_two_at_once_are_carried_out_once():
    example_cluster()
    user, once = User.objects.get(username="admin"), key()
    answers = at_once(lambda _: post(signed_in(user), once).status_code, 1, 2)
    assert PriorityClass.objects.filter(name="urgent").count() == 1
    assert sorted(answers) in ([201, 201], [201, 409])


@pytest.mark.django_db(transaction=True)
def test_of_two_edits_of_one_version_one_is_kept():
    cluster = example_cluster()
    user = User.objects.get(username="admin")
    url = f"{FRA1}/gpu-classes/{GpuClass.objects.filter(cluster=cluster).first()}"
    version = signed_in(user).get(url)["ETag"]

    def edit(rate):
        return put(signed_in(user), url, version, exchange_rate=rate).status_code

    assert sorted(at_once(edit, "0.3", "0.4")) == [200, 412]
