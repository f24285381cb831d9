"""What edits of the grid would do, told before they are saved and kept with them."""

import pytest

from portal.demo.organisation import H100
from scheduling.models import Quota, QuotaChange
from tests.factories import example_cluster
from tests.portal.kubernetes import serving

pytestmark = pytest.mark.django_db
URL = "/c/fra1/quotas/research/"


@pytest.fixture
def cluster():
    """The example organisation over an API server that answers."""
    made = example_cluster()
    with serving(made):
        yield made


@pytest.fixture
def cell(cluster):
    """Name of the input of a queue's nominal, or of another figure."""
    gpu_class = cluster.gpu_classes.get(name=H100)

    def find(queue, field="nominal"):
        return f"cell-{cluster.queues.get(name=queue).pk}-{gpu_class.pk}-{field}"

    return find


def text(answer):
    return " ".join(answer.content.decode().split())


def test_preview_of_typed_edits_says_what_moves_and_saves_nothing(as_user, cell):
    answer = as_user("lead").post(
        f"{URL}preview/", {cell("vision"): "8", cell("pretraining"): "32"}
    )

    told = text(answer)
    assert "planned at" in told
    assert f"Fair share now of {H100}, before → after" in told
    assert not QuotaChange.objects.exists()


def test_preview_without_scripts_stands_beside_what_was_typed(as_user, cell):
    answer = as_user("lead").post(URL, {cell("vision"): "8", "reason": "Less", "preview": "1"})

    assert answer.status_code == 200
    assert "planned at" in text(answer)
    assert 'value="8"' in text(answer)
    assert not QuotaChange.objects.exists()


@pytest.mark.parametrize(("field", "value", "told"), [
    ("nominal", "eight", "once what is wrong in the grid is mended"),
    ("nominal", "16", "Edit a figure"),
    ("budget_gpu_hours", "900", "A budget of GPU-hours starts and stops nobody"),
])  # fmt: skip
def test_what_cannot_be_planned_says_why(as_user, cell, field, value, told):
    answer = as_user("lead").post(f"{URL}preview/", {cell("vision", field): value})

    assert told in text(answer)


def test_saved_edit_keeps_what_was_expected_of_it(as_user, cell):
    lead = as_user("lead")
    lead.post(URL, {cell("vision"): "8", "reason": "Less"})

    change = QuotaChange.objects.get()
    assert change.expected["changes"] == [
        {"kind": "quota", "queue": "vision", "gpu_class": H100, "nominal_gpus": 8.0}
    ]
    assert "Expected: " in text(lead.get(URL))


def test_edit_is_saved_though_the_cluster_does_not_answer(as_user, cell, cluster):
    cluster.api_url = "http://127.0.0.1:9"
    cluster.save()
    lead = as_user("lead")
    edit = {cell("vision"): "8"}

    assert "does not answer" in text(lead.post(f"{URL}preview/", edit))
    assert lead.post(URL, {**edit, "reason": "Less"}).status_code == 302
    assert Quota.objects.filter(queue__name="vision", nominal_gpus=8000).exists()


def test_who_divides_nothing_there_finds_no_preview(as_user, cell):
    assert as_user("researcher").post(f"{URL}preview/", {cell("vision"): "8"}).status_code == 404
