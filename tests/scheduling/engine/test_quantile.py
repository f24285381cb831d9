"""The quantile of a predicted run time by which work backfills."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from scheduling.engine import (
    Action,
    GpuClass,
    Node,
    Phase,
    Policy,
    PriorityClass,
    Queue,
    Quota,
    Snapshot,
    Workload,
    plan,
)
from scheduling.engine.model import MILLI, PredictedRunTime
from tests.scheduling.engine.worlds import NOW

SECONDS = st.floats(1.0, 1e6)
QUANTILES = st.floats(0.5, 0.99)
HELD_S = 3600
LATER = timedelta(seconds=1)


@st.composite
def predictions(draw: st.DrawFn) -> PredictedRunTime:
    p50, p90 = sorted((draw(SECONDS), draw(SECONDS)))
    return PredictedRunTime(p50, p90)


@given(predictions())
def test_shipped_quantile_is_the_p90_to_the_last_bit(told: PredictedRunTime) -> None:
    assert told.within(Policy().backfill_quantile) == told.p90


@given(predictions())
def test_half_of_such_runs_are_over_within_the_median(told: PredictedRunTime) -> None:
    assert told.within(0.5) == pytest.approx(told.p50)


@given(predictions(), QUANTILES, QUANTILES)
def test_higher_quantile_is_never_over_sooner(
    told: PredictedRunTime, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    assert told.within(low) <= told.within(high) * (1 + 1e-9)


@pytest.mark.parametrize("quantile", [0.5, 0.9, 0.99])
def test_median_of_nothing_tells_no_shape(quantile: float) -> None:
    assert PredictedRunTime(0, 60).within(quantile) == 60


@given(predictions(), QUANTILES, QUANTILES)
def test_who_passes_a_gang_at_a_quantile_passes_it_at_a_lower_one(
    told: PredictedRunTime, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    assume(passes(told, high))

    assert passes(told, low)


def passes(told: PredictedRunTime, quantile: float) -> bool:
    """Whether work of 4 GPUs starts before a gang that waits for a node, of which half is held for an hour,
    by every quantile."""
    asks = {"queue": "team", "priority_class": "train", "submitted": NOW}
    held = Workload(
        "held", **asks, gpus=4 * MILLI, phase=Phase.RUNNING, started=NOW, gpu_class="h100",
        placement={"n1": 1}, predicted=PredictedRunTime(HELD_S, HELD_S),
    )  # fmt: skip
    gang = Workload("gang", **asks, gpus=8 * MILLI)
    small = replace(gang, name="small", submitted=NOW + LATER, gpus=MILLI, predicted=told)
    decided = plan(
        Snapshot(
            now=NOW + LATER,
            gpu_classes=(GpuClass("h100"),),
            nodes=(Node("n1", "h100", 8 * MILLI),),
            queues=(Queue("team", quotas={"h100": Quota(8 * MILLI)}),),
            priority_classes=(PriorityClass("train"),),
            workloads=(held, gang, small),
            policy=Policy(backfill_quantile=quantile),
        )
    )
    return any(d.workload == "small" and d.action is Action.ADMIT for d in decided.decisions)


@pytest.mark.parametrize(("p90", "is_let"), [(HELD_S - 1, True), (HELD_S, False)])
def test_gang_is_passed_by_what_is_over_in_time(p90: float, is_let: bool) -> None:
    assert passes(PredictedRunTime(60, p90), 0.9) is is_let
