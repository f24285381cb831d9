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
from scheduling.simulation.run.scribe import leaves
from workshop.simulator.carry_out import carry_out

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)
CLASSES, TEAMS, RACK, BLOCK = 4, 40, 16, 32
"""Nodes of a rack, racks of a block."""
Sizes = tuple[tuple[int, int], ...]
SIZES: Sizes = ((1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (4, 8), (16, 8))
"""Members of the gangs that are drawn, and GPUs of each."""
ON_SMALL_NODES: Sizes = ((1, 1), (1, 2), (2, 2), (4, 2), (8, 2), (16, 2), (64, 2))
"""The same GPUs in members that fit on nodes of two."""
PHILLY = (0.932, 0.022, 0.023, 0.02, 0.003, 0.0, 0.0)
"""How often: as in Philly's trace, whose mean is 1.3 GPUs."""
TRAINING = (0.55, 0.18, 0.12, 0.12, 0.0, 0.025, 0.005)
"""A cluster of larger jobs, 3.8 GPUs on average: those that run fill it, and searches for victims decide."""


@dataclass(frozen=True, slots=True)
class LargeLoad:
    """How large the cluster is; ``leaves`` queues of two levels above take the work. ``odds`` are of
    ``sizes``, members and GPUs of each.
    """

    nodes: int = 10_000
    leaves: int = 1_000
    running: int = 20_000
    pending: int = 100_000
    changes: int = 1_200
    rounds: int = 5
    odds: tuple[float, ...] = PHILLY
    questions: int = 20
    gpus_per_node: int = 8
    sizes: Sizes = SIZES


@dataclass(frozen=True, slots=True)
class LargeResult:
    """CPU seconds, and what was placed by the cycle from scratch. ``explain_s`` is of questions what
    would start a workload.
    """

    build_s: float
    scratch_s: float
    placements: int
    after_change_s: tuple[float, ...]
    explain_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """What a planner of its own would take over: one of ``of`` parts of the nodes, of the work and of each
    quota, by GPU class or by topology block. Part 0 of 1 is everything.
    """

    number: int = 0
    of: int = 1
    by_class: bool = False

    def has(self, node: int) -> bool:
        """Whether the node with this number is in it."""
        rack = node // RACK
        return self._of_class(rack) if self.by_class else rack // BLOCK % self.of == self.number

    def _of_class(self, number: int) -> bool:
        return number % CLASSES == self.number

    def takes(self, job: int, first: int) -> bool:
        """Whether the ``job``-th that is drawn, which prefers class ``first``, is its to plan."""
        return self._of_class(first) if self.by_class else job % self.of == self.number

    def wishes(self, first: int) -> tuple[int, ...]:
        """The classes that a workload may use here: of a part of one class only that one."""
        return (first,) if self.by_class else (first, (first + 1) % CLASSES)


WHOLE = Part()


def measure_large(load: LargeLoad = LargeLoad(), seed: int = 42, part: Part = WHOLE) -> LargeResult:
    """Builds the frame from columns, plans it, then changes ``load.changes`` workloads and plans, again
    and again: as many end as arrive. Of a ``part`` only its own nodes, work and changes.
    """
    plan_frame(encode(organisation(LargeLoad(nodes=8, leaves=4))))
    dice = np.random.default_rng(seed)
    began_s = time.process_time()
    frame = encode(organisation(load, part))
    fill(frame, load, load.running, dice, part, busy=True)
    carry_out(frame, plan_frame(frame))
    fill(frame, load, load.pending, dice, part)
    build_s = time.process_time() - began_s
    frame.forget()
    began_s = time.process_time()
    made = plan_frame(frame)
    scratch_s = time.process_time() - began_s
    placements = len(made.admitted())
    carry_out(frame, made)
    after_change_s = tuple(_changes(frame, load, dice, part))
    return LargeResult(
        build_s, scratch_s, placements, after_change_s, tuple(_questions(frame, load, dice))
    )


def organisation(load: LargeLoad, part: Part = WHOLE) -> Snapshot:
    """Nodes in racks and blocks, four GPU classes, teams with leaves; nobody works yet."""
    names = [f"gpu{number}" for number in range(CLASSES)]
    offered = [names[part.number]] if part.by_class else names
    per_leaf = load.nodes * load.gpus_per_node * 1_000 // load.leaves // CLASSES
    per_leaf = per_leaf if part.by_class else per_leaf // part.of
    teams = [f"team{number:02}" for number in range(TEAMS)]
    of_team = -(-load.leaves // TEAMS) * per_leaf
    quotas = {name: Quota(per_leaf) for name in offered}
    return Snapshot(
        now=NOW,
        gpu_classes=tuple(GpuClass(name) for name in names),
        nodes=tuple(
            _node(number, names, load.gpus_per_node)
            for number in range(load.nodes)
            if part.has(number)
        ),
        queues=(
            *(Queue(team, quotas={name: Quota(of_team) for name in offered}) for team in teams),
            *(
                Queue(f"leaf{number:04}", parent=teams[number % TEAMS], quotas=quotas)
                for number in range(load.leaves)
            ),
        ),
        priority_classes=(PriorityClass("train", 50), PriorityClass("urgent", 90)),
    )


def _node(number: int, names: list[str], gpus: int) -> Node:
    rack = number // RACK
    return Node(
        f"node{number:05}",
        names[rack % CLASSES],
        1_000 * gpus,
        cpus=16_000 * gpus,
        memory_mib=gpus << 17,
        topology={"block": f"block{rack // BLOCK:03}", "rack": f"rack{rack:04}"},
    )


def fill(
    frame: Frame,
    load: LargeLoad,
    many: int,
    dice: np.random.Generator,
    part: Part = WHOLE,
    *,
    busy: bool = False,
) -> None:
    """Draw ``many`` pending workloads of 500 users and add those of ``part``; ``busy`` ones came days ago."""
    queues = np.array(sorted(leaves(frame).values()))[dice.integers(len(leaves(frame)), size=many)]
    size = dice.choice(len(load.sizes), size=many, p=load.odds)
    for i in range(many):
        members, gpus = load.sizes[size[i]]
        first = int(dice.integers(CLASSES))
        submitted = frame.now - float(dice.integers(1, 3_000)) - 86_400.0 * busy
        priority = int(dice.random() < 0.1)
        if not part.takes(i, first):
            continue
        frame.add_workload(
            queue=int(queues[i]),
            submitted=submitted,
            gpus=1_000 * gpus,
            cpus=8_000 * gpus,
            memory_mib=65_536 * gpus,
            members=(members, members),
            priority=priority,
            user=f"user{queues[i] % 500}",
            classes=part.wishes(first),
        )


def _changes(
    frame: Frame, load: LargeLoad, dice: np.random.Generator, part: Part
) -> Iterator[float]:
    for _ in range(load.rounds):
        frame.now += 5.0
        running = np.flatnonzero(frame.work.phase == 2)
        for slot in dice.choice(running, size=load.changes // 2 // part.of, replace=False):
            frame.finish(int(slot))
        fill(frame, load, load.changes // 2, dice, part)
        began_s = time.process_time()
        made: ArrayPlan = plan_frame(frame)
        yield time.process_time() - began_s
        carry_out(frame, made)


def _questions(frame: Frame, load: LargeLoad, dice: np.random.Generator) -> Iterator[float]:
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


def figures(found: LargeResult) -> dict[str, Any]:
    """The names of ``bench cycle``; the median of changes and questions, and the worst."""
    changed, waits = sorted(found.after_change_s), sorted(found.explain_s)
    return {
        "scratch_s": round(found.scratch_s, 4),
        "one_percent_ms": round(1000 * changed[len(changed) // 2], 2),
        "one_percent_worst_ms": round(1000 * changed[-1], 2),
        "placements_per_s": round(found.placements / found.scratch_s, 1),
        "placements": found.placements,
        "build_s": round(found.build_s, 3),
        "explain_ms": round(1000 * waits[len(waits) // 2], 2),
        "explain_worst_ms": round(1000 * waits[-1], 2),
    }
