"""The organisation behind ``bench cycle``, small."""

from __future__ import annotations

import numpy as np
import pytest

from scheduling.engine import Frame, encode, plan_frame
from scheduling.engine.state.units import GPUS, PENDING, RUNNING
from workshop.benches.engine.large import (
    PHILLY,
    SIZES,
    TRAINING,
    LargeLoad,
    figures,
    fill,
    measure_large,
    organisation,
)
from workshop.simulator.carry_out import carry_out

SMALL = LargeLoad(
    nodes=64, leaves=8, running=100, pending=400, changes=12, rounds=2, odds=PHILLY, questions=3
)


def test_organisation_divides_every_gpu_among_its_leaves() -> None:
    frame = encode(organisation(SMALL))

    nominal = frame.quotas.nominal[:, [frame.queue_names.index(f"leaf{i:04}") for i in range(8)]]
    assert nominal.sum() == 64 * 8_000
    assert sorted(np.bincount(frame.nodes.gpu_class)) == [16, 16, 16, 16]


@pytest.mark.parametrize("odds", [PHILLY, TRAINING])
def test_fill_adds_pending_work_of_the_sizes_asked_for(odds: tuple[float, ...]) -> None:
    frame = encode(organisation(SMALL))
    load = LargeLoad(nodes=64, leaves=8, odds=odds)
    fill(frame, load, 2_000, np.random.default_rng(1))

    slots = np.flatnonzero(frame.work.phase == PENDING)
    gpus = frame.work.need[0, slots] * frame.work.most[slots] / 1000
    wanted = sum(m * g * p for (m, g), p in zip(SIZES, odds, strict=True))
    assert slots.size == 2_000
    assert gpus.mean() == pytest.approx(wanted, rel=0.2)


def test_measurement_of_a_small_cluster_has_every_figure() -> None:
    found = measure_large(SMALL)

    assert found.placements > 100
    assert len(found.after_change_s) == SMALL.rounds
    assert len(found.explain_s) == SMALL.questions
    assert {"scratch_s", "one_percent_ms", "placements_per_s", "explain_ms"} <= figures(
        found
    ).keys()


def test_plan_from_scratch_fills_the_cluster() -> None:
    frame = encode(organisation(SMALL))
    fill(frame, SMALL, 2_000, np.random.default_rng(2))
    carry_out(frame, plan_frame(frame))

    running = frame.work.phase == RUNNING
    held = (frame.work.need[0] * frame.work.members)[running].sum()
    assert held >= 0.95 * frame.nodes.capacity.sum()


def _contended(odds: tuple[float, ...], seed: int) -> Frame:
    """A full cluster, four classes of which everybody takes two, and five times as much work that waits."""
    load, dice = LargeLoad(nodes=64, leaves=4, odds=odds), np.random.default_rng(seed)
    frame = encode(organisation(load))
    fill(frame, load, 128, dice, busy=True)
    carry_out(frame, plan_frame(frame))
    fill(frame, load, 640, dice)
    return frame


def _on_nodes(frame: Frame) -> np.ndarray:
    """Milli-GPU of each node that running work holds."""
    used = np.zeros(frame.nodes.gpu_class.size, np.int64)
    for slot in np.flatnonzero(frame.work.phase == RUNNING):
        hold = frame.holds.head[slot]
        while hold >= 0:
            members = frame.holds.members[hold]
            used[frame.holds.node[hold]] += members * frame.work.need[GPUS, slot]
            hold = frame.holds.next[hold]
    return used


@pytest.mark.parametrize("odds", [PHILLY, TRAINING], ids=["philly", "training"])
@pytest.mark.parametrize("seed", range(8))
def test_second_plan_of_a_contended_cluster_does_nothing(
    odds: tuple[float, ...], seed: int
) -> None:
    """Law 4, and no node is given away twice, where hundreds compete for several classes."""
    frame = _contended(odds, seed)
    carry_out(frame, plan_frame(frame), instantly=False)
    again = plan_frame(frame)

    assert (again.evicted(), again.admitted()) == ([], [])
    assert _on_nodes(frame).max() <= 8_000
