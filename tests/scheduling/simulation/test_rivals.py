from __future__ import annotations

import pytest

from workshop.rivals.queues import Rival, replay_pooled, replay_static, starts
from workshop.simulator.replay import TooLargeError
from workshop.simulator.result import jain_index, metrics
from workshop.simulator.ties import TIGHT_NODES

from .conftest import make_trace

# One node of 8: a long job holds 6 GPUs, the head asks for 4, two behind it would fit beside.
BLOCKED = make_trace((0, 100, 6, "a"), (1, 50, 4, "a"), (2, 30, 2, "a"), (3, 10, 2, "a"))


@pytest.mark.parametrize(
    ("rival", "expected"),
    [
        (Rival.FIFO, [0, 100, 100, 100]),
        (Rival.FIFO_SKIP, [0, 100, 2, 32]),
        (Rival.SJF, [0, 100, 2, 32]),
        (Rival.SJF_SKIP, [0, 100, 2, 32]),
    ],
)
def test_order_of_starts_follows_the_rival(rival: Rival, expected: list[int]) -> None:
    assert starts(BLOCKED, rival, 1).tolist() == expected


def test_sjf_strict_waits_for_the_shortest_even_if_another_fits() -> None:
    trace = make_trace((0, 100, 6, "a"), (1, 10, 4, "a"), (2, 50, 2, "a"))

    assert starts(trace, Rival.SJF, 1).tolist() == [0, 100, 100]
    assert starts(trace, Rival.SJF_SKIP, 1).tolist() == [0, 100, 2]


def test_gpus_that_end_at_an_instant_are_free_for_arrivals_of_that_instant() -> None:
    trace = make_trace((0, 10, 8, "a"), (10, 5, 8, "a"))

    assert starts(trace, Rival.FIFO, 1).tolist() == [0, 10]


def test_equal_keys_keep_arrival_order() -> None:
    trace = make_trace((0, 9, 8, "a"), (1, 5, 8, "a"), (2, 5, 8, "a"), (3, 5, 8, "a"))

    assert starts(trace, Rival.SJF, 1).tolist() == [0, 9, 14, 19]


def test_small_jobs_fill_the_fullest_node_so_that_whole_nodes_stay_free() -> None:
    trace = make_trace((0, 9, 3, "a"), (0, 9, 4, "a"), (0, 9, 8, "a"))

    assert starts(trace, Rival.FIFO, 2).tolist() == [0, 0, 0]


def test_job_wider_than_a_node_takes_whole_nodes_and_the_rest_of_another() -> None:
    trace = make_trace((0, 9, 2, "a"), (0, 9, 12, "a"), (0, 9, 2, "a"), (0, 9, 1, "a"))

    assert starts(trace, Rival.FIFO, 2).tolist() == [0, 0, 0, 9]


def test_job_larger_than_its_nodes_is_refused_with_a_remedy() -> None:
    with pytest.raises(TooLargeError, match="asks for 9 GPUs, its 1 nodes have 8"):
        replay_pooled(make_trace((0, 9, 9, "a")), Rival.FIFO, 1)


def test_static_queues_do_not_share_and_pooled_ones_do() -> None:
    trace = make_trace((0, 10, 8, "a"), (0, 10, 8, "a"), (5, 10, 8, "b"))

    assert replay_static(trace, Rival.FIFO, {"a": 1, "b": 1}).start_s.tolist() == [0, 10, 5]
    assert replay_pooled(trace, Rival.FIFO, 2).start_s.tolist() == [0, 0, 10]


def test_metrics_of_a_hand_computed_replay() -> None:
    trace = make_trace((0, 10, 8, "a"), (0, 10, 8, "a"), (5, 10, 8, "b"))
    static = replay_static(trace, Rival.FIFO, {"a": 1, "b": 1})
    pooled = replay_pooled(trace, Rival.FIFO, 2)

    figures = metrics(pooled, static)

    assert (figures.avg_wait_s, figures.p50_wait_s, figures.avg_jct_s) == (5 / 3, 0, 35 / 3)
    assert figures.utilization == 240 / (16 * 20)
    assert figures.fairness.worst_queue == "b"
    assert figures.fairness.worst_queue_ratio == 1.5
    assert figures.fairness.unfair_pct == 0  # 5 s late is below the 60 s that count
    assert figures.fairness.jain == pytest.approx((1 + 2 / 3) ** 2 / (2 * (1 + 4 / 9)))


def test_jain_index_of_equal_parts_is_one_and_of_one_winner_one_nth() -> None:
    import numpy as np

    assert jain_index(np.array([2.0, 2.0, 2.0])) == 1
    assert jain_index(np.array([5.0, 0.0, 0.0, 0.0])) == 0.25


@pytest.mark.parametrize(
    ("rival", "average_jct_s"),
    [
        (Rival.FIFO, 168_591.00),
        (Rival.FIFO_SKIP, 49_052.69),
        (Rival.SJF, 29_265.75),
        (Rival.SJF_SKIP, 28_228.12),
    ],
)
def test_static_philly_is_the_published_figure_to_the_digit(
    busy_months, rival: Rival, average_jct_s: float
) -> None:
    replay = replay_static(busy_months, rival, TIGHT_NODES)

    assert round(float(replay.jct_s.mean()), 2) == average_jct_s


def test_pooled_philly_is_the_published_figure_to_the_digit(busy_months) -> None:
    strict = replay_pooled(busy_months, Rival.FIFO, 91)
    skip = metrics(
        replay_pooled(busy_months, Rival.FIFO_SKIP, 72),
        replay_static(busy_months, Rival.FIFO_SKIP, TIGHT_NODES),
    )

    assert round(float(strict.jct_s.mean()), 2) == 13_761.02
    assert (round(skip.avg_wait_s), round(skip.p99_wait_s)) == (7_758, 87_211)
    assert round(skip.fairness.worst_queue_ratio, 2) == 2.46
    assert round(skip.fairness.unfair_pct, 1) == 13.3
    assert round(skip.fairness.jain, 3) == 0.911
