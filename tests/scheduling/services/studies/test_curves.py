"""How many GPUs an SLO needs, from waits on a ladder: a decision table and its laws."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.models import Study
from scheduling.services.studies.capacity.curves import Curve, Rung, curve_of, needed
from scheduling.services.studies.capacity.ladder import way_of

MIN = 60.0


def ladder(**minutes: list[float]) -> list[Rung]:
    """``g16=[…]``: 16 GPUs and the P90 waits of its replays, in minutes."""
    return [
        Rung(0, float(name[1:]), tuple(MIN * one for one in waits))
        for name, waits in minutes.items()
    ]


FLAT = {"g8": [90] * 5, "g16": [60] * 5, "g24": [20] * 5}
WIDE = {
    "g8": [100, 150, 200, 250, 300], "g16": [20, 50, 70, 90, 130], "g24": [10, 20, 30, 45, 70],
    "g32": [5, 8, 10, 12, 15],
}  # fmt: skip
TORN = {"g8": [90] * 5, "g16": [50] * 5, "g24": [70] * 5, "g32": [40] * 5}


@pytest.mark.parametrize(
    ("name", "waits", "slo_min", "expected"),
    [
        ("the first that holds is needed", FLAT, 60, (16, 16, 16, False)),
        ("the fewest tried hold it", FLAT, 120, (8, 8, 8, False)),
        ("not even the most hold it", FLAT, 10, (None, None, None, False)),
        ("the edges of the band cross before and after", WIDE, 60, (24, 16, 32, False)),
        ("the upper edge never crosses", WIDE, 12, (32, 24, None, False)),
        ("more that do not hold it are told as uneven", TORN, 60, (16, 16, 16, True)),
    ],
)
def test_needed_is_the_fewest_with_which_the_median_holds(name, waits, slo_min, expected):  # type: ignore[no-untyped-def]
    found = needed(ladder(**waits), slo_min * MIN)
    assert (found.gpus, found.low, found.high, found.is_uneven) == expected, name


def test_order_of_the_rungs_does_not_matter() -> None:
    rungs = ladder(**WIDE)
    assert needed(rungs, 3600) == needed(reversed(rungs), 3600)


WAITS = st.lists(st.floats(0, 1e6), min_size=5, max_size=5).map(tuple)
RUNGS = st.dictionaries(st.integers(1, 500), WAITS, min_size=1, max_size=8).map(
    lambda found: [Rung(0, float(gpus), waits) for gpus, waits in found.items()]
)


def at_most(one: float | None, other: float | None) -> bool:
    return other is None or (one is not None and one <= other)


@given(RUNGS, RUNGS, st.floats(0, 1e6))
def test_more_numbers_tried_never_make_needed_larger(
    some: list[Rung], more: list[Rung], slo_s: float
) -> None:
    before, after = needed(some, slo_s), needed([*some, *more], slo_s)
    assert at_most(after.gpus, before.gpus)
    assert at_most(after.low, before.low)
    assert at_most(after.high, before.high)


@given(RUNGS, st.floats(0, 1e6))
def test_needed_lies_between_the_edges_of_its_band(rungs: list[Rung], slo_s: float) -> None:
    found = needed(rungs, slo_s)
    assert at_most(found.low, found.gpus)
    assert at_most(found.gpus, found.high)


@given(RUNGS, st.floats(0, 1e6), st.floats(0, 1e6))
def test_laxer_slo_never_needs_more(rungs: list[Rung], slo_s: float, more_s: float) -> None:
    assert at_most(needed(rungs, slo_s + more_s).gpus, needed(rungs, slo_s).gpus)


def row(*points: tuple[int, int, float]) -> Curve:
    """Of as it is and one node more: (steps, seed, P90 wait)."""
    told = {
        "gpu_class": "a", "installed": 16000, "node_gpus": 8000, "rungs": [[0, 16000], [1, 24000]],
        "recorded_p90_s": None, "workloads": 20,
    }  # fmt: skip
    found: dict[str, dict[int, dict[str, list[float]]]] = defaultdict(dict)
    for nodes, seed, p90_s in points:
        found[way_of("a", nodes)][seed] = {"a": [0, p90_s, 20]}
    return curve_of(told, found, Study(question={"step_gpus": 0}))


def test_replay_that_not_every_number_has_had_is_left_out() -> None:
    curve = row((0, 1, 90), (1, 1, 60), (0, 2, 70))
    assert [rung.p90_s for rung in curve.rungs] == [(90,), (60,)]


def test_curve_is_told_as_it_was_replayed_though_it_rises() -> None:
    curve = row((0, 1, 60), (1, 1, 90))
    assert [rung.median_s for rung in curve.rungs] == [60, 90]


def test_fewer_than_five_replays_tell_no_figure() -> None:
    pairs = [(nodes, seed, 60.0) for seed in range(1, 6) for nodes in (0, 1)]
    assert row(*pairs).is_told
    assert not row(*pairs[:-2]).is_told


def test_nothing_replayed_is_a_curve_without_rungs() -> None:
    curve = row((0, 1, 90))
    assert (curve.rungs, curve.replays, curve.is_told) == ((), 0, False)
