"""The page of a cluster: what operators read about its mode and its guardrails."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from scheduling.models import Cluster, ClusterMode, Guardrail, GuardrailState
from scheduling.services.clusters.add import set_mode

pytestmark = pytest.mark.django_db
URL = "/c/fra1/cluster/"


@pytest.fixture
def operator(cluster, as_user):
    return as_user("admin")


def rail(name: str, standing: GuardrailState = GuardrailState.DRIFTED, **more):
    fields = {"kind": "ResourceQuota", "namespace": "search", "since": timezone.now(), **more}
    return Guardrail.objects.create(
        cluster=Cluster.objects.get(name="fra1"), name=name, standing=standing, **fields
    )


def compared() -> None:
    Cluster.objects.filter(name="fra1").update(guarded_at=timezone.now() - timedelta(seconds=12))


def page(client) -> str:
    return " ".join(client.get(URL).content.decode().split())


def test_members_and_leads_find_nothing_there(cluster, as_user):
    for name in ("researcher", "lead"):
        client = as_user(name)
        assert client.get(URL).status_code == 404
        assert URL not in client.get("/c/fra1/").content.decode()


def test_operator_reaches_it_from_the_menu(operator):
    assert f'href="{URL}"' in operator.get("/c/fra1/").content.decode()


def test_drift_is_listed_by_field_with_what_enforcing_does(operator):
    compared()
    rail("weir", fields=["spec.hard.requests.nvidia.com/gpu"])
    rail("other", GuardrailState.IN_STEP)
    html = page(operator)

    assert "Drifted" in html
    assert "spec.hard.requests.nvidia.com/gpu" in html
    assert "<dt>ResourceQuota</dt><dd>1 of 2</dd>" in html
    assert "repairs these within a minute" in html
    assert "search/other" not in html


def test_observed_cluster_says_that_nothing_is_written(operator):
    Cluster.objects.update(mode=ClusterMode.OBSERVE)
    rail("weir", GuardrailState.MISSING)
    html = page(operator)

    assert "Enforcing would repair these. Nothing is written until then." in html
    assert "writes nothing to the cluster" in html


def test_tasks_that_wait_are_told_for_each_lane(operator):
    html = page(operator)
    assert "Tasks that wait" in html
    assert "Cycles and guardrails of this cluster" in html
    assert "Roll-ups, forecasts, alerts and notices" in html
    assert "What-ifs, experiments, capacity and learning" in html


def test_refusal_is_said_in_the_servers_words(operator):
    rail("weir", GuardrailState.REFUSED, detail="others made it with value 10")
    assert "others made it with value 10" in page(operator)


def test_settled_and_never_compared_clusters_are_told_apart(operator):
    assert "Not compared yet" in page(operator)
    compared()
    assert "Everything stands as it should" in page(operator)


def test_mode_is_set_after_its_effects_were_read(operator, cluster):
    compared()
    rail("weir")
    rail("kept", GuardrailState.IN_STEP)
    set_mode(cluster, ClusterMode.OBSERVE)
    url = f"{URL}mode/enforce/"
    assert url in page(operator)
    said = operator.get(url).content.decode()
    assert "1 of 2 guardrails is not as it should be: written first." in said
    assert Cluster.objects.get(name="fra1").mode == ClusterMode.OBSERVE

    assert operator.post(url, {"left": "unread"}).headers["Location"] == URL
    assert Cluster.objects.get(name="fra1").mode == ClusterMode.ENFORCE
    assert "Weir admits and evicts work" in page(operator)
    assert re.search(r"Enforce, set \d+ s ago by admin", page(operator))


def test_pausing_says_what_goes_on_and_what_does_not(operator, cluster):
    said = operator.get(f"{URL}mode/paused/").content.decode()
    holding = cluster.workloads.filter(state__in=("admitted", "running")).count()
    assert f"{holding} workloads that hold GPUs go on; none is evicted." in said


def test_mode_takes_a_token_of_the_form(cluster, django_user_model):
    client = Client(enforce_csrf_checks=True)
    client.force_login(django_user_model.objects.get(username="admin"))
    assert client.post(f"{URL}mode/paused/").status_code == 403
    assert Cluster.objects.get(name="fra1").mode != ClusterMode.PAUSED


def test_mode_is_set_through_the_api_by_operators_alone(cluster, as_user):
    url = "/api/v1/clusters/fra1/mode"
    asked = {"data": {"mode": "paused"}, "content_type": "application/json"}
    assert as_user("lead").post(url, **asked).status_code == 404
    assert as_user("admin").post(url, **asked).json()["mode"] == "paused"
    last = Cluster.objects.get(name="fra1").history.latest("history_id")
    assert (last.mode, last.history_user.username) == ("paused", "admin")


@pytest.mark.parametrize("rows", [1, 3])
def test_queries_do_not_grow_with_rows(operator, rows, settings, django_assert_num_queries):
    settings.WEIR_REMEMBERED_S = 5.0  # as in production
    for i in range(rows):
        rail(f"weir-{i}")
    with django_assert_num_queries(30):
        operator.get(URL)


def test_api_lists_them_for_operators_alone(operator, as_user):
    rail("weir", fields=["spec.hard"])
    rail("kept", GuardrailState.IN_STEP)
    url = "/api/v1/clusters/fra1/guardrails"
    (row,) = operator.get(url, {"standing": "drifted"}).json()["results"]

    assert (row["name"], row["differs"]) == ("weir", ["spec.hard"])
    assert as_user("lead").get(url).status_code == 404
