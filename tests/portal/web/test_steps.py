from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from portal.display.entitlement import Axis
from portal.display.steps import Frame, Sample, apart, area, line

BEGIN = datetime(2026, 11, 12, 12, tzinfo=UTC)
FRAME = Frame(BEGIN, BEGIN + timedelta(hours=10), Axis(40_000, ()))


def sample(hour, gpus):
    return Sample(BEGIN + timedelta(hours=hour), 3600, gpus * 1000)


def test_neighbouring_hours_are_one_line():
    drawn = FRAME.stretches([sample(0, 10), sample(1, 20)])
    assert line(drawn) == "M0.00 75.00H10.00V50.00H20.00"


def test_missing_hour_lifts_the_pen():
    drawn = FRAME.stretches([sample(0, 10), sample(2, 10)])
    assert line(drawn).count("M") == 2


def test_area_reaches_the_base_line():
    assert area(FRAME.stretches([sample(9, 40)])) == "M90.00 100V0.00H100.00V100Z"


def test_each_day_that_begins_inside_is_marked():
    frame = Frame(BEGIN, BEGIN + timedelta(days=2), Axis(1, ()))
    assert frame.days() == [("25.00%", "Fri 13"), ("75.00%", "Sat 14")]


def test_day_begins_at_local_midnight():
    begin = BEGIN.astimezone(ZoneInfo("Europe/Berlin"))
    frame = Frame(begin, begin + timedelta(days=1), Axis(1, ()))
    assert frame.days() == [("45.83%", "Fri 13")]


@given(st.lists(st.floats(0, 100), max_size=6))
def test_labels_come_apart_without_changing_order(places):
    moved = apart(places, gap=9)
    ranked = sorted(range(len(places)), key=lambda i: (places[i], i))
    inside = [moved[i] for i in ranked]
    assert all(b - a >= 9 - 1e-6 for a, b in pairwise(inside))
    assert all(-1e-6 <= place <= 100 + 1e-6 for place in moved)
