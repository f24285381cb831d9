"""Kueue's and KAI's rules on cases of their own tests and others worked out by hand, without priorities."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from workshop.rivals.costs import Costs
from workshop.rivals.kai import divide, replay_kai
from workshop.rivals.kueue import replay_kueue
from workshop.rivals.sharing import Quotas
from workshop.simulator.result import Replay

from .conftest import make_trace

FREE = Costs(restart_s=0)
Jobs = list[tuple[int, int, int, str]]


def replay(
    rival: Callable[..., Replay],
    jobs: Jobs,
    nominal: tuple[int, ...] = (3, 3, 3),
    weights: tuple[float, ...] = (1, 1, 1),
) -> Replay:
    """Jobs as (submit second, run time, GPUs, queue) on one node that has what queues a, b, c deserve."""
    # The last job, of no time and after all others, gives every queue a number.
    late = max(job[0] + job[1] for job in jobs) * 10
    jobs = [*jobs, *((late, 1, 1, queue) for queue in "abc"[: len(nominal)])]
    trace = make_trace(*jobs, per_node=sum(nominal))
    quotas = Quotas(np.array(nominal, np.int64) * 1000, np.array(weights[: len(nominal)], float))
    return rival(trace, 1, FREE, quotas)


def victims(rival: Callable[..., Replay], held: str, newcomer: str, **shares) -> list[str]:
    """``held`` as "b3 b1": GPUs of work in order of its start at second 0; who of it leaves at second 1."""
    work = [(word[0], int(word[1:])) for word in held.split()]
    jobs = [(0, 1000, gpus, queue) for queue, gpus in work]
    found = replay(rival, [*jobs, (1, 10, int(newcomer[1:]), newcomer[0])], **shares)
    left = [f"{q}{g}" for (q, g), times in zip(work, found.evictions, strict=False) if times]
    assert (found.start_s[len(jobs)] == 1) == bool(left)
    return left


# Cluster queues a, b and c of one cohort; nominal quota 3 each, doubled where Kueue's cases have halves.
# From pkg/scheduler/preemption/preemption_fair_test.go; what was started last is asked first.
FAIR_PREEMPTIONS = [
    ("a1 a1 a1 b1 b1 b1 b1 b1 c1", "c1", ["b1"], {}),
    ("a1 a3 b3 b2", "c3", ["a3"], {}),
    ("a1 a1 a1 b1 b1 b1 b1 b1 c1", "a1", ["b1"], {}),
    ("a6 a1 a1 b6 b1 b1", "c4", ["a1", "b1"], {"nominal": (6, 6, 6)}),
    ("a1 a1 a1 b1 b1 b1 c1 c1 c1", "c1", [], {}),
    ("a1 a1 a1 b1 b1 b1 b1 b1", "a2", [], {}),
    ("b9", "a2", ["b9"], {}),
    ("a2 b7", "a5", [], {}),
    ("b3 b2 b2", "a6", [], {}),
    ("b4 b2 b4 c2", "a7", ["b2"], {"nominal": (6, 6, 6)}),
    ("b5 b4 c5 c4", "a7", ["b4", "c4"], {"nominal": (6, 6, 6)}),
    ("a7 b5 c5", "b4", [], {"nominal": (6, 6, 6)}),
    ("b3 b3 c3", "a4", [], {}),
    ("a1 a1 a1 b1 b1 b1 b1 b1 b1", "a2", ["b1", "b1"], {"weights": (2, 1, 1)}),
    ("a1 a1 a1 b1 b1 b1 b1 b1 b1", "a3", ["b1", "b1", "b1"], {"weights": (1, 0, 1)}),
    ("a1 a1 a1 b1 b1 b1", "a1", [], {"nominal": (3, 3), "weights": (1, 0)}),
    ("b1", "a1", ["b1"], {"nominal": (1, 0), "weights": (0, 1)}),
]


@pytest.mark.parametrize(
    ("held", "newcomer", "left", "shares"),
    FAIR_PREEMPTIONS,
    ids=[
        "own quota, from who borrows most",
        "from who borrows less when the last of the most is too small",
        "borrowing, from who borrows more",
        "one of each that borrows",
        "nobody borrows",
        "would turn the imbalance round",
        "huge work when nothing else is there",
        "huge work, but the newcomer is huge as well",
        "two small ones for a huge newcomer",
        "by S2-a before S2-b",
        "by S2-b, one of each queue",
        "and not back again",
        "S2-b takes one of a queue only",
        "weight 2 may borrow twice as much",
        "weight 0 loses all it borrows",
        "weight 0 keeps its own quota",
        "weight 0 takes its own quota back",
    ],
)
def test_kueue_evicts_whom_its_own_tests_say(held, newcomer, left, shares) -> None:
    assert victims(replay_kueue, held, newcomer, **shares) == left


def test_kueue_starts_the_head_that_leaves_its_queue_with_the_least_share() -> None:
    # All nine are free at 10. Heads ask for 9, 5 and 4: c would borrow least, then b.
    held = [(0, 10, 3, "a"), (0, 10, 3, "b"), (0, 10, 3, "c")]
    heads = [(1, 5, 9, "a"), (2, 5, 5, "b"), (3, 5, 4, "c")]

    assert replay(replay_kueue, [*held, *heads]).start_s[3:6].tolist() == [15, 10, 10]


def test_kueue_lets_who_is_behind_start_when_the_head_does_not_fit() -> None:
    jobs = [(0, 100, 3, "a"), (0, 100, 3, "b"), (0, 100, 1, "c"), (1, 5, 3, "c"), (2, 5, 2, "c")]

    assert replay(replay_kueue, jobs).start_s[:5].tolist() == [0, 0, 0, 100, 2]


# Total, deserved, weights, asked for -> fair shares. From resource_division_test.go.
DIVISIONS = [
    (2, [3], [0], [2], [2]),
    (1, [3], [0], [2], [2]),
    (7, [3], [0], [5], [3]),
    (2, [1.5], [0], [2], [1.5]),
    (2, [0], [0], [2], [0]),
    (15, [2, 2], [2, 2], [6, 6], [6, 6]),
    (12, [2, 2], [2, 2], [6, 6], [6, 6]),
    (8, [2, 2], [1, 3], [6, 6], [3, 5]),
    (11, [2, 2], [1, 4], [10, 10], [3, 8]),
    (11, [2, 2], [2, 2], [6, 6], [6, 5]),
    (5, [2, 2, 1], [2, 2, 2], [5, 5, 0], [3, 2, 0]),
]


@pytest.mark.parametrize(("total", "deserved", "weight", "asked", "shares"), DIVISIONS)
def test_kai_divides_as_its_own_tests_say(total, deserved, weight, asked, shares) -> None:
    fair = np.zeros(len(asked))

    divide(total, np.array(deserved, float), np.array(weight, float), np.array(asked), fair)

    assert fair.tolist() == shares


# Deserved 3 each. Fair shares with the newcomer's demand, worked out by hand: the first is a 3, b 4, c 2.
RECLAIMS = [
    ("a1 a1 a1 b1 b1 b1 b1 b1 c1", "c1", ["b1"], {}),
    ("a1 a1 a1 b1 b1 b1 b1 b1 c1", "a1", ["b1"], {}),
    ("a1 a1 a1 b1 b1 b1 b1 b1 c1", "a2", [], {}),
    ("a1 a1 a1 b1 b1 b1 c1 c1 c1", "c1", [], {}),
    ("b9", "a2", ["b9"], {}),
    ("a3 b4 b1 c1", "c2", ["b4"], {}),
    ("a1 a1 a1 b1 b1 b1 b1 b1 b1", "a2", ["b1", "b1"], {"weights": (2, 1, 1)}),
    ("a5 b4", "c3", ["a5"], {}),
]


@pytest.mark.parametrize(
    ("held", "newcomer", "left", "shares"),
    RECLAIMS,
    ids=[
        "inside what it deserves",
        "inside its fair share",
        "beyond its fair share",
        "nobody holds more than it deserves",
        "a gang leaves as a whole",
        "who need not leave is spared",
        "weight 2 gets twice as much of what is left",
        "from the last queue in order",
    ],
)
def test_kai_reclaims_within_the_fair_share(held, newcomer, left, shares) -> None:
    assert victims(replay_kai, held, newcomer, **shares) == left


def test_kai_starts_who_stays_inside_what_it_deserves_before_who_came_first() -> None:
    # All six are free at 10. Work of a would pass the three that a deserves, that of b would not.
    jobs = [(0, 10, 3, "a"), (0, 10, 3, "b"), (1, 5, 4, "a"), (2, 5, 3, "b")]

    found = replay(replay_kai, jobs, nominal=(3, 3), weights=(1, 1))

    assert found.start_s[:4].tolist() == [0, 0, 15, 10]
