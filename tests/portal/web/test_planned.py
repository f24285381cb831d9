"""What a queue will hold over the next hours, as its page draws it."""

from datetime import timedelta

import pytest

from portal.web.ahead import Ahead
from portal.web.future.planned import levels
from scheduling.models import MILLI, ForecastRun, StartForecast
from tests.factories import NOW, make_workload

HOUR = timedelta(hours=1)
OVER = Ahead(NOW, NOW + 4 * HOUR)


def test_levels_go_up_at_a_start_and_down_at_its_end():
    found = levels(2000, [], [(NOW + HOUR, 4000, 3600.0)], OVER)
    assert found == [(NOW, 2000), (NOW + HOUR, 6000), (NOW + 2 * HOUR, 2000)]


def test_levels_fall_by_what_ends_and_stop_where_the_axis_does():
    found = levels(2000, [(NOW + HOUR, 2000), (NOW + 5 * HOUR, 1000)], [], OVER)
    assert found == [(NOW, 2000), (NOW + HOUR, 0)]


@pytest.fixture
def foreseen(db, cluster):
    """Of pretraining: 40 GPUs have no end in sight, 2 end in an hour, 4 start in two."""
    now, h100 = cluster.now(), cluster.gpu_classes.get(name="h100-80gb")
    queue = cluster.queues.get(name="pretraining")
    runs = make_workload(
        queue, name="runs", user="researcher", state="running", gpus=2 * MILLI, members=1,
        gpu_class=h100, started_at=now - HOUR,
    )  # fmt: skip
    waits = make_workload(queue, name="waits", user="researcher", gpus=4 * MILLI)
    ForecastRun.objects.create(cluster=cluster, at=now, began_at=now, ends={runs.uid: [3600, 7200]})
    StartForecast.objects.create(
        workload=waits, at=now, p50_at=now + 2 * HOUR, p90_at=now + 3 * HOUR, gpu_class=h100
    )
    return runs, waits


def _planned(client):
    return client.get("/c/fra1/queues/pretraining/?class=h100-80gb").context["planned"]


def test_queue_page_draws_what_is_held_from_now_on_with_starts_and_ends(as_user, foreseen):
    found = _planned(as_user("lead"))
    assert [part.split(" ")[0] for part in found.text.split(", then ")] == ["42", "40", "44"]
    assert found.labels[-1][:2] == ("planned", "44")


def test_what_was_due_by_now_starts_now(as_user, cluster, foreseen):
    before = cluster.now() - HOUR
    StartForecast.objects.update(p50_at=before)
    found = _planned(as_user("lead"))
    assert [part.split(" ")[0] for part in found.text.split(", then ")] == ["42", "46", "44"]


def test_without_a_forecast_no_line_is_drawn(as_user, cluster, foreseen):
    ForecastRun.objects.all().delete()
    StartForecast.objects.all().delete()
    assert _planned(as_user("lead")) is None
    page = as_user("lead").get("/c/fra1/queues/pretraining/").content.decode()
    assert "Allocated, planned" not in page


def test_work_of_queues_out_of_sight_is_not_part_of_the_line(as_user, cluster, foreseen):
    ci = cluster.queues.get(name="ci")
    hidden = make_workload(ci, name="hidden", gpus=8 * MILLI)
    now, h100 = cluster.now(), cluster.gpu_classes.get(name="h100-80gb")
    StartForecast.objects.create(
        workload=hidden, at=now, p50_at=now + HOUR, p90_at=now + HOUR, gpu_class=h100
    )
    found = _planned(as_user("lead"))
    assert found.labels[-1][:2] == ("planned", "44")
