"""What was learned of run times, where it is shown and to whom."""

import pytest
from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from scheduling.models import Workload
from scheduling.services import run_times
from tests.factories import example_cluster
from tests.foresight import with_past
from tests.seeding import laid_down

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster():
    made = example_cluster()
    laid_down("predicted run times", lambda: predict_from_a_past(made))
    return made


def predict_from_a_past(cluster):
    with_past(cluster)
    run_times.learn(cluster=cluster)
    run_times.predict(cluster=cluster)


def seen_by(username, address):
    client = Client()
    client.force_login(User.objects.get(username=username))
    return client.get(address)


def waiting(cluster):
    return Workload.objects.filter(cluster=cluster, state="pending", user="m.okafor").first()


def test_workload_page_says_how_long_and_from_whose_runs(cluster):
    work = waiting(cluster)
    text = seen_by("admin", reverse("web:workload", args=["fra1", work.uid])).content.decode()
    assert "Expected to run" in text
    assert "P10" in text
    assert "from the last" in text


def test_model_stands_on_start_forecasts_for_operators_alone(cluster):
    address = reverse("web:start_forecasts", args=["fra1"])
    text = seen_by("admin", address).content.decode()
    assert "Run-time model of fra1" in text
    assert "Median of all" in text
    assert "Run-time model" not in seen_by("m.okafor", address).content.decode()


def test_api_gives_the_same_quantiles(cluster):
    work = waiting(cluster)
    told = seen_by("admin", f"/api/v1/clusters/fra1/workloads/{work.uid}").json()["run_time"]
    assert told["p50_s"] == work.prediction.p50_s
    assert told["p10_s"] <= told["p50_s"] <= told["p90_s"]
    assert told["runs"] > 0
