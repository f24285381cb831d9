"""The engine's numbers as structs of arrays: what the compiled kernels read and write.

Queues are numbered parents first (0 is the root), siblings by name; nodes and classes by name. GPU
figures are milli-GPU, CPU figures milli-CPU, memory MiB, times seconds since the epoch. Tables over
class and queue are indexed ``[class, queue]``, resources ``[resource, node]``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduling.engine.structs import declare

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

UNLIMITED = 1 << 60
"""Stands for "no limit" in integer tables; sums of a few of them stay below 2**63."""
EPS = 1e-3
"""Two shares closer than this (milli-GPU) are equal: far below the smallest quantity, 1 milli-GPU."""

GPUS, CPUS, MEMORY = 0, 1, 2
BLOCK, RACK, NODE = 0, 1, 2
LEVELS = ("block", "rack", "node")
ANYWHERE = -1

FREE, PENDING, RUNNING = 0, 1, 2
"""Phase of a workload's slot; a free slot holds no workload."""

NOW, LATER, RAW, EMPTY, BACKFILL = 0, 1, 2, 3, 4
"""Which room counts: free now and unclaimed, free once leaving work is gone, free now whoever claims
it, the whole node, or free now though reserved for later."""
LEFT, STEPPED_BACK, MOVED, BEGUN, TRIED, STRETCHED, MIXED = 0, 1, 2, 3, 4, 5, 6
"""In ``book.rounds``: how many rounds follow in this cycle; whether somebody has to be asked again; how
many move; how many have started on free room; how often some of those were to step back; how many hunts
went further than to fair shares; how many looked for moves beside evictions.
"""
BOUND = 5
"""In ``out.figures``: how many searches a cycle makes of the kind that was not made any more for this one."""
SINCE_DIVIDED, DIVISIONS = 0, 1
"""In ``book.shifts``: how many ask for something else since shares were found last; how often they were
found anew before a hunt.
"""


@declare
class Tree(NamedTuple):
    """Queues: ``kids[kid_start[q]:kid_start[q + 1]]`` are the children of ``q``, by name."""

    parent: Ints
    depth: Ints
    kid_start: Ints
    kids: Ints
    tier: Ints
    stop: Ints  # the strictest of the queue and its ancestors, see ``codes``
    budget: Ints  # GPUs that may still be evicted
    most_running: Ints  # workloads
    most_per_user: Ints  # workloads of one user
    most_gpus_per_user: Ints
    budget_until: Floats  # when more may be evicted again, 0 unknown
    min_run: Floats  # its own or that of the nearest queue above that states one, -1 if none does
    sharing: Ints  # codes.FAIR and so on
    top: Ints  # the highest queue that shares by merit with it, -1 where shares are by weight
    evictions_left: Floats  # that the subtree may order by merit
    played: Flags  # its own partition is played along


@declare
class Quotas(NamedTuple):
    """Entitlements ``[class, queue]``; ``cap`` is the limit, or the nominal where the weight is zero.

    Hours are GPU-hours of the period that ends at ``period_ends``. Until ``grace`` nobody is evicted whom
    the quotas of ``World.former`` would protect.
    """

    nominal: Ints
    limit: Ints
    cap: Ints
    lending: Ints
    weight: Floats
    usage: Floats
    budget_hours: Floats
    used_hours: Floats
    period_ends: Floats
    grace: Floats  # minus infinity where nothing was lowered


@declare
class Users(NamedTuple):
    """Pairs of queue and user: the pair of the same user in the queue above, -1 below the root, and the
    milli-GPU held there on average, older time counting less.
    """

    above: Ints
    usage: Ints


@declare
class Nodes(NamedTuple):
    """``of_class[class_start[c]:class_start[c + 1]]`` are the nodes of class ``c``, by name.

    ``size`` is what the queues may use ``[resource, node]`` (nothing on a node that is not ready);
    ``domain`` numbers the topology domain ``[level, node]``. ``allowed`` says who may use which: a workload
    of set ``Work.where`` those marked in its row; nodes of one ``allowed_kind`` are marked in the same rows.
    """

    gpu_class: Ints
    size: Ints
    domain: Ints
    class_start: Ints
    of_class: Ints
    rate: Floats  # exchange rate [class]
    capacity: Ints  # [class]
    allowed: Flags  # [set, node]
    allowed_kind: Ints  # [node]


@declare
class Work(NamedTuple):
    """Workload slots. ``queue`` and ``priority`` are -1 where the name is unknown."""

    phase: Ints
    queue: Ints
    user: Ints  # number of the pair (queue, user)
    priority: Ints  # index into Ranks
    need: Ints  # [resource, slot], one member
    least: Ints
    most: Ints
    elastic: Flags
    wish: Ints  # [preference, slot]: class, -1 past the end
    where: Ints  # row of ``Nodes.allowed``, -1 anywhere
    required: Ints  # topology level or -1
    preferred: Ints
    submitted: Floats
    predicted: Floats  # median of the run time from its start, infinite if unknown
    tie: Ints  # unique; decides last
    held: Flags
    claims: Flags  # its victims of an earlier plan left for it
    started: Floats
    checkpointed: Floats
    restart: Floats
    stale: Floats  # since when it has fewer members than its least; infinite if it has all
    leaving: Flags
    gpu_class: Ints
    members: Ints  # members that hold GPUs now
    predicted_p90: Floats  # infinite if unknown
    evictions: Ints
    evicted: Floats  # when last; minus infinity if never
    evicted_for: Ints  # tie of whom the last eviction made room for, -1 if gone
    rank: Floats  # seconds, see ``gittins``; infinite if unknown
    virtual: Floats  # start on its queue's own nominal, infinite before
    saved: Floats  # seconds of work in checkpoints of earlier runs
    part_of: (
        Ints  # members that leave: slot of the gang they were of, ``evicted_for`` its tie; else -1
    )


@declare
class Ranks(NamedTuple):
    """Priority classes."""

    value: Ints
    preemptible: Flags
    min_run: Floats
    max_wait: Floats
    apart: Flags  # members go to different nodes where they can


@declare
class Holds(NamedTuple):
    """Who sits where, as linked lists: ``head[slot]`` then ``next[hold]``, -1 ends.

    A hold is ``members`` of one workload on one node; ``device`` is -1 for whole GPUs, otherwise the
    GPU of which each of the members has a share.
    """

    head: Ints
    next: Ints
    node: Ints
    device: Ints
    members: Ints


@declare
class Pool(NamedTuple):
    """Slots and holds that nobody uses, as heaps of ``left[SLOTS]`` and ``left[HOLDS]``. The lowest are used
    first: what is in use lies close together and is read sooner.
    """

    slots: Ints
    holds: Ints
    left: Ints


@declare
class Rules(NamedTuple):
    now: float
    history: float
    delay: float
    eviction_cap: float
    spread: bool
    grace: float
    user_history: float
    half_life: float
    charge: float
    reserve_after: float
    cooldown: float
    fair_delay: float
    max_evictions: float
    max_moves: int
    shortest: bool


@declare
class Division(NamedTuple):
    """The division ``[class, queue]``. ``capacity`` is what the subtree divides: share + kept.

    A share is ``guaranteed + spare + remainder``: the guarantee, the part of its tier's spare by ``ratio``
    (w of the rule, from ``norm``, n, and ``usage``, u), and what those with a ratio left over, by weight
    alone. ``want`` and ``pull`` are scratch of the filling.
    """

    fair: Floats
    guaranteed: Floats
    kept: Floats
    kept_below: Floats  # kept back by the children together
    demand: Ints
    capacity: Floats
    short: Flags  # its guarantee was not met: oversubscribed
    spare: Floats
    remainder: Floats
    norm: Floats
    ratio: Floats
    usage: Floats
    want: Floats
    pull: Floats


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
class Book(NamedTuple):
    """What queues hold, kept up as decisions fall."""

    held: Ints  # [class, queue] without leaving work, with what is reserved
    fixed: Ints  # the part of it that is not preemptible
    leaving: Ints  # [class, queue] what leaving work still holds
    kept: Ints  # [class, queue] what it keeps back of the nominal that it does not hold
    lends: Ints  # [class] 1 where any queue with nominal has a lending limit
    by_user: (
        Ints  # what pairs (queue, user) held of late and hold, classes weighed by exchange rate
    )
    budget: Ints
    ratio: Floats  # dominant ratio of the queue
    fair_size: Ints  # [queue] its fair shares in milli-GPU of the reference class, together
    waits_since: Floats  # [queue] when the first of those who wait in the subtree was submitted
    turn: Ints  # [class, queue]: the waiting workload that goes first, -1 none
    turn_until: Floats  # [class, queue]: when its turn is expected to come
    holder: Ints  # [class]: the workload that reserves free GPUs, -1 none
    holder_seats: Ints  # [class]: how many members it holds nodes for
    holder_until: Floats  # [class]: when the reserved GPUs are expected to be free
    promised: Ints  # [class]: the first to whom room was promised, -1 none
    spent: Ints  # [1]: GPUs evicted for the workload at hand
    forbidden: Ints  # [5]: 1 where a search was denied a victim, by what it might overlook
    supply: Ints  # [class]: GPUs to divide
    asked: Ints  # [class, queue]: what leaves hold and ask for as the cycle begins
    asking: Ints  # [class, queue]: the same as it was divided last
    shifts: Ints  # [2]: SINCE_DIVIDED, DIVISIONS
    charged: Ints  # [class, queue]: micro-GPU of usage that recent starts are charged beforehand
    graced: Floats  # [class]: when the last grace of a lowering ends, 0 if none runs
    ceiling: Ints  # [class, queue]: the lowest limit on the way to the root
    rationed: Ints  # [class]: 1 where any queue has spent its GPU-hours
    limited: Ints  # [1]: 1 where any queue limits workloads or users; the rest is kept up only then
    running: Ints  # [queue] workloads
    user_running: Ints  # [pair]
    user_gpus: Ints  # [pair]
    queued: Ints  # [queue] waiting workloads that the limits let ask
    user_queued: Ints  # [pair]
    user_asks: Ints  # [pair] what they ask for
    extra: Ints  # [class, queue]: what those ask for who are left out of the line
    begun: Ints  # [class, queue]: what started in this cycle
    rounds: Ints  # [7]: LEFT and so on
    in_vain: Ints  # [own or others, class, queue]: the last for whom stepping back would not do
    in_vain_at: Ints  # [own or others, class, queue]: the memo's epoch then
    begun_until: Floats  # [class, queue]: when the last of it is expected to be over (P90)


@declare
class Seats(NamedTuple):
    """Where the members of one workload go, one entry a member, and scratch by node."""

    node: Ints
    device: Ints
    slots: Ints
    known: Ints  # memo of what fits on empty nodes, see ``fitness``


@declare
class Out(NamedTuple):
    """Decisions by slot, in ``order``; ``figures`` are the numbers a sentence quotes."""

    action: Ints
    reason: Ints
    gpu_class: Ints
    members: Ints
    rival: Ints  # the workload it is for, or that goes first
    blame: Ints  # the queue at which it failed
    until: Floats
    lost: Floats
    figures: Floats  # [slot, 6]; ``BOUND`` is one of them
    noted: Flags  # [slot]: stands in ``order``
    served: Flags  # [slot]: others leave for it
    stepped_back: Flags  # [slot]: see ``precedence``
    like: Ints  # [slot]: whose line tells all but action, reason and until, -1 its own; see ``spell_out``
    order: Ints
    begun: Ints  # who started on free room in this cycle, ``book.rounds[BEGUN]`` of them
    first: Ints  # [slot] first seat in the pool, members seats long
    pool_node: Ints
    pool_device: Ints
    used: Ints  # [0] decisions, [1] seats


Kernel = Any
"""A compiled function; Numba's wrappers carry no types of their own."""
