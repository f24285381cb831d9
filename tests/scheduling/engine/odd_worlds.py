"""Worlds with more than GPUs: sets of nodes, what is taken beside GPUs, gangs of unlike members."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random

from scheduling.engine import NodeSet, Phase, Role, Snapshot, Workload, plan
from scheduling.engine.roles import counted
from tests.scheduling.engine.dice import drawn, flag, some
from tests.scheduling.engine.evolve import apply, let_leave, wait
from tests.scheduling.engine.worlds import leaves, organisations, workloads, worlds


@drawn
def bounded(dice: Random) -> Snapshot:
    """A world in which some may use some nodes only, and a node may be for those alone that name it."""
    world = worlds.by(dice)
    names = [node.name for node in world.nodes]
    sets = tuple(NodeSet(f"s{i}", frozenset(some(dice, names))) for i in range(3))
    of_some = [None, *(s.name for s in sets)]
    kept = dice.choice([None, None, *names])
    return replace(
        world,
        nodes=tuple(replace(node, dedicated=node.name == kept) for node in world.nodes),
        node_sets=sets,
        workloads=tuple(
            replace(work, node_set=dice.choice(of_some) if work.phase is Phase.PENDING else None)
            for work in world.workloads
        ),
    )


@drawn
def crowded(dice: Random) -> Snapshot:
    """A world whose nodes have few of what some of those who wait take beside GPUs, and pods outside the
    queues hold some of it."""
    world = worlds.by(dice)
    few, one = [0, 1, 2, 4], [0, 0, 1]
    by_name = {
        node.name: (
            {"card": dice.choice(few), "port": 1},
            {"card": dice.choice(one), "port": dice.choice(one)},
        )
        for node in world.nodes
    }
    takes = [{}, {"card": 1}, {"card": 2}, {"port": 1}, {"card": 1, "port": 1}]
    return replace(
        world,
        nodes=tuple(
            replace(
                node,
                beside=by_name[node.name][0],
                foreign_beside={
                    what: min(held, by_name[node.name][0][what])
                    for what, held in by_name[node.name][1].items()
                },
            )
            for node in world.nodes
        ),
        workloads=tuple(
            replace(work, beside=dice.choice(takes) if work.phase is Phase.PENDING else {})
            for work in world.workloads
        ),
    )


def in_parts(work: Workload) -> Workload:
    """``work`` with roles counted in parts."""
    part, members, placement, leaving = counted(work.roles)
    return replace(
        work, gpus=part, cpus=0, memory_mib=0, beside={}, members=members, placement=placement,
        leaving_members=leaving,
    )  # fmt: skip


ROLES = ((1, 8), (1, 2), (2, 4), (1, 4), (2, 3), (1, 6))
"""Pairs of sizes, in GPUs: those that divide each other and those that do not."""


@drawn
def of_roles(dice: Random) -> Snapshot:
    """A world in the middle of its work in which some gangs have unlike members."""
    start = organisations.by(dice)
    start = replace(start, workloads=tuple(_unlike(dice, work) for work in start.workloads))
    start = wait(let_leave(apply(start, plan(start))), dice.choice([0, 100, 4000]))
    more = [_unlike(dice, work) for work in workloads.by(dice, "x", leaves(start.queues), 6)]
    late = [replace(w, submitted=start.now - timedelta(seconds=i)) for i, w in enumerate(more)]
    return replace(start, workloads=(*start.workloads, *late))


def _unlike(dice: Random, work: Workload) -> Workload:
    if flag(dice):
        return work
    small, large = dice.choice(ROLES)
    cpus = dice.choice([0, 0, 1000])
    head = Role("head", dice.choice([1, 1, 2]), small * 1000, cpus)
    rest = Role("rest", dice.choice([1, 1, 2]), large * 1000)
    extra = dice.choice([(0, 0), (0, 0), (1, 0), (0, 1), (0, 3)])
    head, rest = replace(head, extra=extra[0]), replace(rest, extra=extra[1])
    return in_parts(replace(work, elastic=any(extra), roles=(head, rest)))
