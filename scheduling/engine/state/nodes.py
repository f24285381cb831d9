"""Free room of nodes, what is known of it by shape of member, and the demand mix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduling.engine.compile.structs import Flags, Floats, Ints, declare

BLOCK_SIZE = 64
"""Positions that share one summary."""

KEY_PARTS = 7

SHAPES = 64
"""Those that ask for most stand for all."""


@declare
class Room(NamedTuple):
    """Resources ``[resource, node]`` and shared GPUs ``[node, device]`` (milli-GPU in use there).

    ``now`` is free at this moment; ``later`` adds what leaving work gives back and subtracts what is
    claimed. A newcomer may start on ``min(now - pledged, later)``. ``open`` sums what is free now by class.
    """

    now: Ints
    later: Ints
    pledged: Ints  # the part of now that goes to whom room was promised
    shared_now: Ints
    shared_later: Ints
    open: Ints
    coming: Ints  # [class] what leaving work gives back
    came: Ints  # [class] the part of it that was known when this round began
    tick: Ints  # [0] counts changes of nodes; its value [1] when all were cleared, [2] when the plan began
    touched: Ints  # [node] tick of its last change
    newest: Ints  # [class] the node changed last, -1 none since the tables were cleared
    older: Ints  # [node] the one of its class changed before it, -1 none
    newer: Ints  # [node] the one of its class changed after it, -1 none
    kind: Ints  # [node] its class
    allowed: Flags  # as in Nodes
    allowed_kind: Ints
    kept: Ints  # [now's three resources, then later's; node]: who sits there, before any decision
    kept_open: Ints  # [node] its part of ``open``, likewise
    kept_shared: Ints  # [now or later, node, device]
    stale: Flags  # [node] somebody came or left since that was noted
    first: Ints  # [node] a hold on it, -1 none; its others through ``before`` and ``after``
    before: Ints  # [hold]
    after: Ints  # [hold]
    owner: Ints  # [hold] whose it is
    beside: Ints  # [node] the next row of the same machine, in a ring: they share CPUs and memory


@declare
class Index(NamedTuple):
    """What is known of the nodes by shape of member; ``index`` says how it is kept up.

    A row is one shape on one class: ``slots`` and ``score`` by position in ``Nodes.of_class``, their
    summary by block of positions, and ``inside``, the members that fit by topology domain.
    """

    key: Ints  # [row, part]
    seen: Ints  # [row] the tick up to which it is right, -1 empty
    lesson: Ints  # [row] the lesson of the mix that its scores rest on
    used: Ints  # [row] when it was asked for last
    clock: Ints  # [1] counts questions
    total: Ints  # [row] members that fit
    slots: NDArray[np.int32]  # [row, position]
    score: Floats  # [row, position] lowest goes first
    widest: Ints  # [row, block] most slots of a node
    best: Ints  # [row, block] position of lowest score among those with slots, -1 none
    inside: Ints  # [row, domain] level after level
    base: Ints  # [level] where its domains begin in ``inside``; one more ends them
    member: Ints  # [level, i] nodes domain after domain, by name
    begin: Ints  # [level, domain] where its nodes begin in ``member``; one more ends them
    position: Ints  # [node]
    order: Ints  # [position] rank among nodes of equal score: by name
    alike: Ints  # nodes looked at, by what is free on them
    free: Ints  # [node] unclaimed free GPUs, shares of GPUs included
    free_sum: Ints  # [class] free GPUs
    free_nodes: Ints  # [class] nodes with any
    free_seen: Ints  # [class] the tick up to which these are right


@declare
class Seats(NamedTuple):
    """Where the members of one workload go, one entry a member, and scratch by node."""

    node: Ints
    device: Ints
    slots: Ints
    known: Ints  # memo of what fits on empty nodes, see ``fitness``


@declare
class Mix(NamedTuple):
    """``need[:, :size[0]]`` are the shapes; the other tables count members by shape while learning."""

    need: Ints  # [resource, shape]
    classes: Ints  # [shape] the classes it may run on, as bits
    where: Ints  # [shape] the nodes it may use, as in Work
    weight: Floats  # [shape] share of demand / members that the cluster fits, scaled to the sum 1
    size: Ints  # [0] shapes, [1] cells in use, [2] lessons so far, [3] the room's tick when learnt
    owner: Ints  # [cell] a workload of that shape
    members: Ints  # [cell]
    lesson: Ints  # [cell] the lesson that used it last
    cells: Ints  # those in use


def empty_mix(slots: int) -> Mix:
    """Tables to learn from ``slots`` workloads."""
    cells = 1 << max(4, 2 * slots).bit_length()
    need, classes = np.zeros((3, SHAPES), np.int64), np.zeros(SHAPES, np.int64)
    owner, members, lesson = (np.zeros(cells, np.int64) for _ in range(3))
    weight, where = np.zeros(SHAPES), np.zeros(SHAPES, np.int64)
    size = np.array([0, 0, 0, -1], np.int64)
    used = np.zeros(slots + 1, np.int64)
    return Mix(need, classes, where, weight, size, owner, members, lesson, used)
