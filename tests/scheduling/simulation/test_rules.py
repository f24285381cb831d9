"""The rivals' rules, each on a case worked out by hand, and against figures of others where traces are."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from django.conf import settings

from scheduling.simulation.replications import interval
from scheduling.simulation.traces import Trace, read_trace
from workshop.compare.replays import POLICIES, replay
from workshop.rivals.backfill import replay_backfill
from workshop.rivals.costs import Costs
from workshop.rivals.preemptive import Preemption, Rank, replay_preemptive
from workshop.rivals.qssf import noised
from workshop.rivals.registry import RULES, replay_rule
from workshop.simulator.replay import TooLargeError
from workshop.simulator.result import Replay
from workshop.simulator.ties import TIGHT_NODES

from .conftest import make_trace

FREE = Costs(restart_s=0)


def run(name: str, *jobs: tuple[int, int, int], nodes: int = 1, costs: Costs = FREE) -> Replay:
    """Jobs as (submit second, run time, GPUs) of one queue on nodes of 8 GPUs."""
    return replay_rule(make_trace(*((*job, "a") for job in jobs)), RULES[name], nodes, costs)


# Eight GPUs. At 0 six are taken until 100. At 1 the head asks for all eight: it can start at 100. Two GPUs
# are free meanwhile: who ends by 100 may have them, who ends later may not.
HEAD_OF_ALL = [(0, 100, 6), (1, 50, 8)]
# As above, but the head asks for six: at 100 two are left over beside it, so who ends later may have two.
HEAD_OF_SIX = [(0, 100, 6), (1, 50, 6)]


@pytest.mark.parametrize(
    ("jobs", "starts"),
    [
        ([*HEAD_OF_ALL, (2, 98, 2)], [0, 100, 2]),
        ([*HEAD_OF_ALL, (2, 99, 2)], [0, 100, 150]),
        ([*HEAD_OF_ALL, (2, 200, 2), (3, 40, 2)], [0, 100, 150, 3]),
        ([*HEAD_OF_SIX, (2, 900, 2)], [0, 100, 2]),
        ([*HEAD_OF_SIX, (2, 900, 1), (3, 900, 2), (3, 900, 1)], [0, 100, 2, 150, 3]),
    ],
    ids=["ends by then", "ends a second later", "shorter one behind", "spare beside", "spare once"],
)
def test_easy_lets_nobody_delay_the_first_in_line(jobs: list, starts: list[int]) -> None:
    assert run("easy", *jobs).start_s.tolist() == starts


def test_conservative_reserves_for_all_and_easy_for_the_first() -> None:
    # Second and third hold four GPUs each from 100 on. The last asks for two over 250 s: two are free at 3,
    # and the second starts at 100 all the same, but the third would have to wait for it until 150.
    jobs = [(0, 100, 6), (1, 50, 4), (2, 200, 4), (3, 250, 2)]

    assert run("easy", *jobs).start_s.tolist() == [0, 100, 150, 3]
    assert run("conservative", *jobs).start_s.tolist() == [0, 100, 100, 150]


def test_conservative_moves_everybody_up_when_work_ends_early() -> None:
    trace = make_trace((0, 10, 8, "a"), (1, 10, 8, "a"), (2, 5, 8, "a"))
    asked = replace(trace, asked_s=np.array([1000, 1000, 5]))

    assert replay_rule(asked, RULES["conservative"], 1).start_s.tolist() == [0, 10, 20]


def test_backfilling_goes_by_requested_time_and_not_by_the_real_one() -> None:
    trace = make_trace((0, 100, 6, "a"), (1, 50, 8, "a"), (2, 10, 2, "a"))

    asks_much = replace(trace, asked_s=np.array([100, 50, 500]))

    assert replay_rule(trace, RULES["easy"], 1).start_s.tolist() == [0, 100, 2]
    assert replay_rule(asks_much, RULES["easy"], 1).start_s.tolist() == [0, 100, 150]
    assert replay_rule(trace, RULES["easy"], 1, Costs(asked_factor=50)).start_s[2] == 2


def test_srtf_evicts_who_has_more_left_and_only_then() -> None:
    found = run("srtf", (0, 100, 8), (90, 20, 8), (95, 2, 8))

    # At 90 the first has 10 left and stays; the two seconds of the third come before them at 95.
    assert found.end_s.tolist() == [102, 122, 97]
    assert found.evictions.tolist() == [1, 0, 0]


def test_eviction_costs_work_since_the_checkpoint_and_a_restart() -> None:
    found = run("srtf", (0, 100, 8), (35, 5, 8), costs=Costs(checkpoint_s=10, restart_s=7))

    # Of 35 s thirty are kept; back at 40, useful from 47 on, 70 s more.
    assert found.end_s.tolist() == [117, 40]
    assert found.lost_gpu_s.tolist() == [8 * 12, 0]


def test_tiresias_puts_who_has_received_much_behind() -> None:
    rule = Preemption(Rank.ATTAINED, every_s=10, threshold_gpu_s=400)
    trace = make_trace((0, 100, 8, "a"), (5, 30, 8, "a"), (6, 10, 8, "a"))

    found = replay_preemptive(trace, 1, rule, FREE)

    # At 60 the first has 480 GPU-s; the other two go by arrival, each below 400 till its end.
    assert found.start_s.tolist() == [0, 60, 90]
    assert found.end_s.tolist() == [140, 90, 100]
    assert found.evictions.tolist() == [1, 0, 0]


def test_tiresias_counts_lost_work_as_received() -> None:
    rule = Preemption(Rank.ATTAINED, every_s=10, threshold_gpu_s=400)
    trace = make_trace((0, 1000, 8, "a"), (5, 600, 8, "a"))

    found = replay_preemptive(trace, 1, rule, Costs(checkpoint_s=300, restart_s=0))

    assert found.evictions.max() <= 2


def test_gittins_prefers_who_is_likely_to_end_soon() -> None:
    # Three short and three long of one GPU end first; then a fresh one with two GPUs, whose class is unknown
    # but whose queue is short-lived, goes before an old long one.
    known = [(i, 10, 8) for i in range(0, 60, 10)]
    found = run("gittins", *known, (100, 5000, 8), (400, 10, 8))

    assert found.start_s[7] == 420
    assert found.evictions[6] == 1


def test_predicted_takes_the_median_of_its_class_and_an_hour_for_strangers() -> None:
    short = [(i * 100, 50, 4, "short") for i in range(4)]
    long = [(i * 100, 90, 4, "long") for i in range(4)]
    rest = [(1000, 100, 8, "short"), (1001, 90, 4, "long"), (1002, 50, 4, "short")]
    trace = make_trace(*sorted(short + long), *rest)

    found = replay_rule(trace, RULES["predicted"], 1)

    assert found.start_s[-3:].tolist() == [1000, 1100, 1100]
    assert replay_rule(trace, RULES["predicted"], 1).end_s.tolist() == found.end_s.tolist()


def test_qssf_error_has_the_shares_that_were_published() -> None:
    error = np.abs(noised(np.full(40_000, 1e6), 3) / 1e6 - 1)

    shares = [float((error <= most).mean()) for most in (0.1, 0.5, 1.0, 10.0, 100.0)]
    assert shares == pytest.approx([0.1, 0.5, 0.7, 0.9, 1.0], abs=0.01)


def test_native_gang_holds_gpus_while_it_is_not_whole() -> None:
    # Two nodes. A gang of two whole nodes gets one; the other is held until 100. Two GPUs that come
    # later find no room although eight do nothing.
    found = run("native", (0, 100, 8), (1, 10, 16), (2, 10, 2), nodes=2)

    assert found.start_s.tolist() == [0, 100, 110]
    assert found.lost_gpu_s.tolist() == [0, 8 * 99, 0]


def test_native_spreads_to_the_freest_node_so_that_whole_nodes_are_broken() -> None:
    # Two small ones on two nodes: who needs a whole node waits for the sooner to end.
    jobs = [(0, 50, 1), (0, 90, 1), (1, 10, 8)]

    assert run("native", *jobs, nodes=2).start_s.tolist() == [0, 0, 50]
    assert run("fifo", *jobs, nodes=2).start_s.tolist() == [0, 0, 1]


def test_native_backoff_keeps_a_pod_away_although_gpus_are_free() -> None:
    # It fails at 1, 2 … as others end: 1, 2, 4, 8 s away. It failed last at 20 (fourth time), so it is away
    # until 28 although all is free at 21.
    ends = [(0, end, 1) for end in (2, 5, 20, 21)]

    found = run("native", *ends, (0, 100, 4), (1, 10, 8))

    assert found.start_s[-1] == 100
    assert run("native", *ends[:3], (0, 21, 5), (1, 10, 8)).start_s[-1] == 28


def test_native_gangs_that_lock_each_other_give_up_after_ten_minutes() -> None:
    # Both get one node of two and wait for the other's; the first gives up at 600, then both do at once.
    found = run("native", (0, 10, 16), (0, 10, 16), nodes=2)

    assert found.evictions.sum() == 0
    interleaved = run("native", (0, 50, 8), (0, 60, 8), (1, 10, 16), (2, 10, 16), nodes=2)
    assert interleaved.end_s.max() < 2_000


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "weir"])
def test_every_rival_ends_all_work_and_never_oversubscribes(name: str) -> None:
    dice = np.random.default_rng(5)
    submit = np.sort(dice.integers(0, 40_000, 400)).tolist()
    rows = zip(
        submit,
        (np.exp(dice.normal(6, 1.5, 400)).astype(int) + 1).tolist(),
        dice.choice([1, 1, 2, 4, 8, 16], 400).tolist(),
        dice.choice(["a", "b"], 400).tolist(),
        strict=True,
    )
    trace = replace(make_trace(*rows), queue_nodes={"a": 2, "b": 2})

    found = replay(trace, name, 3)

    assert (found.wait_s >= 0).all()
    assert (found.start_s >= trace.submit_s).all()
    assert (found.lost_gpu_s >= 0).all()
    again = replay(trace, name, 3)
    assert again.end_s.tobytes() == found.end_s.tobytes()
    if not found.evictions.any():
        assert most_at_once(found) <= 24
    with pytest.raises(TooLargeError, match="replay it on more nodes"):
        replay(trace, name, 1)


def most_at_once(found: Replay) -> int:
    at = np.concatenate([found.end_s, found.start_s])
    change = np.concatenate([-found.gpus, found.gpus])
    order = np.lexsort((change, at))
    return int(np.cumsum(change[order]).max())


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_every_rule_has_a_sentence_and_a_source(rule) -> None:
    assert rule.sentence.endswith(".")
    assert rule.source


# Of others on the same work (pooled: one queue on 72 nodes): average completion time in s, tolerance.
FIGURES = [
    ("srtf", 72, 12_788, 0.005),
    ("tiresias", 72, 19_943, 0.02),
    ("predicted", 72, 14_930, 0.02),
    ("sjf-skip", 72, 14_014, 0.0005),
    ("fifo-skip", 72, 19_238, 0.0005),
    ("tiresias", None, 35_987, 0.005),
    # Each queue alone: what shares among queues comes down to FIFO that skips.
    ("kueue", None, 49_052.69, 1e-6),
    ("kai", None, 49_052.69, 1e-6),
]


@pytest.mark.parametrize(("name", "nodes", "figure", "tolerance"), FIGURES)
def test_rival_on_philly_is_near_the_figure_of_others(
    busy_months: Trace, name: str, nodes: int | None, figure: float, tolerance: float
) -> None:
    where = TIGHT_NODES if nodes is None else nodes

    found = replay_rule(busy_months, RULES[name], where)

    assert float(found.jct_s.mean()) == pytest.approx(figure, rel=tolerance)


@pytest.fixture(scope="module")
def lublin() -> list[Trace]:
    """The ten windows of 1,024 jobs that RLScheduler's comparison draws with its seed 1."""
    file = Path(settings.WEIR_TRACES) / "swf" / "lublin_256.swf.gz"
    if not file.exists():
        pytest.skip(f"no Lublin trace in WEIR_TRACES ({settings.WEIR_TRACES})")
    whole = replace(read_trace(file), gpus_per_node=256)
    dice = gym_dice(1)
    begins = [dice.randint(1024, len(whole) - 1024 - 1) for _ in range(10)]
    return [whole.take(np.arange(begin, begin + 1024)) for begin in begins]


def gym_dice(seed: int) -> np.random.RandomState:
    """As OpenAI Gym of that time seeds: by the first eight bytes of the sha512 of the seed's digits."""
    words = np.frombuffer(hashlib.sha512(str(seed).encode()).digest()[:8], dtype="<u4")
    return np.random.RandomState(words)


def bounded_slowdown(found: Replay) -> float:
    """Mean of completion over run time, runs below 10 s counted as 10, at least 1."""
    return float(np.maximum(1, found.jct_s / np.maximum(found.duration_s, 10)).mean())


def test_fifo_on_lublin_has_the_bounded_slowdown_that_rlscheduler_published(lublin) -> None:
    found = [bounded_slowdown(replay_rule(part, RULES["fifo"], 1)) for part in lublin]

    assert round(float(np.mean(found)), 1) == 7_273.8


def test_easy_without_spare_gpus_has_the_bounded_slowdown_that_rlscheduler_published(
    lublin,
) -> None:
    found = [
        bounded_slowdown(replay_backfill(part, 1, False, FREE, spare=False)) for part in lublin
    ]

    assert float(np.mean(found)) == pytest.approx(235.8, rel=0.005)


def test_qssf_of_helios_lies_inside_the_interval_of_our_draws(busy_months: Trace) -> None:
    found = interval(
        [
            float(replay_rule(busy_months, RULES["qssf"], TIGHT_NODES, Costs(seed=s)).jct_s.mean())
            for s in range(12)
        ]
    )

    assert found.low < 40_014 < found.high
