"""Free room of nodes, what is known of it by shape of member, and the demand mix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduling.engine.compile.structs import Flags, Floats, Ints, declare, per

BLOCK_SIZE = 64
"""Positions that share one summary."""
KEY_PARTS = 8
SHAPES = 64
"""Those that ask for most stand for all."""
BY_NODE = per("resource", "node")


@declare
@dataclass(slots=True)
class NodeChanges:
    """Which nodes of a class changed last, as linked lists (``placement.node_room``)."""

    clock: int  # counts changes of nodes
    cleared_at: int  # the clock when all were cleared
    plan_began_at: int
    changed_at: Annotated[Ints, per("node")]
    newest: Annotated[Ints, per("class", fill=-1)]  # none since the tables were cleared
    older: Annotated[Ints, per("node")]  # the one of its class changed before it, -1 none
    newer: Annotated[Ints, per("node")]  # the one of its class changed after it, -1 none


@declare
class Baseline(NamedTuple):
    """Free room before any decision: what sits there now (``placement.node_room``)."""

    free: Annotated[Ints, per("2", "resource", "node")]  # [now or later]
    open: Annotated[Ints, per("node")]
    shared: Annotated[Ints, per("2", "node", "device")]  # [now or later]


@declare
class HoldsByNode(NamedTuple):
    """Holds of each node, as linked lists: ``first``, then ``after`` each (``snapshot.events``)."""

    stale: Annotated[Flags, per("node", fill=1)]  # somebody came or left since ``Baseline``
    first: Annotated[Ints, per("node", fill=-1)]
    before: Annotated[Ints, per("hold")]
    after: Annotated[Ints, per("hold")]
    owner: Annotated[Ints, per("hold")]  # whose it is


@declare
class NodeRoom(NamedTuple):
    """Free room. ``free_now`` is free at this moment; ``free_later`` adds what leaving work gives back and
    subtracts what is claimed. A newcomer may start on ``min(free_now - pledged, free_later)``. Shared GPUs
    say what is in use of them, in milli-GPU.
    """

    free_now: Annotated[Ints, BY_NODE]
    free_later: Annotated[Ints, BY_NODE]
    pledged: Annotated[Ints, BY_NODE]  # the part of free_now that goes to whom room was promised
    shared_now: Annotated[Ints, per("node", "device")]
    shared_later: Annotated[Ints, per("node", "device")]
    open: Annotated[Ints, per("class")]  # free GPUs now, in milli-GPU
    coming: Annotated[Ints, per("class")]  # what leaving work gives back
    claimed: Annotated[Ints, per("class")]  # of either, by whom room was promised
    came: Annotated[Ints, per("class")]  # the part of it that was known when this round began
    gpu_class: Ints  # [node]
    allowed: Flags  # as in Nodes
    allowed_kind: Ints
    next_on_machine: Ints  # [node] in a ring: rows of one machine share all but GPUs
    changes: NodeChanges
    baseline: Baseline
    holders: HoldsByNode


@declare
class Domains(NamedTuple):
    """Topology domains and positions, fixed while the nodes are the same."""

    base: Ints  # [level] where its domains begin in ``inside``; one more ends them, at the node's own level
    member: Ints  # [level, i] nodes domain after domain, by name
    begin: Ints  # [level, domain] where its nodes begin in ``member``; one more ends them
    position: Ints  # [node]
    name_rank: Ints  # [position] rank among nodes of equal score: by name


@declare
class FreeByClass(NamedTuple):
    """Unclaimed free GPUs, shares of GPUs included (``placement.node_index``)."""

    node: Annotated[Ints, per("node")]
    sum: Annotated[Ints, per("class")]
    nodes: Annotated[Ints, per("class")]  # with any
    seen: Annotated[Ints, per("class", fill=-1)]  # the clock up to which these are right


@declare
class NodeIndex(NamedTuple):
    """What is known of the nodes by shape of member (``placement.node_index``).

    A row is one shape on one class: ``slots`` and ``score`` by position in ``Nodes.of_class``, their
    summary by block of positions, and ``inside``, the members that fit by topology domain.
    """

    key: Annotated[Ints, per("row", "8")]
    seen: Annotated[Ints, per("row", fill=-1)]  # the clock up to which it is right, -1 empty
    lesson: Annotated[Ints, per("row")]  # the lesson of the mix that its scores rest on
    used: Annotated[Ints, per("row")]  # when it was asked for last
    clock: Annotated[Ints, per("1")]  # counts questions
    total: Annotated[Ints, per("row")]  # members that fit
    slots: Annotated[NDArray[np.int32], per("row", "node")]
    score: Annotated[Floats, per("row", "node")]  # lowest goes first
    widest: Annotated[Ints, per("row", "block")]  # most slots of a node
    best: Annotated[Ints, per("row", "block")]  # position of lowest score with slots, or -1
    inside: Annotated[Ints, per("row", "domain")]  # level after level
    alike: Annotated[Ints, per("256", fill=-1)]  # nodes looked at, by what is free on them
    domains: Domains
    free_by_class: FreeByClass


@declare
class Seats(NamedTuple):
    """Where the members of one workload go, one entry a member, and scratch by node."""

    node: Annotated[Ints, per("member")]
    device: Annotated[Ints, per("member")]
    slots: Annotated[Ints, per("node")]
    known: Annotated[Ints, per("1024", "10", fill=-1)]  # what fits when empty: ``never_fits``


@declare
@dataclass(slots=True)
class Mix:
    """``need[:, :shapes]`` is asked for; the other tables count members by shape while learning."""

    need: Annotated[Ints, per("3", "64")]
    classes: Annotated[Ints, per("64")]  # the classes a shape may run on, as bits
    where: Annotated[Ints, per("64")]  # the nodes it may use, as in Work
    weight: Annotated[Floats, per("64")]  # share of demand / members that the cluster fits, sum 1
    shapes: int
    cells_used: int
    lessons: int
    learnt_at: int  # the clock of the room then
    owner: Annotated[Ints, per("mix")]  # [cell] a workload of that shape
    members: Annotated[Ints, per("mix")]
    lesson: Annotated[Ints, per("mix")]  # the lesson that used it last
    cells: Annotated[Ints, per("slot+1")]  # those in use
