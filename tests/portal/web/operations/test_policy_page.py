"""The policy of a cluster: tried on the live cluster before it is saved."""

from __future__ import annotations

import pytest

from scheduling.models import Cluster
from tests.factories import example_cluster
from tests.portal.kubernetes import serving

pytestmark = pytest.mark.django_db
URL = "/c/fra1/policy/"


@pytest.fixture
def cluster():
    """The example organisation over an API server that answers."""
    made = example_cluster()
    with serving(made):
        yield made


def text(answer):
    return " ".join(answer.content.decode().split())


def test_preview_plans_with_the_policy_and_saves_nothing(cluster, as_user):
    answer = as_user("admin").post(URL, {"placement": "spread", "preview": "1"})

    assert answer.status_code == 200
    assert "planned at" in text(answer)
    assert "<option selected>spread</option>" in text(answer)
    assert Cluster.objects.get(name="fra1").placement == "pack"


def test_preview_of_a_field_that_no_plan_goes_by_says_so(cluster, as_user):
    answer = as_user("admin").post(URL, {"cycle_interval_s": "30", "preview": "1"})
    assert "None of the edited fields changes what the engine plans" in text(answer)


def test_preview_without_a_cluster_says_why_and_the_policy_is_still_saved(cluster, as_user):
    Cluster.objects.update(api_url="http://127.0.0.1:9")
    admin, edit = as_user("admin"), {"placement": "spread"}
    assert "does not answer" in text(admin.post(URL, {**edit, "preview": "1"}))

    assert admin.post(URL, {**edit, "reason": "Even load"}).status_code == 302
    assert Cluster.objects.get(name="fra1").placement == "spread"


def test_value_that_is_wrong_is_named_before_anything_is_planned(cluster, as_user):
    answer = as_user("admin").post(URL, {"max_moves": "many", "preview": "1"})
    assert answer.status_code == 400
    assert "planned at" not in text(answer)
