from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.display.bar_labels import CHARACTER_PX, WIDTHS_PX, labels
from portal.display.entitlement import Figures, axis

VISION = Figures(30_000, 44_000, 36_000, 56_000, 44_000, pending=14_000, potential=48_000)


def spans(row, width):
    for label in row:
        half = (len(label.word) + len(label.amount) + 1) * CHARACTER_PX / 2
        middle = float(label.x.rstrip("%")) / 100 * WIDTHS_PX[width]
        yield middle - half, middle + half


def test_wide_bar_names_every_mark():
    made = labels(VISION, axis([VISION]))
    assert [label.word for label in made.above] == ["fair share now", "potential"]
    assert [label.word for label in made.below] == ["allocated", "nominal", "demand", "limit"]


def test_narrow_bar_drops_what_finds_no_place():
    made = labels(VISION, axis([VISION]), width="narrow")
    assert [label.word for label in made.below][:2] == ["allocated", "nominal"]


amount = st.integers(0, 64_000)
figures = st.builds(
    Figures,
    allocated=amount,
    fair_share=amount,
    nominal=amount,
    limit=st.none() | amount,
    demand=amount,
    pending=amount,
    potential=amount,
)


@given(figures, st.sampled_from(sorted(WIDTHS_PX)))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_labels_never_meet_and_never_leave_the_bar(one, width):
    made = labels(one, axis([one]), width=width)
    for row in (made.above, made.below):
        placed = list(spans(row, width))
        assert all(left >= -0.1 and right <= WIDTHS_PX[width] + 0.1 for left, right in placed)
        assert all(a[1] < b[0] for a, b in pairwise(placed))
