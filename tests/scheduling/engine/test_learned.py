"""The learned order: a score over named features, inside what sharing by merit allows."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.engine import Action, Snapshot, plan
from scheduling.engine.document import parse
from scheduling.engine.features import FEATURES, NAMES, vector
from scheduling.engine.model import Sharing, SnapshotError
from tests.scheduling.engine.evolve import check_plan
from tests.scheduling.engine.worlds import worlds

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)
HANDWRITTEN = {
    Sharing.PROMISE: {"expected_rest": -1.0, "size": -1.0},
    Sharing.THROUGHPUT: {"expected_rest": -1.0, "size": -0.25},
}


def two(weights: dict[str, float], *, sharing: str = "throughput", **second: Any) -> Snapshot:
    """``first`` and ``second`` wait for all eight GPUs; the first is longer and has waited longer."""
    work = {"queue": "a", "priority_class": "train", "gpu_classes": ["h100"], "gpus": 8}
    return parse(
        {
            "now": NOW,
            "policy": {"sharing": sharing, "order_weights": weights},
            "gpu_classes": [{"name": "h100"}],
            "priority_classes": [{"name": "train"}, {"name": "urgent", "value": 9}],
            "nodes": [{"name": "n1", "gpu_class": "h100", "gpus": 8}],
            "queues": [
                {"name": q, "played_along": True, "quotas": {"h100": {"nominal": 4}}} for q in "ab"
            ],
            "workloads": [
                {**work, "name": "first", "rank_s": 7200, "submitted": NOW - timedelta(hours=5)},
                {**work, "name": "second", "rank_s": 60, "submitted": NOW - timedelta(hours=1)}
                | second,
            ],
        }
    )


def started(world: Snapshot) -> list[str]:
    return [d.workload for d in plan(world).decisions if d.action is Action.ADMIT]


@pytest.mark.parametrize(
    ("weights", "second", "goes_first"),
    [
        ({}, {}, "second"),
        ({"expected_rest": -1.0}, {}, "second"),
        ({"expected_rest": 1.0}, {}, "first"),
        ({"waited": 1.0}, {}, "first"),
        ({"waited": -1.0}, {}, "second"),
        ({"size": 1.0}, {"gpus": 4}, "first"),
        ({"size": -1.0}, {"gpus": 4}, "second"),
        ({"behind": 1.0}, {"virtual_start": NOW - timedelta(minutes=30)}, "second"),
        ({"behind": -1.0}, {"virtual_start": NOW - timedelta(minutes=30)}, "first"),
        ({"fits_node": 1.0}, {"members": {"min": 2, "max": 2}, "gpus": 5}, "first"),
        ({"saved": 1.0}, {"saved_s": 600}, "second"),
        ({"evicted": 1.0}, {"evictions": 1}, "second"),
        ({"evicted": -1.0}, {"evictions": 1}, "first"),
    ],
)
def test_a_weight_decides_who_goes_first(
    weights: dict[str, float], second: dict[str, Any], goes_first: str
) -> None:
    assert started(two(weights, **second))[:1] == [goes_first]


def test_priority_goes_before_the_score() -> None:
    assert started(two({"waited": 1.0}, priority_class="urgent")) == ["second"]


def test_who_is_due_goes_before_the_score_under_promise() -> None:
    due = {"virtual_start": NOW - timedelta(minutes=50)}

    assert started(two({"waited": 1.0}, sharing="promise", **due)) == ["second"]


def test_weights_change_nothing_where_shares_are_by_weight() -> None:
    weighed, plain = (two(w, sharing="fair_share") for w in ({"waited": -1.0}, {}))

    assert plan(weighed) == plan(plain)


@st.composite
def by_merit(draw: st.DrawFn) -> Snapshot:
    """A world that shares by promise or throughput, and knows what to expect of all work."""
    world = draw(worlds())
    expected = st.sampled_from([60.0, 3600.0, 200_000.0])
    works = tuple(replace(work, rank_s=draw(expected)) for work in world.workloads)
    sharing = draw(st.sampled_from(list(HANDWRITTEN)))
    return replace(world, workloads=works, policy=replace(world.policy, sharing=sharing))


@pytest.mark.long
@given(by_merit())
def test_the_hand_written_order_as_weights_plans_what_no_weights_plan(world: Snapshot) -> None:
    weights = HANDWRITTEN[world.policy.sharing]
    weighed = replace(world, policy=replace(world.policy, order_weights=weights))

    assert plan(weighed) == plan(world)


@pytest.mark.long
@given(by_merit(), st.fixed_dictionaries({name: st.floats(-5, 5) for name in NAMES}))
def test_any_weights_keep_the_laws(world: Snapshot, weights: dict[str, float]) -> None:
    weighed = replace(world, policy=replace(world.policy, order_weights=weights))

    check_plan(weighed, plan(weighed))


def test_an_unknown_feature_is_refused_with_those_there_are() -> None:
    with pytest.raises(SnapshotError) as refused:
        two({"luck": 1.0})

    assert "order_weights.luck" in str(refused.value)
    assert "expected_rest" in str(refused.value)


def test_a_weight_past_its_bound_is_refused() -> None:
    with pytest.raises(SnapshotError):
        two({"size": 101.0})


def test_every_feature_has_a_name_of_its_own_a_unit_and_a_sentence() -> None:
    assert len(set(NAMES)) == len(FEATURES)
    assert all(f.unit and f.sentence.endswith(".") for f in FEATURES)


def test_no_weights_are_no_vector() -> None:
    assert vector({}) == []
    assert asdict(two({}).policy)["order_weights"] == {}
