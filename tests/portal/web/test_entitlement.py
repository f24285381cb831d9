"""The twelve cases of the entitlement bar, on one axis of 56 GPUs."""

import pytest
from django.template.loader import render_to_string

from portal.display.entitlement import Axis, Bar, Figures, axis, bar

G = 1000
AXIS = Axis(56 * G, tuple((f"{i * 100 / 7:g}%", str(8 * i)) for i in range(8)))


def figures(allocated, fair, nominal, limit, pending=0, **more) -> Figures:
    asked = allocated + pending
    return Figures(
        allocated=allocated * G,
        fair_share=fair * G,
        nominal=nominal * G,
        limit=None if limit is None else limit * G,
        demand=more.pop("demand", asked if limit is None else min(asked, limit)) * G,
        pending=pending * G,
        **{name: value * G for name, value in more.items()},
    )


def drawn(*args, **more) -> Bar:
    return bar("alignment", figures(*args, **more), AXIS)


def gpus(percent: str) -> float:
    return round(float(percent.rstrip("%")) * 56 / 100, 2)


def ends(span) -> tuple[float, float]:
    return gpus(span.x), gpus(span.end)


def test_below_fair_share_fill_ends_left_of_the_triangle_and_pending_passes_it():
    one = drawn(12, 17, 12, 24, pending=8)
    assert ends(one.own) == (0, 12)
    assert one.borrowed is None
    assert ends(one.pending) == (12, 20)
    assert (gpus(one.nominal), gpus(one.fair), gpus(one.limit)) == (12, 17, 24)


def test_above_fair_share_fill_past_nominal_is_thin():
    one = drawn(40, 39, 24, 48, pending=8)
    assert ends(one.own) == (0, 24)
    assert ends(one.borrowed) == (24, 40)
    assert ends(one.pending) == (40, 48)
    assert one.note == ""


def test_idle_nominal_lent_out_is_hollow_from_demand_to_nominal():
    one = drawn(8, 8, 16, 32, lent=8)
    assert ends(one.lent) == (8, 16)
    assert one.pending is None
    assert one.kept_back is None


def test_idle_nominal_kept_back_starts_at_demand_and_precedes_what_is_lent():
    one = drawn(14, 14, 24, 32, kept_back=6, lent=4)
    assert ends(one.kept_back) == (14, 20)
    assert ends(one.lent) == (20, 24)


def test_demand_past_the_limit_stops_at_the_bracket_and_says_the_rest():
    one = drawn(8, 6, 4, 16, pending=16)
    assert ends(one.pending) == (8, 16)
    assert (one.note, one.note_short) == ("+8 pending past the limit", "+8")
    assert not one.is_over


def test_nominal_zero_stands_at_the_zero_line_and_all_fill_is_thin():
    one = drawn(3, 4, 0, 8, pending=2)
    assert one.nominal == "0%"
    assert one.own is None
    assert ends(one.borrowed) == (0, 3)


def test_nothing_held_or_asked_leaves_marks_and_room():
    one = drawn(0, 0, 8, 16, lent=8)
    assert (one.own, one.borrowed, one.pending) == (None, None, None)
    assert gpus(one.room.width) == 16
    assert one.fair == "0%"


def test_fair_share_on_nominal_shares_the_height():
    assert drawn(16, 16, 16, 32, pending=10).shared
    assert drawn(16, 16.6, 16, 32).shared
    assert not drawn(16, 17, 16, 32).shared


def test_potential_is_drawn_only_above_fair_share():
    assert gpus(drawn(12, 12, 16, 40, potential=28).potential) == 28
    assert drawn(12, 12, 16, 40, potential=12).potential is None
    assert drawn(12, 12, 16, 40).potential is None


def test_small_fill_is_at_least_three_pixels_wide():
    one = drawn(0.1, 1.5, 1, 2, pending=1)
    svg = render_to_string("components/bar.html", {"bar": one, "axis": AXIS})
    assert 'class="bar-own" x="0%" y="10" width="3"' in svg


def test_over_the_limit_is_framed_and_said():
    one = drawn(26, 18, 16, 20)
    assert ends(one.over) == (20, 26)
    assert ends(one.borrowed) == (16, 26)
    assert one.note == "6 over the limit"
    assert one.is_over


def test_no_limit_gives_room_to_the_end_and_no_bracket():
    one = drawn(24, 24, 16, None, pending=6)
    assert one.room.width == "100%"
    assert one.limit is None
    assert ends(one.pending) == (24, 30)


def test_label_names_every_number():
    assert drawn(12, 17, 12, 24, pending=8).label == (
        "alignment: 12 allocated, fair share 17, nominal 12, limit 24, 8 pending"
    )


def test_inner_queue_hatch_leaves_out_what_children_may_not_ask():
    one = drawn(34, 34, 32, 56, pending=28, demand=54)
    assert ends(one.pending) == (34, 54)
    assert one.note == ""


def test_note_at_the_far_end_is_shortened():
    assert drawn(40, 40, 40, 48, pending=16).note == "+8"


def test_note_that_begins_far_left_has_room_in_a_narrow_bar():
    notes = [drawn(8, 6, 4, limit, pending=40) for limit in (16, 32)]
    assert [one.is_note_early for one in notes] == [True, False]


@pytest.mark.parametrize(
    ("limit", "end", "ticks"), [(96, 96, 7), (56, 60, 6), (6, 6, 7), (7, 8, 5), (620, 640, 6)]
)
def test_axis_ends_at_the_largest_limit_rounded_up_to_a_tick(limit, end, ticks):
    made = axis([figures(1, 1, 1, limit), figures(0, 0, 0, 2)])
    assert made.end == end * G
    assert len(made.ticks) == ticks


def test_axis_without_queues_still_has_a_length():
    assert axis([]).end == G
