from datetime import timedelta

import pytest

from scheduling.engine.model import Plan, Share
from scheduling.models import MILLI, UsageSample
from tests.factories import NOW, example_cluster
from workshop.demo.past.hourly import SAMPLE, HourlyUsage

START = NOW.replace(minute=0, second=0)
H100 = "h100-80gb"

pytestmark = pytest.mark.django_db


@pytest.fixture
def usage():
    return HourlyUsage(example_cluster(at=NOW))


def sample(usage, queue):
    written = [UsageSample(**dict(zip(SAMPLE, row, strict=True))) for row in usage.rows()]
    rows = [r for r in written if r.queue.name == queue and r.gpu_class.name == H100]
    return sorted(rows, key=lambda row: row.start)


def test_gpus_held_half_an_hour_average_to_half(usage):
    usage.hold(START, "vision", H100, 0)
    usage.hold(START + timedelta(minutes=30), "vision", H100, 8 * MILLI)
    usage.close(START + timedelta(hours=1))

    (row,) = sample(usage, "vision")
    assert row.allocated_gpus == 4 * MILLI
    assert row.seconds == 3600


def test_what_a_leaf_holds_is_held_by_every_queue_above(usage):
    usage.hold(START, "alignment", H100, 4 * MILLI)
    usage.close(START + timedelta(hours=1))

    for queue in ("alignment", "language", "research", "fra1"):
        assert sample(usage, queue)[0].allocated_gpus == 4 * MILLI


def test_holding_across_hours_makes_a_row_for_each(usage):
    usage.hold(START + timedelta(minutes=45), "ci", H100, MILLI)
    usage.hold(START + timedelta(hours=2, minutes=15), "ci", H100, -MILLI)
    usage.close(START + timedelta(hours=3))

    rows = sample(usage, "ci")
    assert [row.seconds for row in rows] == [900, 3600, 3600]
    assert [row.allocated_gpus for row in rows] == [1000, 1000, 250]


def test_share_of_a_plan_holds_until_the_next_plan(usage):
    def plan(fair):
        share = Share(
            fair_share=fair,
            potential=fair,
            allocated=0,
            nominal=8 * MILLI,
            limit=None,
            demand=0,
            pending=0,
            guaranteed=0.0,
        )
        return Plan(fair_share={"ci": {H100: share}}, decisions=())

    usage.plan(START, plan(8000.0))
    usage.plan(START + timedelta(minutes=15), plan(4000.0))
    usage.close(START + timedelta(hours=1))

    (row,) = sample(usage, "ci")
    assert row.fair_share_gpus == pytest.approx(5000)
    assert row.nominal_gpus == 8 * MILLI
