"""The engine's numbers as structs of arrays: what the compiled kernels read and write.

Queues are numbered parents first (0 is the root), siblings by name; nodes and classes by name. GPU
figures are milli-GPU, CPU figures milli-CPU, memory MiB, times seconds since the epoch. Tables over
class and queue are indexed ``[class, queue]``, resources ``[resource, node]``.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Flags, Floats, Ints, declare, per
from scheduling.engine.state.units import GPUS


@declare
class SharingRules(NamedTuple):
    """By what rule what is above nominal is given out, by queue (``order.by_merit``)."""

    rule: Ints  # codes.FAIR and so on
    top: Ints  # the highest queue that gives out by merit with it, -1 where shares are by weight
    evictions_left: Floats  # that the subtree may order by merit
    played: Flags  # its own partition is played along


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
    sharing: SharingRules


@declare
class Quotas(NamedTuple):
    """Entitlements ``[class, queue]``; ``cap`` is the limit, or the nominal where the weight is zero.

    Hours are GPU-hours of the period that ends at ``period_ends``. Until ``grace`` nobody is evicted whom
    the quotas of ``Session.former`` would protect.
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

    ``size`` is what the queues may use ``[resource, node]`` (nothing on a node that is not ready),
    ``foreign`` what of it others hold for now; ``domain`` numbers the topology domain ``[level, node]``, the
    widest level first and machines last.
    ``allowed`` says who may use which: a workload of set ``Work.where`` those marked in its row; nodes of one
    ``allowed_kind`` are marked in the same rows.
    """

    gpu_class: Ints
    size: Ints
    foreign: Ints
    domain: Ints
    class_start: Ints
    of_class: Ints
    rate: Floats  # exchange rate [class]
    capacity: Ints  # [class]
    allowed: Flags  # [set, node]
    allowed_kind: Ints  # [node]


Counts = Annotated[Ints, per("slot")]
OrNone = Annotated[Ints, per("slot", fill=-1)]
Marks = Annotated[Flags, per("slot")]
Amounts = Annotated[Floats, per("slot")]
Endless = Annotated[Floats, per("slot", fill=float("inf"))]
NeverYet = Annotated[Floats, per("slot", fill=float("-inf"))]
"""Tables by slot, and what a slot begins with."""


@declare
class Work(NamedTuple):
    """Workload slots. ``queue`` and ``priority`` are -1 where the name is unknown."""

    phase: Counts
    queue: OrNone
    user: Counts  # number of the pair (queue, user)
    priority: OrNone  # index into Ranks
    need: Annotated[Ints, per("resource", "slot")]  # of one member
    beside: (
        Counts  # the same for those who need the same beside GPUs, CPUs and memory, 0 for nothing
    )
    least: Annotated[Ints, per("slot", fill=1)]
    most: Annotated[Ints, per("slot", fill=1)]
    elastic: Marks
    wish: Annotated[Ints, per("preference", "slot", fill=-1)]  # class, -1 past the end
    where: OrNone  # row of ``Nodes.allowed``, -1 anywhere
    required: OrNone  # topology level or -1
    preferred: OrNone
    segment: Counts  # of which members and in which level, see ``state.roles``; 0 for none
    submitted: Amounts
    predicted: Endless  # median of the run time from its start, infinite if unknown
    tie: Counts  # unique; decides last
    on_hold: Marks
    claims: Marks  # others leave, or left, for it; its holds are the seats that it claims
    room_due: (
        Endless  # when the room of its claim was, or should have been, free; infinite if unknown
    )
    taken: Counts  # milli-GPU evicted for it since it waits
    started: NeverYet
    checkpointed: NeverYet
    restart: Amounts
    stale: Endless  # since when it has fewer members than its least; infinite if it has all
    leaving: Marks
    gpu_class: OrNone
    members: Counts  # members that hold GPUs now
    ends_within: Endless  # run time at the policy's quantile from its start, infinite if unknown
    evictions: Counts
    evicted: NeverYet  # when last; minus infinity if never
    evicted_for: OrNone  # tie of whom the last eviction made room for, -1 if gone
    rank: Endless  # seconds, see ``merit.gittins``; infinite if unknown
    virtual: Endless  # start on its queue's own nominal, infinite before
    saved: Amounts  # seconds of work in checkpoints of earlier runs
    part_of: OrNone  # members that leave: slot of the gang they were of, ``evicted_for`` its tie; else -1
    roles: Annotated[
        Ints, per("role", "slot", fill=-1)
    ]  # slot with what a member needs (``state.roles``)
    role_members: Annotated[Ints, per("role", "slot")]  # the least
    elastic_role: Counts  # of unlike members those of which it may have more, else 0


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
    """Which work sits where, as linked lists: ``head[slot]`` then ``next[hold]``, -1 ends.

    A hold is ``members`` of one workload on one node; ``device`` is -1 for whole GPUs, otherwise the
    GPU of which each of the members has a share.
    """

    head: OrNone
    next: Annotated[Ints, per("hold", fill=-1)]
    node: Annotated[Ints, per("hold", fill=-1)]
    device: Annotated[Ints, per("hold", fill=-1)]
    members: Annotated[Ints, per("hold", fill=-1)]


@declare
class Pool(NamedTuple):
    """Slots and holds that nobody uses, as heaps of ``left[SLOTS]`` and ``left[HOLDS]``. The lowest are used
    first: what is in use lies close together and is read sooner.
    """

    slots: Counts
    holds: Annotated[Ints, per("hold")]
    left: Annotated[Ints, per("2")]


@declare
class Rules(NamedTuple):
    now: float
    history: float
    delay: float
    eviction_cap: float
    spread_weight: float  # of an even load against the demand mix; SPREADS where the policy does
    grace: float
    user_history: float
    half_life: float
    charge: float
    reserve_after: float
    cooldown: float
    fair_delay: float
    max_evictions: float
    max_moves: int
    claim_hold: float
    shortest: bool


@inner
def need_of(work: Work, w: int) -> int:
    return work.least[w] * work.need[GPUS, w]


@inner
def gpus_of(work: Work, v: int) -> int:
    return work.need[GPUS, v] * work.members[v]


@inner
def work_lost(work: Work, v: int, members: int, now: float) -> float:
    """GPU-seconds an eviction of ``v`` with ``members`` throws away: GPUs x (time since the last
    checkpoint + restart).
    """
    since = max(work.checkpointed[v], work.started[v])
    gpus = work.need[GPUS, v] * members
    return gpus / 1000.0 * (max(0.0, now - since) + work.restart[v])


@inner
def extra_of(work: Work, v: int) -> int:
    """Members that an elastic gang can do without."""
    return max(0, work.members[v] - work.least[v]) if work.elastic[v] else 0


@inner
def core_of(work: Work, v: int) -> int:
    """Milli-GPU that count as evicted when ``v`` is: not the members it can do without, which it would
    give up first.
    """
    return (work.members[v] - extra_of(work, v)) * work.need[GPUS, v]
