"""The compiled loop lives the life that the simulator spells out."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.engine import MILLI, Action, Members, Policy, Queue, Reason, Role, Workload
from scheduling.simulation.loop.lives import live_submissions
from scheduling.simulation.run.jobs import Submission
from tests.scheduling.engine.odd_worlds import in_parts
from workshop.simulator.options import SimulatorOptions
from workshop.simulator.replay import EngineRun, lived_replay
from workshop.simulator.simulator import simulate

from .conftest import ORIGIN, make_trace
from .fakes import small_cluster

SIZES = [(1, 1), (2, 1), (4, 1), (8, 1), (8, 2), (8, 3)]


@st.composite
def works(draw) -> list[Submission]:
    """Up to 40 jobs of two queues within an hour, in order of submission."""
    count = draw(st.integers(1, 40))
    seconds = sorted(draw(st.lists(st.integers(0, 3600), min_size=count, max_size=count)))
    return [work(draw, number, at) for number, at in enumerate(seconds)]


def work(draw, number: int, at: int) -> Submission:
    gpus, members = draw(st.sampled_from(SIZES))
    more = draw(st.sampled_from([0, 0, 1, 3]))
    workload = Workload(
        name=f"w{number:02}",
        queue=draw(st.sampled_from(["a", "b"])),
        priority_class=draw(st.sampled_from(["normal", "high"])),
        submitted=ORIGIN + timedelta(seconds=at),
        user=draw(st.sampled_from(["u", "v"])),
        gpus=gpus * MILLI,
        members=Members(members, members + more),
        elastic=more > 0 and draw(st.booleans()),
        gpu_classes=draw(st.sampled_from([("big",), ("big", "small"), ()])),
    )
    if draw(st.sampled_from([False, False, True])):
        extra = more if workload.elastic else 0
        head, rest = (Role("head", 1, MILLI), Role("rest", members, 2 * gpus * MILLI, extra=extra))
        workload = in_parts(replace(workload, roles=(head, rest)))
    return Submission(
        workload,
        duration_s=draw(st.integers(1, 4000)),
        checkpoint_s=draw(st.sampled_from([None, 60, 600])),
        restart_s=draw(st.sampled_from([0, 30])),
    )


def fates(jobs) -> list[tuple]:
    return [(j.first_start_s, j.end_s, j.evictions, round(j.held_gpu_s * 1000)) for j in jobs]


def fates_of_life(life) -> list[tuple]:
    def known(seconds: int) -> int | None:
        return None if seconds < 0 else seconds

    rows = zip(life.jobs.first, life.jobs.end, life.jobs.evictions, life.jobs.gpu_s, strict=True)
    return [(known(first), known(end), lost, held) for first, end, lost, held in rows]


@given(
    works(),
    st.sampled_from([0, 30]),
    st.sampled_from([0, 60]),
    st.sampled_from([0, 3]),
    st.sampled_from([None, 1.5]),
)
def test_compiled_loop_lives_the_same_life_as_the_simulator(
    submissions: list[Submission], leave_s: int, cycle_s: int, max_moves: int, cap: float | None
) -> None:
    options = SimulatorOptions(leave_s=leave_s, cycle_s=cycle_s)
    policy = Policy(max_moves=max_moves, cooldown_s=300, eviction_cap=cap)
    cluster = replace(small_cluster(), policy=policy)

    spelled_out = simulate(cluster, submissions, options=options)
    compiled = live_submissions(cluster, submissions, options)

    assert fates_of_life(compiled) == fates(spelled_out.jobs)


def test_preemption_once_a_protection_ends_waits_for_no_other_event() -> None:
    cluster = replace(small_cluster(), queues=(Queue("a"), Queue("b")))
    loans = [Submission(pending(f"loan-{i}", 0, gpus=8), 9000, None) for i in range(3)]
    own = Submission(pending("own", 198, queue="b", gpus=8), 9000, None)
    urgent = replace(pending("urgent", 206, queue="b", gpus=8), priority_class="high")

    life = live_submissions(cluster, [*loans, own, Submission(urgent, 100)])

    assert life.jobs.first[-1] == 198 + 600


def test_life_ends_at_until_with_the_rest_unfinished() -> None:
    cluster = small_cluster()
    jobs = [Submission(pending(f"w{i}", i * 10), 1000) for i in range(5)]

    life = live_submissions(cluster, jobs, SimulatorOptions(until=ORIGIN + timedelta(seconds=25)))

    assert (life.jobs.end == -1).all()
    assert life.jobs.first.tolist() == [0, 10, 20, -1, -1]
    assert life.end_s == 25


def test_ledger_names_each_act_with_its_reason_and_loss() -> None:
    cluster = replace(small_cluster(), policy=Policy())
    loans = [Submission(pending(f"loan-{i}", 0, queue="a", gpus=8), 9000, 600) for i in range(4)]
    owner = Submission(pending("owner", 1000, queue="b", gpus=8), 60)

    acts = list(live_submissions(cluster, [*loans, owner]).acts())

    evicted = [act for act in acts if act.action is Action.EVICT]
    assert [(act.at_s, act.reason, act.gpus) for act in evicted] == [(1000, Reason.RECLAIMED, 8000)]
    assert evicted[0].lost_gpu_s == 8 * (400 + 30)
    assert [a.at_s for a in acts if a.job == 4] == [1000]


def test_tables_grow_with_the_jobs_that_are_open_at_once() -> None:
    jobs = [Submission(pending(f"w{i:03}", 0, gpus=1), 10 + i) for i in range(300)]

    life = live_submissions(small_cluster(), jobs)

    assert (life.jobs.end > 0).all()
    assert life.ledger.used[0] == 300


def test_elastic_gang_takes_what_comes_free_and_ends_the_sooner() -> None:
    gang = replace(pending("gang", 0, gpus=8), members=Members(1, 4), elastic=True)
    others = [Submission(pending(f"w{i}", 0, gpus=8), 100) for i in range(2)]

    life = live_submissions(small_cluster(), [*others, Submission(gang, 200, None)])

    grown = [act for act in life.acts() if act.action is Action.GROW]
    assert [(act.at_s, act.gpus) for act in grown] == [(100, 32_000)]
    # 800 member-seconds: 2 members for 100 s, then 4.
    assert life.jobs.end.tolist() == [100, 100, 250]


def test_who_moves_loses_the_work_since_its_last_checkpoint_and_restarts() -> None:
    cluster = replace(small_cluster(), policy=Policy(max_moves=2))
    ends, halves = [100, 5000, 100, 5000], []
    for i, end in enumerate(ends):
        halves.append(Submission(pending(f"w{i}", i, gpus=4), end, 600, restart_s=30))
    rest = [Submission(pending(f"full{i}", 4 + i, gpus=8), 9000) for i in range(2)]
    wide = Submission(pending("wide", 1000, gpus=8), 60)

    life = live_submissions(cluster, [*halves, *rest, wide])

    [move] = [act for act in life.acts() if act.action is Action.MOVE]
    assert (move.at_s, move.reason, move.gpus) == (1000, Reason.CONSOLIDATES, 4000)
    began = int(life.jobs.first[move.job])
    assert move.lost_gpu_s == 4 * ((1000 - began) - 600 + 30)
    assert life.jobs.end[move.job] == 1000 + 30 + 5000 - 600
    assert life.jobs.first[6] == 1000


def pending(name: str, submit_s: int, *, queue: str = "a", gpus: int = 4) -> Workload:
    at = ORIGIN + timedelta(seconds=submit_s)
    return Workload(name, queue, "normal", at, gpus * MILLI, gpu_classes=("big",))


@pytest.mark.parametrize("checkpoint_s", [None, 600])
def test_trace_in_the_loop_has_the_figures_of_the_simulator(checkpoint_s: int | None) -> None:
    trace = make_trace(
        *((i * 37, 50 + i * 61 % 900, 1 << i % 5, "ab"[i % 3 > 0]) for i in range(80))
    )
    run = EngineRun(checkpoint_s=checkpoint_s)

    lived = lived_replay(trace, run.live(trace, 2), 16)
    told = EngineRun(SimulatorOptions(checked=True), checkpoint_s=checkpoint_s).replay(trace, 2)

    for column in ("start_s", "end_s", "evictions", "lost_gpu_s"):
        assert np.array_equal(getattr(lived, column), getattr(told, column)), column


@pytest.mark.parametrize(
    ("gpus", "user", "plans"),
    [(8, "", 1), (4, "", 2), (8, "v", 2)],
    ids=["like those that wait", "of another size", "of another user, who may go first"],
)
def test_arrival_asks_for_a_plan_unless_its_like_waits(gpus: int, user: str, plans: int) -> None:
    crowd = [Submission(pending(f"w{i}", 0, gpus=8), 100) for i in range(6)]
    late = Submission(replace(pending("late", 10, gpus=gpus), user=user), 100)
    until = SimulatorOptions(until=ORIGIN + timedelta(seconds=20))

    life = live_submissions(small_cluster(), [*crowd, late], until)

    assert life.plans == plans
    assert life.jobs.first[-1] == -1
