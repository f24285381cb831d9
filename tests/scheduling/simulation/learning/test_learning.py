"""Learning an order: windows that are kept apart, a search that repeats itself, a rule of promotion."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from scheduling.engine.model import Sharing
from scheduling.simulation.learning.frozen import read_frozen, write_frozen
from scheduling.simulation.learning.judging import BOUNDS, Order, broken, is_promoted
from scheduling.simulation.learning.search import MOST_GENERATIONS, Training, search
from scheduling.simulation.learning.windows import SharedWindowError, Window, cut, keep_apart, whole
from scheduling.simulation.replications import Difference, Verdict
from scheduling.simulation.traces import Trace

ORIGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
BETTER, NOISE = (Difference(-5.0, 1.0, v) for v in (Verdict.BETTER, Verdict.NOISE))


def trace(file: str = "a.csv", days: int = 4) -> Trace:
    """A job of one GPU and a minute every hour."""
    count = 24 * days
    ones, zeros = np.ones(count, np.int64), np.zeros(count, np.int64)
    return Trace(
        name=file, origin=ORIGIN, submit_s=3600 * np.arange(count), duration_s=60 * ones, gpus=ones,
        queue=zeros, user=zeros, index=np.arange(count), queues=("q",), users=("",), files=(Path(file),),
    )  # fmt: skip


def days(first: int, last: int, file: str = "a.csv") -> Window:
    return cut(f"days {first} to {last}", trace(file), 1, ORIGIN + first * DAY, ORIGIN + last * DAY)


def test_a_window_holds_what_was_submitted_from_its_begin_until_its_end() -> None:
    found = days(1, 3)

    assert len(found.trace) == 48
    assert found.trace.origin == ORIGIN + DAY
    assert (found.trace.submit_s[0], found.trace.submit_s[-1]) == (0, 47 * 3600)


def test_an_empty_window_is_refused() -> None:
    with pytest.raises(ValueError, match="widen the window"):
        days(9, 10)


@pytest.mark.parametrize(
    ("judged", "apart"),
    [
        (days(2, 4), True),
        (days(1, 3), False),
        (days(0, 1), False),
        (days(0, 2, "b.csv"), True),
        (whole("all", trace(), 1), False),
    ],
)
def test_nothing_is_judged_on_what_was_trained_on(judged: Window, apart: bool) -> None:
    if apart:
        keep_apart([days(0, 2)], [judged])
        return
    with pytest.raises(SharedWindowError, match="judge on later work"):
        keep_apart([days(0, 2)], [judged])


def bowl(order: Order) -> float:
    """Least at waited = 1, expected_rest = -2."""
    return (order.weights["waited"] - 1.0) ** 2 + (order.weights["expected_rest"] + 2.0) ** 2


TRAINING = Training(Sharing.THROUGHPUT, ("expected_rest", "waited"), generations=25)


def test_the_search_finds_the_least_cost() -> None:
    found = search(TRAINING, bowl, lambda line: None)

    assert found.cost < 0.05 < found.start_cost
    assert found.weights["waited"] == pytest.approx(1.0, abs=0.2)


def test_the_search_is_the_same_for_the_same_seed() -> None:
    assert search(TRAINING, bowl, lambda line: None) == search(TRAINING, bowl, lambda line: None)


def test_the_search_keeps_the_hand_written_start_where_nothing_is_better() -> None:
    found = search(
        TRAINING,
        lambda o: abs(o.weights["expected_rest"] + 1) + abs(o.weights["waited"]),
        lambda line: None,
    )

    assert found.weights == {"expected_rest": -1.0, "waited": 0.0}


def test_the_search_finds_weights_of_the_order_and_of_victims_together() -> None:
    both = replace(TRAINING, victim_features=("ran", "size"), generations=40)

    def cost(order: Order) -> float:
        victims = order.victim_weights
        return bowl(order) + (victims["ran"] - 0.5) ** 2 + (victims["size"] + 1.0) ** 2

    found = search(both, cost, lambda line: None)

    assert found.cost < 0.1
    assert found.weights["waited"] == pytest.approx(1.0, abs=0.3)
    assert found.victim_weights["size"] == pytest.approx(-1.0, abs=0.3)


def test_victims_alone_are_searched_beside_an_order_that_stays() -> None:
    alone = Training(
        Sharing.THROUGHPUT, (), victim_features=("ran", "evicted"), fixed={"expected_rest": -1.5}
    )

    found = search(alone, lambda o: (o.victim_weights["ran"] - 0.5) ** 2, lambda line: None)

    assert found.weights == {"expected_rest": -1.5}
    assert found.cost < found.start_cost == 0.25


def test_a_search_begins_where_an_eviction_costs_what_the_rule_says() -> None:
    both = replace(TRAINING, victim_features=("ran",))

    assert both.start() == [-1.0, 0.0, 0.0]


def test_the_search_tells_each_generation() -> None:
    heard: list[str] = []
    search(TRAINING, bowl, heard.append)

    assert len(heard) == TRAINING.generations
    assert heard[0].startswith("generation 1 of 25")


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        ({"sharing": Sharing.FAIR_SHARE}, "sharing"),
        ({"features": ("luck", "size")}, "features"),
        ({"features": ("size",)}, "two or more"),
        ({"victim_features": ("waited",)}, "victim_features"),
        ({"fixed": {"luck": 1.0}}, "fixed"),
        ({"generations": MOST_GENERATIONS + 1}, "generations"),
        ({"population": 1}, "population"),
    ],
)
def test_a_search_past_its_bounds_is_refused(wrong: dict[str, object], names: str) -> None:
    given: dict[str, object] = {"sharing": Sharing.PROMISE, "features": ("size", "waited")}
    with pytest.raises(ValueError, match=names):
        Training(**(given | wrong))  # type: ignore[arg-type]


def within() -> dict[str, float]:
    return dict.fromkeys(BOUNDS, 0.0)


@pytest.mark.parametrize(
    ("against", "figures", "promoted"),
    [
        ([BETTER, BETTER], [within()], True),
        ([BETTER, NOISE], [within()], False),
        ([], [within()], False),
        ([BETTER], [within(), within() | {"unfair_pct": 0.9}], False),
    ],
)
def test_promoted_is_who_is_better_everywhere_and_keeps_every_bound(
    against: list[Difference], figures: list[dict[str, float]], promoted: bool
) -> None:
    assert is_promoted(against, figures) is promoted


def test_a_bound_that_is_met_exactly_is_kept() -> None:
    assert broken(dict(BOUNDS)) == []


def test_what_is_written_down_is_read_again(tmp_path: Path) -> None:
    weights = {"weights": {"size": -1.5}, "victim_weights": {"ran": 0.5}}
    write_frozen(
        [{"name": "n", "sharing": "promise", **weights, "made": {"seed": 7}}], tmp_path / "f.json"
    )

    (found,) = read_frozen(tmp_path / "f.json")
    assert (found.order.name, found.order.sharing) == ("n", Sharing.PROMISE)
    assert (found.order.weights, found.made) == ({"size": -1.5}, {"seed": 7})
    assert found.order.victim_weights == {"ran": 0.5}
