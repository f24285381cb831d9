"""An edit cut into a timeline: nothing outside the range moves, nothing in it but the edited fields."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from scheduling.services.queues.values import Field, Segment, Values, patched, value_at

START = datetime(2026, 1, 1, tzinfo=UTC)


def day(number):
    return None if number is None else START + timedelta(days=number)


@st.composite
def timelines(draw):
    """Up to five stretches in order of time, some with gaps between them, the last maybe endless."""
    cuts = sorted(draw(st.sets(st.integers(0, 30), min_size=2, max_size=10)))
    segments = [
        Segment(day(a), day(b), Values(nominal=draw(st.integers(0, 9)), lending_limit=a))
        for a, b in zip(cuts[::2], cuts[1::2], strict=False)
    ]
    if segments and draw(st.booleans()):
        segments[-1] = Segment(segments[-1].start, None, segments[-1].values)
    return segments


ranges = st.tuples(st.integers(0, 30), st.one_of(st.none(), st.integers(1, 15))).map(
    lambda r: (r[0], None if r[1] is None else r[0] + r[1])
)


@given(timelines(), ranges)
def test_edit_changes_just_its_field_during_just_its_range(timeline, days):
    start, end = days
    after = patched(timeline, start=day(start), end=day(end), edit={Field.NOMINAL: 77})

    for number in range(50):
        old, new = value_at(timeline, day(number)), value_at(after, day(number))
        inside = start <= number and (end is None or number < end)
        assert new.nominal == (77 if inside else old.nominal)
        assert (new.lending_limit, new.weight) == (old.lending_limit, old.weight)


@given(timelines(), ranges)
def test_edit_leaves_no_overlap_and_no_empty_stretch(timeline, days):
    start, end = days
    after = patched(timeline, start=day(start), end=day(end), edit={Field.NOMINAL: 77})

    for one, other in pairwise(after):
        assert one.end is not None
        assert one.start < one.end <= other.start


@given(timelines(), ranges)
def test_edit_repeated_changes_nothing_more(timeline, days):
    start, end = days
    edit = {Field.NOMINAL: 77}
    once = patched(timeline, start=day(start), end=day(end), edit=edit)

    assert patched(once, start=day(start), end=day(end), edit=edit) == once


def test_end_inside_a_stretch_brings_the_old_values_back():
    before = [Segment(day(0), None, Values(nominal=8))]

    after = patched(before, start=day(5), end=day(9), edit={Field.NOMINAL: 4})

    assert [(s.start, s.end, s.values.nominal) for s in after] == [
        (day(0), day(5), 8),
        (day(5), day(9), 4),
        (day(9), None, 8),
    ]


def test_gap_is_filled_with_defaults():
    after = patched([], start=day(1), end=day(2), edit={Field.BORROWING_LIMIT: 3})

    assert after == [Segment(day(1), day(2), Values(borrowing_limit=3))]
