"""What a queue will hold over the next hours, as its page draws it."""

from datetime import timedelta

import pytest

from portal.web.ahead import Ahead
from portal.web.future.steps_ahead import levels
from scheduling.models import MILLI, Share, StartForecast
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
    """Four GPUs of pretraining start in two hours."""
    now, h100 = cluster.now(), cluster.gpu_classes.get(name="h100-80gb")
    queue = cluster.queues.get(name="pretraining")
    StartForecast.objects.all().delete()
    waits = make_workload(
        queue, name="waits", user="researcher", gpus=4 * MILLI, gpu_classes=["h100-80gb"]
    )
    StartForecast.objects.create(
        workload=waits, at=now, p50_at=now + 2 * HOUR, p90_at=now + 3 * HOUR, gpu_class=h100
    )
    return waits


def _context(client):
    return client.get("/c/fra1/queues/pretraining/?class=h100-80gb").context


def _levels(context):
    return [float(part.split(" ")[0]) for part in context["planned"].text.split(", then ")]


def test_queue_page_draws_what_is_held_from_now_on_with_its_starts(as_user, foreseen):
    shown = _context(as_user("lead"))
    held = shown["share"].allocated / MILLI
    assert _levels(shown) == [held, held + 4]
    assert shown["planned"].labels[-1][0] == "planned"


def test_what_was_due_by_now_starts_now(as_user, cluster, foreseen):
    StartForecast.objects.update(p50_at=cluster.now() - HOUR)
    shown = _context(as_user("lead"))
    assert "from" in shown["planned"].text
    assert _levels(shown)[-1] == shown["share"].allocated / MILLI + 4


def test_what_is_planned_stays_within_the_limit(as_user, cluster, foreseen):
    share = _context(as_user("lead"))["share"]
    Share.objects.filter(pk=share.pk).update(limit=share.allocated + MILLI)
    assert _levels(_context(as_user("lead")))[-1] == share.allocated / MILLI + 1


def test_what_starts_and_ends_within_the_hours_ahead_goes_again(as_user, cluster, foreseen):
    StartForecast.objects.update(run_s=600.0)
    shown = _context(as_user("lead"))
    held = shown["share"].allocated / MILLI
    assert _levels(shown) == [held, held + 4, held]


def test_what_is_foreseen_on_another_class_adds_nothing(as_user, cluster, foreseen):
    StartForecast.objects.update(gpu_class=cluster.gpu_classes.exclude(name="h100-80gb").first())
    assert _context(as_user("lead"))["planned"] is None


def test_without_a_forecast_no_line_is_drawn(as_user, foreseen):
    StartForecast.objects.all().delete()
    assert _context(as_user("lead"))["planned"] is None
