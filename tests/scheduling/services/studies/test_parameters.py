"""The parameters that adapt, as they are declared."""

import pytest

from scheduling.services.errors import ServiceError
from scheduling.services.queues.knobs import BY_FIELD
from scheduling.services.studies.adapting.judging import FigureChange
from scheduling.services.studies.adapting.parameters import BY_NAME, PARAMETERS, parameter_of
from scheduling.services.studies.adapting.words import change, difference

DAY_S, HOUR_S = 86400, 3600


@pytest.mark.parametrize("one", PARAMETERS, ids=lambda one: one.name)
def test_bounds_lie_within_those_of_the_policy(one):
    knob = BY_FIELD[one.field]
    assert knob.least <= one.least < one.most <= knob.most
    assert one.least <= one.shipped <= one.most
    assert one.step > 0


@pytest.mark.parametrize("one", PARAMETERS, ids=lambda one: one.name)
def test_steps_up_from_the_least_come_back_to_the_same_numbers(one):
    up = [one.least]
    while up[-1] < one.most:
        up.append(one.beside(up[-1])[-1])
    down = [up[-1]]
    while down[-1] > one.least:
        down.append(one.beside(down[-1])[0])
    assert down[::-1] == up
    assert one.shipped in up


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
        ("packing", 0.0, (0.1,)),
        ("packing", 0.3, (0.2, 0.4)),
        ("packing", 1.0, (0.5,)),
        ("backfill", 0.9, (0.85, 0.95)),
        ("backfill", 0.95, (0.9,)),
        ("backfill", 0.5, (0.55,)),
        ("backfill", 0.99, (0.94,)),
    ],
)
def test_step_goes_one_way_or_the_other_and_never_out_of_bounds(name, now, beside):
    assert BY_NAME[name].beside(now) == beside


def test_parameter_that_there_is_not_is_refused_with_those_there_are():
    with pytest.raises(ServiceError) as caught:
        parameter_of("depth")
    assert "backfill" in caught.value.remedy


@pytest.mark.parametrize(
    ("name", "before", "after", "told"),
    [
        ("half_life", 7 * DAY_S, 8 * DAY_S, "Half-life of use 7 → 8 d"),
        ("charge", HOUR_S, HOUR_S * 3 // 2, "Charge of a start 1 → 1.5 h"),
        ("packing", 0.0, 0.1, "Packing against spread 0 → 10 %"),
        ("backfill", 0.9, 0.85, "Quantile for backfill P90 → P85"),
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
    assert difference(key, FigureChange(0.0, mean, half, "noise")) == told
