"""Capacity of a subtree on its own quota, steps of GPUs, and what a test of the curve says of demand."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from portal.accounts.models import User
from scheduling.models import MILLI, Cluster, GpuClass, Queue, Study, UsageSample
from scheduling.models.ledger import Resolution
from scheduling.services.snapshot import build as snapshots
from scheduling.services.studies import doors, running
from tests.capacity import H100, set_slo, studied
from tests.factories import NOW, example_cluster
from tests.foresight import live_of, with_past
from tests.portal.web.studies.test_capacity import found, seen

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(snapshots, "live", live_of)
    monkeypatch.setattr(doors, "send", lambda study_id: None)
    return example_cluster()


@pytest.fixture
def admin(cluster: Cluster) -> Client:
    client = Client()
    client.force_login(User.objects.get(username="admin"))
    return client


@pytest.fixture
def api(cluster: Cluster) -> APIClient:
    client = APIClient()
    client.force_login(User.objects.get(username="admin"))
    return client


def speech() -> Queue:
    return Queue.objects.get(name="speech")


def test_study_of_a_subtree_is_begun_and_lived_alone(cluster: Cluster, admin: Client) -> None:
    with_past(cluster)
    address = reverse("web:capacity", args=["fra1"])
    begun = admin.post(address, {"days": "7", "queue": "speech", "step_gpus": "2"})
    study = Study.objects.get()
    assert begun.status_code == 302
    assert (study.queue, study.question["step_gpus"]) == (speech(), 2 * MILLI)
    (curve,) = [one for one in study.basis["curves"] if one["gpu_class"] == H100]
    assert {after[1] - before[1] for before, after in pairwise(curve["rungs"])} == {2 * MILLI}
    while running.work(study.pk):
        pass
    study.refresh_from_db()
    assert study.state == "done"


def test_page_of_a_subtree_tells_its_quota_and_no_forecast(cluster: Cluster, admin: Client) -> None:
    studied(cluster, queue=speech(), step_gpus=2 * MILLI)
    set_slo(cluster, 120)
    told = seen(admin, queue="speech", **{"class": H100})
    assert (
        "To hold the SLO of 2 h without borrowing, speech needs 152; its own quota is 128 GPUs of"
        in told
    )
    assert "GPUs of own quota, steps of 2" in told
    assert "If quota is added" in told
    assert "No forecast of" not in told
    assert "No curve yet" in seen(admin)


def test_step_of_gpus_leads_to_a_what_if_of_nodes_and_a_part(
    cluster: Cluster, admin: Client
) -> None:
    studied(cluster, step_gpus=12 * MILLI)
    text = admin.get(reverse("web:capacity", args=["fra1"]), {"class": H100}).content.decode()
    assert "If GPUs are added" in text
    assert "steps of 12" in text


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ({"step_gpus": "much"}, "no step from one number"),
        ({"step_gpus": "5000"}, "no step from one number"),
        ({"queue": "research"}, None),
    ],
)
def test_step_that_is_none_is_refused(
    cluster: Cluster, admin: Client, typed: dict[str, str], told: str | None
) -> None:
    with_past(cluster)
    answer = admin.post(reverse("web:capacity", args=["fra1"]), {"days": "7", **typed})
    assert answer.status_code == (302 if told is None else 400)
    assert told is None or told in answer.content.decode()


def test_queue_that_is_not_there_is_not_found(cluster: Cluster, admin: Client) -> None:
    assert (
        admin.get(reverse("web:capacity", args=["fra1"]), {"queue": "nowhere"}).status_code == 404
    )


def test_subtree_is_studied_by_rest(cluster: Cluster, api: APIClient) -> None:
    with_past(cluster)
    listed = reverse("api:studies", args=["fra1"])
    asked = {"kind": "capacity", "days": 7, "queue": "speech", "step_gpus": 4}
    begun = api.post(listed, asked, format="json").json()
    assert (begun["queue"], begun["step_gpus"]) == ("speech", 4)
    refused = api.post(listed, {"kind": "capacity", "days": 7, "queue": "nowhere"}, format="json")
    assert (refused.status_code, refused.json()["code"]) == (400, "no_queue")


def sampled(cluster: Cluster, begin: Any, hours: int, *, ready: float, demand: float) -> None:
    root = Queue.objects.get(cluster=cluster, parent=None)
    kind = GpuClass.objects.get(cluster=cluster, name=H100)
    UsageSample.objects.filter(queue=root, gpu_class=kind, start__gte=begin).delete()
    UsageSample.objects.bulk_create(
        UsageSample(
            queue=root, gpu_class=kind, resolution=Resolution.HOUR, seconds=3600, ready_gpus=ready * MILLI,
            start=begin + timedelta(hours=hour), installed_gpus=128 * MILLI, demand_gpus=demand * MILLI,
        )
        for hour in range(hours)
    )  # fmt: skip


def test_what_came_is_held_against_the_gpus_that_were_ready_then(cluster: Cluster) -> None:
    """128 installed, 120 ready in the later days, in which a fifth more was asked for."""
    with_past(cluster)
    end = NOW - timedelta(days=10)
    sampled(cluster, end - timedelta(days=5), 120, ready=128, demand=100)
    sampled(cluster, end, 120, ready=120, demand=120)
    studied(cluster, end=end, days=5)
    (row,) = found(cluster).came
    assert (row.gpus, row.forecast.median_s) == (120, 400 * 60)
    assert row.demand == pytest.approx(1.2)
    assert row.again is None


def test_what_came_is_replayed_by_the_study_of_those_days(cluster: Cluster) -> None:
    with_past(cluster)
    end = NOW - timedelta(days=6)
    studied(cluster, end=end, days=6)
    studied(cluster, {-1: 90, 0: 60}, end=NOW - timedelta(hours=1), days=6)
    (row,) = found(cluster).came
    assert (row.study.period[1], row.gpus, row.again.median_s) == (end, 128, 3600)
