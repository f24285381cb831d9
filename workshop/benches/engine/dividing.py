"""A large organisation to divide: leaf queues four levels deep, eight GPU classes, many workloads."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from random import Random
from statistics import median
from typing import Any

from scheduling.engine import Frame, encode, plan_frame
from scheduling.engine.compile.kernel import kernel
from scheduling.engine.cycle.one_pass import begin_cycle
from scheduling.engine.division.share_out import share_out
from scheduling.engine.model import (
    MILLI,
    GpuClass,
    Node,
    Policy,
    PriorityClass,
    Queue,
    Quota,
    Snapshot,
    Workload,
)
from scheduling.engine.statement.lines import clear_out, note_the_settled
from workshop.simulator.carry_out import carry_out

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)
SEED = 42
DEPTH = 4
CLASSES = tuple(f"class{i}" for i in range(8))
USERS = 500
NODES_PER_LEAF = 0.5
"""Nodes of 8 GPUs of each class: four GPUs a leaf, less than nominal quotas and demand together."""


def organisation(leaves: int, workloads: int, seed: int = SEED) -> Frame:
    """Random quotas, limits, lending limits, weights, tiers and usage; all workloads are pending."""
    dice = Random(seed)  # noqa: S311 - a benchmark, with its seed
    levels = [max(1, round(leaves ** (depth / DEPTH))) for depth in range(1, DEPTH + 1)]
    names = [[f"q{depth}-{i:05}" for i in range(size)] for depth, size in enumerate(levels)]
    queues = [
        _queue(dice, name, names[depth - 1][i * levels[depth - 1] // size] if depth else None,
               leaves // size)
        for depth, size in enumerate(levels)
        for i, name in enumerate(names[depth])
    ]  # fmt: skip
    nodes = int(leaves * NODES_PER_LEAF)
    return encode(
        Snapshot(
            now=NOW,
            gpu_classes=tuple(GpuClass(name) for name in CLASSES),
            nodes=tuple(
                Node(f"{c}-{i:05}", c, 8 * MILLI) for c in CLASSES for i in range(nodes)
            ),
            queues=tuple(queues),
            priority_classes=(PriorityClass("train"),),
            workloads=tuple(_workload(dice, i, names[-1]) for i in range(workloads)),
            policy=Policy(history_strength=0.5),
        )
    )  # fmt: skip


def _queue(dice: Random, name: str, parent: str | None, leaves: int) -> Queue:
    """A queue over ``leaves`` leaves, with quotas in proportion."""

    def gpus(least: int, most: int) -> int:
        return MILLI * leaves * dice.randint(least, most)

    return Queue(
        name,
        parent,
        priority=dice.choice([0, 0, 0, 1]),
        quotas={
            c: Quota(
                nominal=gpus(1, 6),
                borrowing_limit=dice.choice([None, None, gpus(2, 8)]),
                lending_limit=dice.choice([None, None, gpus(0, 4)]),
                weight=dice.choice([1.0, 1.0, 2.0, 3.5]),
            )
            for c in CLASSES
        },
        usage={c: dice.random() for c in CLASSES},
    )


def _workload(dice: Random, i: int, leaves: list[str]) -> Workload:
    return Workload(
        f"w{i:06}",
        dice.choice(leaves),
        "train",
        NOW,
        gpus=MILLI * dice.choice([1, 1, 1, 1, 2, 4]),
        user=f"u{dice.randrange(USERS)}",
        gpu_classes=(dice.choice(CLASSES),),
    )


@kernel
def divide_world(world: Any) -> None:
    """The division alone, over the line as it stands: demand summed again, shares in ``world``."""
    clear_out(world.out, world.candidates)
    begin_cycle(world.queues)
    share_out(world)
    note_the_settled(world.out, world.ordering)


def division_ms(frame: Frame, runs: int = 21) -> float:
    """Start what fits, then the CPU milliseconds of one division, demand summed from all workloads: the
    median.
    """
    plan = plan_frame(frame)
    carry_out(frame, plan)
    plan_frame(frame)
    measured = []
    for _ in range(runs):
        began_s = time.thread_time()
        divide_world(frame.world)
        measured.append(1000.0 * (time.thread_time() - began_s))
    return median(measured)
