"""The parameters that adapt, as they are declared."""

import pytest

from scheduling.services.adapting.judging import Told
from scheduling.services.adapting.parameters import BY_NAME, MOVING, PARAMETERS, parameter_of
from scheduling.services.adapting.words import change, difference
from scheduling.services.errors import ServiceError
from scheduling.services.policy.knobs import BY_FIELD

DAY_S, HOUR_S = 86400, 3600


@pytest.mark.parametrize("one", MOVING, ids=lambda one: one.name)
def test_bounds_lie_within_those_of_the_policy(one):
    knob = BY_FIELD[one.field]
    if one.choices:
        assert set(one.choices) == set(knob.choices)
    else:
        assert knob.least <= one.least < one.most <= knob.most
        assert one.least <= one.shipped <= one.most
        assert one.step > 0


def test_names_are_told_once():
    assert len(BY_NAME) == len(PARAMETERS) == 5


@pytest.mark.parametrize(
    ("name", "now", "beside"),
    [
        ("half_life", 7 * DAY_S, (6 * DAY_S, 8 * DAY_S)),
        ("half_life", 2 * DAY_S, (3 * DAY_S,)),
        ("half_life", 14 * DAY_S, (13 * DAY_S,)),
        ("half_life", 30 * DAY_S, (14 * DAY_S,)),
        ("half_life", HOUR_S, (2 * DAY_S,)),
        ("charge", 0, (HOUR_S // 2,)),
        ("packing", "pack", ("spread",)),
        ("packing", "spread", ("pack",)),
    ],
)
def test_step_goes_one_way_or_the_other_and_never_out_of_bounds(name, now, beside):
    assert BY_NAME[name].beside(now) == beside


def test_what_has_no_field_says_why_and_is_no_door():
    stands = BY_NAME["backfill"]
    assert stands.told(None) == "P90"
    assert stands.meaning.startswith("Fixed")
    with pytest.raises(ServiceError) as caught:
        parameter_of("backfill")
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("name", "before", "after", "told"),
    [
        ("half_life", 7 * DAY_S, 8 * DAY_S, "Half-life of use 7 → 8 d"),
        ("charge", HOUR_S, HOUR_S * 3 // 2, "Charge of a start 1 → 1.5 h"),
        ("packing", "pack", "spread", "Packing against spread pack → spread"),
    ],
)
def test_change_reads_with_its_unit(name, before, after, told):
    assert change(BY_NAME[name], before, after) == told


@pytest.mark.parametrize(
    ("key", "mean", "half", "told"),
    [
        ("avg_wait_s", -126.0, 60.0, "−2.1 ± 1.0 min"),
        ("worst_queue_s", 30.0, 6.0, "+0.5 ± 0.1 min"),
        ("evictions", 0.0, 0.0, "0 ± 0.0"),
        ("lost_gpu_hours", 1.25, 0.5, "+1.2 ± 0.5 GPU-hours"),
    ],
)
def test_difference_has_its_sign_and_its_unit(key, mean, half, told):
    assert difference(key, Told(0.0, mean, half, "noise")) == told
