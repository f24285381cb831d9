from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.display.timeline import NARROW_PX, WIDE_PX, StateChange, draw

NOW = datetime(2026, 11, 19, 9, 42, tzinfo=UTC)


def ago(**span):
    return NOW - timedelta(**span)


def line(*steps, **more):
    return draw([StateChange(*step) for step in steps], now=NOW, zone_name="Europe/Berlin", **more)


EVICTED = (
    (ago(hours=20), "pending", 0),
    (ago(hours=19), "admitted", 16000),
    (ago(hours=19) + timedelta(minutes=2), "running", 16000),
    (ago(hours=2, minutes=44), "evicted", 16000),
    (ago(hours=2, minutes=43), "requeued", 0),
)


def test_stretches_follow_each_other_and_end_now():
    drawn = line(*EVICTED)
    kinds = [stretch.kind for stretch in drawn.stretches]
    assert kinds == ["waiting", "admitted", "running", "leaving", "waiting"]
    ends = [s.x + s.width for s in drawn.stretches]
    starts = [s.x for s in drawn.stretches]
    assert starts[0] == 0
    assert ends[:-1] == pytest.approx(starts[1:], abs=0.01)
    assert ends[-1] == pytest.approx(drawn.now, abs=0.01)
    assert drawn.now < 100


def test_eviction_is_marked_at_its_time_in_local_hours():
    drawn = line(*EVICTED)
    assert drawn.evicted == pytest.approx([drawn.stretches[3].x])
    assert [(label.text, label.figure) for label in drawn.below] == [("Evicted", "07:58")]


def test_lengths_and_gpus_are_written_out():
    texts = [label.text for label in line(*EVICTED).above]
    assert texts[0] == "now, pending 2 h 43 min"
    assert "Running 16 h 14 min on 16 GPUs" in texts


def test_finished_line_ends_at_its_end_without_now():
    drawn = line(*EVICTED[:3], finished=ago(hours=1))
    assert drawn.now is None
    last = drawn.stretches[-1]
    assert last.x + last.width == pytest.approx(100, abs=0.01)
    assert drawn.text.endswith("finished")


def test_predicted_end_is_drawn_only_where_there_is_one():
    ends = NOW + timedelta(hours=2), NOW + timedelta(hours=5)
    assert line(*EVICTED[:3]).band is None
    low, high, width = line(*EVICTED[:3], ends=ends).band
    assert line(*EVICTED[:3], ends=ends).now < low < high <= 100
    assert width == pytest.approx(high - low, abs=0.01)


def test_predicted_start_of_what_waits_is_a_band_with_its_day():
    starts = NOW + timedelta(hours=2), NOW + timedelta(days=2)
    drawn = line(EVICTED[0], starts=starts)
    low, high, _ = drawn.band
    assert drawn.now < low < high <= 100
    said = [label.text for label in drawn.below]
    assert any(
        text.startswith("starts P90") and len(text) > len("starts P90 12:00") for text in said
    )


def test_just_submitted_work_has_a_line():
    drawn = line((NOW, "pending", 0))
    assert len(drawn.stretches) == 1
    assert drawn.ticks


def test_days_are_named_at_local_midnight():
    assert "Thu 19 Nov" in [tick.text for tick in line(*EVICTED).ticks]


states = st.sampled_from(["pending", "admitted", "running", "evicted", "requeued"])


@given(st.lists(st.tuples(st.integers(0, 10**7), states, st.integers(0, 64000)), min_size=1))
def test_nothing_is_drawn_outside_and_labels_never_meet(rows):
    steps = [(NOW - timedelta(seconds=s), state, gpus) for s, state, gpus in sorted(rows)[::-1]]
    drawn = line(*steps)
    assert all(0 <= s.x <= 100 and 0 <= s.width <= 100.01 for s in drawn.stretches)
    for labels in (drawn.above, drawn.below, drawn.ticks):
        apart(labels, WIDE_PX)
        apart([label for label in labels if label.narrow], NARROW_PX)


def apart(labels, width_px):
    spans = sorted(span(label, width_px) for label in labels)
    for (_, right), (left, _) in pairwise(spans):
        assert right <= left


def span(label, width_px):
    x = label.x / 100 * width_px
    part = {"start": 0, "middle": 0.5, "end": 1}[label.anchor]
    left = x - part * label.length_px
    return left, left + label.length_px
