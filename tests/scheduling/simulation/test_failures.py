"""Nodes that break: how often, what becomes of work on them, and that a seed says it all."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from scheduling.engine.model import MILLI, Workload
from scheduling.simulation.run.jobs import Submission
from workshop.compare.failures import outages
from workshop.simulator.options import Outage, SimulatorOptions
from workshop.simulator.replay import EngineRun
from workshop.simulator.simulator import Outcome, simulate

from .conftest import ORIGIN, make_trace
from .fakes import first_come, small_cluster

NODES = [f"node-{number:04}" for number in range(4)]


def one(name: str, duration_s: int, gpus: int = 8, at_s: int = 0) -> Submission:
    work = Workload(
        name=name,
        queue="b",
        user="u",
        priority_class="normal",
        submitted=ORIGIN + timedelta(seconds=at_s),
        gpus=gpus * MILLI,
        gpu_classes=("big",),
    )
    return Submission(work, duration_s, checkpoint_s=100, restart_s=30)


def run(*work: Submission, broken: tuple[Outage, ...]) -> Outcome:
    return simulate(
        small_cluster(), work, plan=first_come, options=SimulatorOptions(outages=broken)
    )


def test_work_on_a_broken_node_goes_on_elsewhere_from_its_checkpoint() -> None:
    found = run(one("a", 1000), broken=(Outage("big0", 250, 9000),))

    (job,) = found.jobs
    # Of 250 s two checkpoints count; 30 s to come back, 800 s to go.
    assert job.end_s == 250 + 30 + 800
    assert [each.start_s for each in job.runs] == [0, 250]
    assert job.workload.placement == {"big1": 1}
    assert job.evictions == 0


def test_work_waits_for_the_repair_where_no_other_node_is_left() -> None:
    broken = tuple(Outage(f"big{i}", 10, 500 + i) for i in range(4))
    # The made-up planner does not ask for a class: the small nodes are taken too.
    small = tuple(Outage(f"small{i}", 0, 10_000) for i in range(4))

    (job,) = run(one("a", 50), broken=(*small, *broken)).jobs

    assert job.runs[1].start_s == 500
    assert job.end_s == 500 + 30 + 50


def test_outage_of_an_idle_node_changes_nothing() -> None:
    quiet = run(one("a", 1000), broken=())
    broken = run(one("a", 1000), broken=(Outage("big3", 250, 300),))

    assert [job.end_s for job in broken.jobs] == [job.end_s for job in quiet.jobs]


def test_rates_are_those_asked_for() -> None:
    hours = 200_000
    drawn = outages(["a"], hours * 3600, 1, mtbf_h=90, repair_h=10)

    down_h = sum(each.up_s - each.down_s for each in drawn) / 3600
    # A cycle is 100 h on average: 2,000 of them, give or take three deviations of 45.
    assert len(drawn) == pytest.approx(2_000, abs=140)
    assert down_h / hours == pytest.approx(0.1, rel=0.1)


def test_one_node_more_changes_no_other_node() -> None:
    few, more = outages(NODES[:2], 10**7, 3), outages(NODES, 10**7, 3)

    assert [each for each in more if each.node in NODES[:2]] == list(few)


@pytest.mark.parametrize("hours", [{"mtbf_h": 0}, {"repair_h": -1}])
def test_hours_that_are_not_above_zero_are_refused(hours: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected hours above 0"):
        outages(NODES, 100, 1, **hours)


def digest(seed: int) -> str:
    """Of a whole life of the shipped engine on four nodes that break often."""
    dice = np.random.default_rng(11)
    rows = zip(
        np.sort(dice.integers(0, 20_000, 60)).tolist(),
        dice.integers(60, 4_000, 60).tolist(),
        dice.choice([1, 2, 4, 8, 16], 60).tolist(),
        dice.choice(["a", "b"], 60).tolist(),
        strict=True,
    )
    trace = replace(make_trace(*rows), queue_nodes={"a": 2, "b": 2})
    broken = outages(NODES, 30_000, seed, mtbf_h=2, repair_h=0.2)
    found = EngineRun(SimulatorOptions(outages=broken)).replay(trace, 4)
    columns = (found.start_s, found.end_s, found.evictions, found.lost_gpu_s)
    return hashlib.sha256(b"".join(column.tobytes() for column in columns)).hexdigest()


def test_same_seed_is_the_same_life_byte_by_byte_and_another_is_not() -> None:
    assert digest(1) == digest(1)
    assert digest(1) != digest(2)
