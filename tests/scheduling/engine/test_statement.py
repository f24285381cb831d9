"""What was tried and undone has left no trace, but for clocks and for what stands past the end of the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.engine import Snapshot, encode, plan_frame
from scheduling.engine.codes import ADMIT, AWAITS_VICTIMS, UNDECIDED
from scheduling.engine.compile.kernel import kernel
from scheduling.engine.compile.structs import DECLARED, Ints, parts_of
from scheduling.engine.document.reader import parse
from scheduling.engine.eviction.candidates import list_candidates
from scheduling.engine.placement.node_room import occupy, pick_device, slots_on
from scheduling.engine.state.input import extra_of
from scheduling.engine.state.units import GPUS, NOW
from scheduling.engine.statement.lines import seat_out
from scheduling.engine.statement.statement import (
    MOVES,
    begin,
    give_member,
    let_go,
    lift,
    mark,
    redo_one,
    step_back,
    undo,
    undo_one,
)
from tests.scheduling.engine.worlds import lent, scattered

LEFT_ALONE = (
    "room.changes", "candidates.number", "candidates.listed_in", "candidates.log.slot", "candidates.log.part",
    "out.pool.first", "out.pool.node", "out.pool.device",
)  # fmt: skip
"""Clocks, the log and the pool of seats past their ends."""
NOON = "2026-01-05T12:00:00Z"
STRUCTS = ("room", "queues", "candidates", "out", "ordering", "shapes", "division")


@kernel
def try_and_undo(world: Any, dice: Ints) -> int:
    """Each of ``dice`` tries one thing, or undoes one and does it again; in the end all is undone. Returns
    how much was tried at most.
    """
    work, candidates, out = world.work, world.candidates, world.out
    list_candidates(
        work, world.ranks, world.rules, world.tree, world.ordering, out.action, candidates
    )
    begin(world.queues, candidates)
    last, most = candidates.leaf_begin[candidates.leaf_begin.size - 1], 0
    for i in range(dice.size if last > 0 else 0):
        v, kind = candidates.slot[dice[i] // 5 % last], dice[i] % 5
        h = world.holds.head[v]
        if kind == 4:
            _step_back(world, dice[i] // 5)
        elif kind == 3 and mark(candidates) > 0:
            k = dice[i] // 5 % mark(candidates)
            if candidates.log.part[k] != MOVES:
                undo_one(world, k)
                redo_one(world, k)
        elif candidates.log.leaves[v] or out.action[v] != UNDECIDED or h < 0:
            continue
        elif kind == 0:
            let_go(world, v)
        elif (
            kind == 1
            and candidates.log.members_given[v] < extra_of(work, v)
            and candidates.log.members_given_on[h] < world.holds.members[h]
        ):
            give_member(world, v, h)
        elif kind == 2 and world.holds.next[h] < 0 and candidates.log.members_given[v] == 0:
            lift(world, v)
            _sit_elsewhere(world, v)
        most = max(most, mark(candidates))
    undo(world, 0)
    return most


@kernel
def _step_back(world: Any, die: int) -> None:
    """One of those who start, or claim room, steps back, unless it has done so already."""
    lines = world.out.size[0]
    if lines == 0:
        return
    v = world.out.order[die % lines]
    for k in range(mark(world.candidates)):
        if world.candidates.log.slot[k] == v:
            return
    if world.out.action[v] == ADMIT or world.out.reason[v] == AWAITS_VICTIMS:
        step_back(world, v)


@kernel
def _sit_elsewhere(world: Any, v: int) -> None:
    """As many members as fit on the first node that takes any."""
    c = world.work.gpu_class[v]
    for i in range(world.nodes.class_start[c], world.nodes.class_start[c + 1]):
        n = world.nodes.of_class[i]
        sat = min(world.work.members[v], slots_on(world.room, world.work, v, n, NOW))
        if sat == 0:
            continue
        for k in range(sat):
            world.seats.node[k] = n
            world.seats.device[k] = pick_device(world.room, world.work, v, n, NOW)
            occupy(world.room, world.work, v, n, world.seats.device[k], 1)
        world.room.open[c] -= sat * world.work.need[0, v]
        seat_out(world.out, world.seats, v, sat)
        world.out.members[v] = sat
        return


@kernel
def take_back_claim(world: Any, v: int) -> None:
    begin(world.queues, world.candidates)
    step_back(world, v)


def test_claim_that_steps_back_leaves_what_is_kept_for_others_on_its_node() -> None:
    """The one free GPU goes to the first claim, so the second does not give it back."""
    claim = {"queue": "q", "priority_class": "train", "submitted": NOON, "gpu_class": "h100"}
    claim |= {"awaits_victims": True, "placement": {"n1": 1}}
    leaves = {"name": "gone", "gpus": 3, "state": "running", "started": NOON, "leaving": True}
    frame = encode(
        parse(
            {
                "now": NOON,
                "gpu_classes": [{"name": "h100"}],
                "nodes": [{"name": "n1", "gpu_class": "h100", "gpus": 4}],
                "queues": [{"name": "q", "quotas": {"h100": {"nominal": 4}}}],
                "priority_classes": [{"name": "train", "value": 50}],
                "workloads": [
                    claim | leaves | {"awaits_victims": False},
                    claim | {"name": "first", "gpus": 2},
                    claim | {"name": "second", "gpus": 2},
                ],
            }
        )
    )
    made = plan_frame(frame)
    second = int(made.order[1])
    assert frame.buffers.room.pledged[GPUS].tolist() == [1000]

    take_back_claim(frame.world, second)

    assert frame.buffers.room.pledged[GPUS].tolist() == [1000]


@settings(max_examples=40)
@given(st.one_of(lent(), scattered()), st.lists(st.integers(0, 10**6), max_size=24))
def test_undoing_all_that_was_tried_leaves_everything_as_it_was(
    world: Snapshot, dice: list[int]
) -> None:
    frame = encode(world)
    plan_frame(frame)
    try_and_undo(frame.world, np.zeros(0, np.int64))
    before = _tables(frame.buffers)

    try_and_undo(frame.world, np.array(dice, np.int64))

    after = _tables(frame.buffers)
    assert [name for name in before if not np.array_equal(before[name], after[name])] == []


def _tables(buffers: Any) -> dict[str, Any]:
    """Copies of all tables that trying may write."""
    return {
        name: np.array(table, copy=True)
        for struct in STRUCTS
        for name, table in _flat(struct, getattr(buffers, struct))
        if not name.startswith(LEFT_ALONE)
    }


def _flat(at: str, value: Any) -> Iterator[tuple[str, Any]]:
    if type(value) not in DECLARED:
        yield at, value
        return
    for name, part in parts_of(value).items():
        yield from _flat(f"{at}.{name}", part)
