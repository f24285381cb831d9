"""A large cluster in arrays: how long one cycle takes from scratch, and after a hundredth has changed, and
how long it takes to say what would start a waiting workload.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from scheduling.engine import ArrayPlan, Frame, encode, plan_frame
from scheduling.engine.model import GpuClass, Node, PriorityClass, Queue, Quota, Snapshot
from scheduling.engine.state.units import PENDING
from scheduling.engine.whatif.change import Reach
from scheduling.engine.whatif.relaxations import relaxations_in
from scheduling.simulation.run.frames import leaves

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)
CLASSES, TEAMS, RACK = 4, 40, 16
SIZES = ((1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (4, 8), (16, 8))
"""Members of the gangs that are drawn, and GPUs of each."""
PHILLY = (0.932, 0.022, 0.023, 0.02, 0.003, 0.0, 0.0)
"""How often: as in Philly's trace, whose mean is 1.3 GPUs."""
TRAINING = (0.55, 0.18, 0.12, 0.12, 0.0, 0.025, 0.005)
"""A cluster of larger jobs, 3.8 GPUs on average: those that run fill it, and searches for victims decide."""


@dataclass(frozen=True, slots=True)
class Load:
    """How large the cluster is; ``leaves`` queues of two levels above take the work. ``odds`` of SIZES."""

    nodes: int = 10_000
    leaves: int = 1_000
    running: int = 20_000
    pending: int = 100_000
    changes: int = 1_200
    rounds: int = 5
    odds: tuple[float, ...] = PHILLY
    questions: int = 20


@dataclass(frozen=True, slots=True)
class Found:
    """CPU seconds, and what was placed by the cycle from scratch. ``explain_s`` is of questions what
    would start a workload.
    """

    build_s: float
    scratch_s: float
    placements: int
    after_change_s: tuple[float, ...]
    explain_s: tuple[float, ...]


def measure_large(load: Load = Load(), seed: int = 42) -> Found:
    """Builds the frame from columns, plans it, then changes ``load.changes`` workloads and plans, again
    and again: as many end as arrive.
    """
    plan_frame(encode(organisation(Load(nodes=8, leaves=4))))
    dice = np.random.default_rng(seed)
    began_s = time.process_time()
    frame = encode(organisation(load))
    fill(frame, load, load.running, dice, busy=True)
    frame.apply(plan_frame(frame))
    fill(frame, load, load.pending, dice)
    build_s = time.process_time() - began_s
    frame.forget()
    began_s = time.process_time()
    made = plan_frame(frame)
    scratch_s = time.process_time() - began_s
    placements = len(made.admitted())
    frame.apply(made)
    after_change_s = tuple(_changes(frame, load, dice))
    return Found(
        build_s, scratch_s, placements, after_change_s, tuple(_questions(frame, load, dice))
    )


def organisation(load: Load) -> Snapshot:
    """Nodes in racks and blocks, four GPU classes, teams with leaves; nobody works yet."""
    per_leaf = load.nodes * 8_000 // load.leaves // CLASSES
    names = [f"gpu{number}" for number in range(CLASSES)]
    teams = [f"team{number:02}" for number in range(TEAMS)]
    of_team = -(-load.leaves // TEAMS) * per_leaf
    quotas = {name: Quota(per_leaf) for name in names}
    return Snapshot(
        now=NOW,
        gpu_classes=tuple(GpuClass(name) for name in names),
        nodes=tuple(_node(number, names) for number in range(load.nodes)),
        queues=(
            *(Queue(team, quotas={name: Quota(of_team) for name in names}) for team in teams),
            *(
                Queue(f"leaf{number:04}", parent=teams[number % TEAMS], quotas=quotas)
                for number in range(load.leaves)
            ),
        ),
        priority_classes=(PriorityClass("train", 50), PriorityClass("urgent", 90)),
    )


def _node(number: int, names: list[str]) -> Node:
    rack = number // RACK
    return Node(
        f"node{number:05}",
        names[rack % CLASSES],
        8_000,
        cpus=128_000,
        memory_mib=1 << 20,
        topology={"block": f"block{rack // 32:03}", "rack": f"rack{rack:04}"},
    )


def fill(
    frame: Frame, load: Load, many: int, dice: np.random.Generator, *, busy: bool = False
) -> None:
    """Add ``many`` pending workloads of 500 users; ``busy`` ones came days ago."""
    queues = np.array(sorted(leaves(frame).values()))[dice.integers(len(leaves(frame)), size=many)]
    size = dice.choice(len(SIZES), size=many, p=load.odds)
    for i in range(many):
        members, gpus = SIZES[size[i]]
        first = int(dice.integers(CLASSES))
        frame.add_workload(
            queue=int(queues[i]),
            submitted=frame.now - float(dice.integers(1, 3_000)) - 86_400.0 * busy,
            gpus=1_000 * gpus,
            cpus=8_000 * gpus,
            memory_mib=65_536 * gpus,
            members=(members, members),
            priority=int(dice.random() < 0.1),
            user=f"user{queues[i] % 500}",
            classes=(first, (first + 1) % CLASSES),
        )


def _changes(frame: Frame, load: Load, dice: np.random.Generator) -> Iterator[float]:
    for _ in range(load.rounds):
        frame.now += 5.0
        running = np.flatnonzero(frame.work.phase == 2)
        for slot in dice.choice(running, size=load.changes // 2, replace=False):
            frame.finish(int(slot))
        fill(frame, load, load.changes // 2, dice)
        began_s = time.process_time()
        made: ArrayPlan = plan_frame(frame)
        yield time.process_time() - began_s
        frame.apply(made)


def _questions(frame: Frame, load: Load, dice: np.random.Generator) -> Iterator[float]:
    """Of people who may use four queues and any priority class, asked right after a plan."""
    waiting = np.flatnonzero(frame.work.phase == PENDING)
    names = [name for name in frame.queue_names if name.startswith("leaf")]
    for slot in dice.choice(waiting, size=load.questions, replace=False):
        queues = [names[i] for i in dice.integers(len(names), size=4)]
        reach = Reach(queues, frame.priority_names)
        for name in queues:
            frame.user_in(int(slot), frame.queue_names.index(name))
        plan = plan_frame(frame)
        began_s = time.process_time()
        relaxations_in(frame, int(slot), reach, plan)
        yield time.process_time() - began_s


def figures(found: Found) -> dict[str, Any]:
    """The names of ``bench cycle``; the median of changes and questions, and the worst."""
    changed, asked = sorted(found.after_change_s), sorted(found.explain_s)
    return {
        "scratch_s": round(found.scratch_s, 4),
        "one_percent_ms": round(1000 * changed[len(changed) // 2], 2),
        "one_percent_worst_ms": round(1000 * changed[-1], 2),
        "placements_per_s": round(found.placements / found.scratch_s, 1),
        "placements": found.placements,
        "build_s": round(found.build_s, 3),
        "explain_ms": round(1000 * asked[len(asked) // 2], 2),
        "explain_worst_ms": round(1000 * asked[-1], 2),
    }
