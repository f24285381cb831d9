"""The cluster's own demand mix, and what a placement takes from it.

Expected fragmentation is Weng et al., "Beware of Fragmentation" (USENIX ATC 2023): a node's free GPUs
count as lost for a shape of demand that cannot use them, weighed by how often the shape is asked for.
Here a shape counts by the members that a node still fits, as a share of all that the cluster still
fits, so demand with few nodes to go to (one GPU class, much CPU) keeps them from demand with many:

    loss(seat) = sum over shapes t of  share(t) / fits(t, cluster) * (fits(t, before) - fits(t, after))

``fits`` is whole members by GPUs, cut to what CPU and memory carry, in fractions of a member; nothing
where not even one fits or may run. A shape without GPUs counts the free GPUs of a node that fits it, so a
node with free GPUs keeps CPU for it. Shapes are those of pending and running members together.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.model import UNLIMITED
from scheduling.engine.placement.node_room import ONE, free_of, left_on, pick_device
from scheduling.engine.state.input import Nodes, Work
from scheduling.engine.state.nodes import SHAPES, Mix, NodeRoom
from scheduling.engine.state.order import Ordering, Shapes
from scheduling.engine.state.roles import has_roles, many_roles, members_in, shape_of
from scheduling.engine.state.units import CPUS, GPUS, MEMORY, NOW

LIGHT = 250
"""A member below so many milli-GPU weighs as much in the choice of them."""
CLASS_BITS = 62
"""Classes of a shape are a set of bits; numbers above share a bit with lower ones."""


@inner
def learn(
    mix: Mix, ordering: Ordering, shapes: Shapes, work: Work, nodes: Nodes, room: NodeRoom
) -> None:
    """Read the mix off what waits and runs, and what the cluster fits of it at this moment."""
    mix.cells_used = 0
    mix.lessons += 1
    total = 0
    for shape in range(shapes.number):
        shapes.members[shape] = shapes.waiting[shape] * work.least[shapes.first[shape]]
    for k in range(ordering.pending.size[0] if ordering.pending.shapeless > 0 else 0):
        w = ordering.pending.slot[k]
        if shapes.of[w] < 0:
            total += _count(mix, work, w, work.least[w])
    total += _tally_running(mix, ordering, shapes, work)
    for shape in range(shapes.number):
        if shapes.members[shape] > 0:
            total += _count(mix, work, shapes.first[shape], shapes.members[shape])
    mix.shapes = min(SHAPES, mix.cells_used)
    scale = 0.0
    for t in range(mix.shapes):
        cell = _heaviest(mix, work, t)
        w = mix.owner[cell]
        for r in range(3):
            mix.need[r, t] = work.need[r, w]
        mix.classes[t], mix.where[t] = classes_of(work, w), work.where[w]
    _fit_in_all(mix, nodes, room)
    for t in range(mix.shapes):
        mix.weight[t] = mix.members[mix.cells[t]] / total / max(1.0, mix.weight[t])
        scale += mix.weight[t]
    for t in range(mix.shapes):
        mix.weight[t] /= scale
    mix.learnt_at = room.changes.clock


@inner
def _tally_running(mix: Mix, ordering: Ordering, shapes: Shapes, work: Work) -> int:
    """Members of a kind are added together; the others at once: returns how many were. Arrays are looked
    up once.
    """
    running, of, members = ordering.running.slot, shapes.of, shapes.members
    have, one, added = work.members, shapes.first, 0
    for k in range(ordering.running.size[0]):
        w = running[k]
        shape = of[w]
        if shape < 0:
            added += _count(mix, work, w, have[w])
        else:
            members[shape] += have[w]
            one[shape] = w
    return added


@inner
def classes_of(work: Work, w: int) -> int:
    bits = 0
    for k in range(work.wish.shape[0]):
        if work.wish[k, w] >= 0:
            bits |= 1 << (work.wish[k, w] % CLASS_BITS)
    return bits


@inner
def _count(mix: Mix, work: Work, w: int, members: int) -> int:
    """Add ``members`` of ``w``, of a gang with roles as many gangs as those parts are, of what it gave up the
    parts themselves; returns how many were added.
    """
    if not has_roles(work, w) or work.least[w] == 0:
        return _count_shape(mix, work, w, members)
    added, gangs = 0, members / work.least[w]
    for role in range(many_roles(work, w)):
        many = int(np.ceil(gangs * members_in(work, w, role)))
        added += _count_shape(mix, work, shape_of(work, w, role), many)
    return added


@inner
def _count_shape(mix: Mix, work: Work, w: int, members: int) -> int:
    if work.need[GPUS, w] == 0 and work.need[CPUS, w] == 0:
        return 0
    bits, lesson, last = classes_of(work, w), mix.lessons, mix.owner.size - 1
    at = bits % 1000003 + work.where[w] * 31
    for r in range(3):
        at = (at * 1000003 + work.need[r, w]) & last
    while mix.lesson[at] == lesson:
        if _before(work, w, mix.owner[at]) == 0:
            mix.members[at] += members
            return members
        at = (at + 1) & last
    mix.lesson[at], mix.owner[at], mix.members[at] = lesson, w, members
    mix.cells[mix.cells_used] = at
    mix.cells_used += 1
    return members


@inner
def _before(work: Work, a: int, b: int) -> int:
    """Order of two shapes, by need, then nodes, then classes: -1, 0 if they are one shape, or 1."""
    for r in range(3):
        if work.need[r, a] != work.need[r, b]:
            return -1 if work.need[r, a] < work.need[r, b] else 1
    if work.where[a] != work.where[b]:
        return -1 if work.where[a] < work.where[b] else 1
    mine, other = classes_of(work, a), classes_of(work, b)
    return 0 if mine == other else (-1 if mine < other else 1)


@inner
def _heaviest(mix: Mix, work: Work, t: int) -> int:
    """Bring the cell that asks for most, from ``t`` on, to ``t``; among equals the lowest shape."""
    best = t
    for k in range(t + 1, mix.cells_used):
        cell, first = mix.cells[k], mix.cells[best]
        more = _demand_of(mix, work, cell) - _demand_of(mix, work, first)
        if more > 0 or (more == 0 and _before(work, mix.owner[cell], mix.owner[first]) < 0):
            best = k
    mix.cells[t], mix.cells[best] = mix.cells[best], mix.cells[t]
    return int(mix.cells[t])


@inner
def _demand_of(mix: Mix, work: Work, cell: int) -> int:
    return mix.members[cell] * max(LIGHT, work.need[GPUS, mix.owner[cell]])


@inner
def _fit_in_all(mix: Mix, nodes: Nodes, room: NodeRoom) -> None:
    """Members of each shape that fit the cluster, into ``weight``."""
    for t in range(mix.shapes):
        mix.weight[t] = 0.0
    for i in range(nodes.of_class.size):
        n = nodes.of_class[i]
        free = max(0, free_of(room, GPUS, n, NOW))
        if free < ONE and not _has_shares(room, n):
            continue
        cpus, memory = free_of(room, CPUS, n, NOW), free_of(room, MEMORY, n, NOW)
        bit = room.gpu_class[n]
        for t in range(mix.shapes):
            if _may_go(mix, t, room, n, bit):
                mix.weight[t] += _fits(mix, t, room, n, NOW, free, cpus, memory, -1, 0)


@inner
def _may_go(mix: Mix, t: int, room: NodeRoom, n: int, c: int) -> bool:
    """Whether members of shape ``t`` may run on node ``n`` of class ``c``."""
    if mix.classes[t] >> (c % CLASS_BITS) & 1 == 0:
        return False
    return bool(mix.where[t] < 0 or room.allowed[mix.where[t], n])


@inner
def _has_shares(room: NodeRoom, n: int) -> bool:
    for d in range(room.shared_now.shape[1]):
        if room.shared_now[n, d] > 0:
            return True
    return False


@inner
def _fits(
    mix: Mix, t: int, room: NodeRoom, n: int, when: int, free: int, cpus: int, memory: int,
    device: int, left: int,
) -> float:  # fmt: skip
    """Members of shape ``t`` that fit into this much; of ``device``, if any, only ``left`` is free."""
    gpus, cpu, mem = mix.need[GPUS, t], mix.need[CPUS, t], mix.need[MEMORY, t]
    if cpus < cpu or memory < mem:
        return 0.0
    if gpus >= ONE:
        many = float(free // gpus)
    else:
        part = gpus if gpus > 0 else 1
        count = free // ONE * (ONE // part)
        for d in range(room.shared_now.shape[1]):
            count += (left if d == device else left_on(room, n, d, when)) // part
        if gpus == 0:
            return count / ONE
        many = float(count)
    if cpu > 0:
        many = min(many, cpus / cpu)
    return min(many, memory / mem) if mem > 0 else many


@inner
def loss(mix: Mix, room: NodeRoom, work: Work, w: int, n: int, c: int, when: int) -> float:
    """What one member of ``w`` on node ``n`` of class ``c`` takes from the mix."""
    gpus, device, left = work.need[GPUS, w], -1, 0
    free, cpus = free_of(room, GPUS, n, when), free_of(room, CPUS, n, when)
    memory, less = free_of(room, MEMORY, n, when), gpus
    if 0 < gpus < ONE:
        device = pick_device(room, work, w, n, when)
        left, less = left_on(room, n, device, when) - gpus, 0
        if left < 0:
            left, less = ONE - gpus, ONE
    lost = 0.0
    for t in range(mix.shapes):
        if not _may_go(mix, t, room, n, c):
            continue
        before = _fits(mix, t, room, n, when, free, cpus, memory, -1, 0)
        if before == 0.0:
            continue
        after = _fits(
            mix, t, room, n, when, free - less, _rest(cpus, work.need[CPUS, w]),
            _rest(memory, work.need[MEMORY, w]), device, left,
        )  # fmt: skip
        lost += mix.weight[t] * (before - after)
    return lost


@inner
def _rest(free: int, need: int) -> int:
    """Unlimited stays so."""
    return free if free > UNLIMITED // 2 else free - need
