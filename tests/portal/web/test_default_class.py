"""The class of a figure before its reader chooses one: what they wait for, then what they hold."""

import pytest

from scheduling.models import GpuClass, Queue, Workload
from tests.factories import make_workload

pytestmark = pytest.mark.django_db
WAITS, RUNS = {"state": "pending"}, {"state": "running"}


@pytest.fixture
def queue(cluster):
    Workload.objects.all().delete()
    return Queue.objects.get(name="pretraining")


@pytest.mark.parametrize("page", ["work/", "queues/pretraining/", "queues/pretraining/future/"])
@pytest.mark.parametrize(
    ("live", "shown"),
    [
        ([], "h100-80gb"),
        ([("l4", RUNS)], "l4"),
        ([("l4", WAITS), ("a100-40gb", RUNS)], "l4"),
        ([("a100-40gb", RUNS), ("l4", {"state": "finished"})], "a100-40gb"),
    ],
)
def test_figure_shows_the_class_that_is_waited_for(as_user, queue, page, live, shown):
    for name, fields in live:
        make_workload(queue, user="m.okafor", gpu_classes=[name], **fields)
    read = as_user("m.okafor").get(f"/c/fra1/{page}").text
    current = read.split('aria-current="true"', 1)[1].split("</a>", 1)[0]
    assert shown in current


def test_class_that_is_chosen_is_shown_whatever_waits(as_user, queue):
    make_workload(queue, user="m.okafor", gpu_classes=["l4"])
    page = as_user("m.okafor").get("/c/fra1/work/?class=a100-40gb")
    assert page.context["chosen"] == GpuClass.objects.get(name="a100-40gb")
