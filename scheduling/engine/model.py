"""The engine's values: what a plan is made from and what it says.

Everything here is frozen data without behaviour that could look outside: no Django, no clock, no dice.
GPU figures are integers in milli-GPU (1 GPU = 1000), so sums are exact; CPU figures are milli-CPU,
memory is MiB, durations are seconds, instants are aware UTC datetimes. ``None`` means unlimited.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from scheduling.engine.enums import Action as Action
from scheduling.engine.enums import Lapse as Lapse
from scheduling.engine.enums import Outage as Outage
from scheduling.engine.enums import Phase as Phase
from scheduling.engine.enums import Reason as Reason
from scheduling.engine.enums import Rule as Rule
from scheduling.engine.enums import Sharing as Sharing
from scheduling.engine.enums import StepKind as StepKind
from scheduling.engine.enums import Stop as Stop
from scheduling.engine.enums import WorkloadType as WorkloadType
from scheduling.engine.workload import MILLI as MILLI
from scheduling.engine.workload import Members as Members
from scheduling.engine.workload import PredictedRunTime as PredictedRunTime
from scheduling.engine.workload import Role as Role
from scheduling.engine.workload import Segment as Segment
from scheduling.engine.workload import Topology as Topology
from scheduling.engine.workload import Workload as Workload

UNLIMITED = 1 << 60
"""Stands for "no limit" in integer tables; sums of a few of them stay below 2**63."""

TOPOLOGY_LEVELS = ("block", "rack")
"""From the widest on; a snapshot may name others. The node itself is below them all."""

NODE_LEVEL = "node"
MOST_TOPOLOGY_LEVELS = 6

MOST_ROLES = 8

PLACES = "places for pods"
"""Of what nodes state beside GPUs, the one that each member takes one of, whether it says so or not."""


@dataclass(frozen=True, slots=True)
class GpuClass:
    """Interchangeable GPUs. ``exchange_rate`` weighs classes against each other (1 = reference)."""

    name: str
    exchange_rate: float = 1.0


@dataclass(frozen=True, slots=True)
class Node:
    """One machine. ``foreign_gpus`` is held by pods outside the queues (milli-GPU)."""

    name: str
    gpu_class: str
    gpus: int
    cpus: int | None = None
    memory_mib: int | None = None
    topology: Mapping[str, str] = field(default_factory=dict)
    ready: bool = True
    foreign_gpus: int = 0
    dedicated: bool = False
    """Only workloads whose node set names it may run there."""
    outage: Outage | None = None
    """Why it is not ready, where that is known."""
    beside: Mapping[str, int] = field(default_factory=dict)
    """What else its pods take of it: amounts by name. A node has none of what another one states alone."""
    foreign_beside: Mapping[str, int] = field(default_factory=dict)
    """What pods outside the queues hold of that."""


@dataclass(frozen=True, slots=True)
class NodeSet:
    """The nodes, by name, that workloads with the same constraints may use."""

    name: str
    nodes: frozenset[str] = frozenset()
    constraints: str = ""
    """What they are bound by, in words; without any, whatever can bind to nodes."""


@dataclass(frozen=True, slots=True)
class LoweredQuota:
    """A quota as it was before it was lowered. Until ``until`` nobody is evicted whom it would protect."""

    until: datetime
    nominal: int = 0
    borrowing_limit: int | None = None
    lending_limit: int | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Quota:
    """A queue's entitlement to one class (milli-GPU); ``None`` limits are unlimited.

    ``used_gpu_hours`` of ``budget_gpu_hours`` are spent in the period that ends at ``period_ends``.
    """

    nominal: int = 0
    borrowing_limit: int | None = None
    lending_limit: int | None = None
    weight: float = 1.0
    lowered: LoweredQuota | None = None
    budget_gpu_hours: float | None = None
    used_gpu_hours: float = 0.0
    period_ends: datetime | None = None


@dataclass(frozen=True, slots=True)
class Queue:
    """A node of the quota tree below the implied root (``parent`` None: directly below it).

    ``usage`` maps class to decayed usage as a share of that class's capacity.
    ``eviction_budget_gpus`` is what may still be evicted from it now (milli-GPU). The limits count what
    runs in the queue and all below it: workloads, workloads of one user, milli-GPU of one user.
    ``user_usage`` maps user to the milli-GPU that the user held in it on average, older time counting
    less; leaves alone state it.
    """

    name: str
    parent: str | None = None
    priority: int = 0
    stop: Stop = Stop.NONE
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    usage: Mapping[str, float] = field(default_factory=dict)
    eviction_budget_gpus: int | None = None
    max_running: int | None = None
    max_running_per_user: int | None = None
    max_gpus_per_user: int | None = None
    user_usage: Mapping[str, int] = field(default_factory=dict)
    eviction_budget_until: datetime | None = None
    """When more of it may be evicted again."""
    min_run_time_s: int | None = None
    """Shields its work, instead of the time of the priority class, from whom it meets directly above this
    queue; None is as in the queue above.
    """
    sharing: Sharing | None = None
    """None is as in the queue above. Below a queue that shares by promise or throughput everybody does."""
    evictions_left: float | None = None
    """How many more its subtree may evict to keep its promise, or for throughput; None is unlimited."""
    played_along: bool = False
    """Its own partition is: a workload without a virtual start there would still wait."""


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """``max_wait_s``: work that has waited longer goes first in its leaf, and nobody behind it delays it any
    more; None is never.
    """

    name: str
    value: int = 0
    preemptible: bool = True
    min_run_time_s: int = 0
    type: WorkloadType = WorkloadType.TRAINING
    max_wait_s: int | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules' settings; each default is the one of the snapshot file.

    ``history_strength`` is k of the division, ``user_history_strength`` weighs a user's decayed usage
    against what the user holds now. Usage halves in ``usage_half_life_s``; a start is charged for its
    first ``charge_s`` seconds at once. A gang that keeps nodes or a turn is passed by work that is over in
    time, by ``backfill_quantile`` of its run time. Where the policy packs, ``spread_weight`` weighs an even
    load against the demand mix; 0 packs alone. Nodes are kept for a gang among work without predicted run
    times only after ``reserve_after_s``. Within ``cooldown_s`` evicted work takes
    from nobody, but what nominal owes to a wish of one class. Above
    its nominal a queue takes its fair share back only for work that waited ``fair_share_delay_s``, and not
    from work evicted ``max_evictions`` times, which in turn starts again only inside fair share; where a
    subtree gives out by merit, that one leaves for nobody. At most ``max_moves`` workloads move to make room
    for one. A claim lapses where its workload cannot start ``claim_hold_s`` after its room was due.
    """

    history_strength: float = 0.0
    preemption_delay_s: int = 0
    eviction_cap: float | None = None
    placement: str = "pack"
    spread_weight: float = 0.0
    order: str = "arrival"
    stale_gang_grace_s: int = 60
    user_history_strength: float = 1.0
    usage_half_life_s: int = 7 * 86400
    charge_s: int = 3600
    reserve_after_s: int = 86400
    backfill_quantile: float = 0.9
    cooldown_s: int = 600
    fair_share_delay_s: int = 3600
    max_evictions: int | None = 3
    max_moves: int = 0
    claim_hold_s: int = 600
    sharing: Sharing = Sharing.FAIR_SHARE
    """Of the whole tree, for queues that say nothing else."""
    evictions_left: float | None = None
    """As of a queue, for the whole tree."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The engine's frozen input."""

    now: datetime
    gpu_classes: tuple[GpuClass, ...] = ()
    nodes: tuple[Node, ...] = ()
    queues: tuple[Queue, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    workloads: tuple[Workload, ...] = ()
    policy: Policy = Policy()
    node_sets: tuple[NodeSet, ...] = ()
    topology_levels: tuple[str, ...] = TOPOLOGY_LEVELS
    """What ``Node.topology`` names, from the widest on."""

    @property
    def levels(self) -> tuple[str, ...]:
        """Of which a gang may ask for one: those of the topology, then the node."""
        return (*self.topology_levels, NODE_LEVEL)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a division: ``amount`` (milli-GPU, negative: taken off) and, where the spare was short,
    the n, u and w of ``w = max(0, n + k (n - u))``.
    """

    kind: StepKind
    amount: float
    n: float = 0.0
    u: float = 0.0
    w: float = 0.0
    tier: int = 0


@dataclass(frozen=True, slots=True)
class Share:
    """A queue's division of one class, all in milli-GPU.

    ``fair_share`` and ``potential`` are exact (floats of milli-GPU), the rest are what they sum.
    ``limit`` None is unlimited. ``lent`` is idle nominal others may use, ``kept_back`` idle nominal the
    lending limit withholds. ``pending`` is all that the subtree asks for beyond ``allocated``.
    """

    fair_share: float
    potential: float
    allocated: int
    nominal: int
    limit: int | None
    demand: int
    pending: int
    guaranteed: float
    lent: int = 0
    kept_back: int = 0
    oversubscribed: bool = False
    steps: tuple[Step, ...] = ()
    """What the share is the sum of; none at the root."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One line of a plan. ``numbers`` holds what the sentence quotes (GPUs as numbers of GPUs)."""

    workload: str
    action: Action
    reason: Reason
    sentence: str = ""
    sealed: str = ""
    """The sentence without names and figures of others' queues and work; empty where it has none."""
    numbers: Mapping[str, float | int | str | None] = field(default_factory=dict)
    queue: str = ""
    gpu_class: str | None = None
    members: int = 0
    placement: Mapping[str, int] = field(default_factory=dict)
    roles: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Of a gang with roles, whose ``members`` and ``placement`` are parts: members by role and node."""
    devices: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    for_workload: str | None = None
    rule: str = ""
    """What allowed it: a ``Rule`` of what leaves, shrinks or moves; why a claim lapses, a ``Lapse``."""
    victims: tuple[str, ...] = ()
    """Of a claim, made, kept or lapsed: its victims, by name."""
    until: datetime | None = None
    position: int | None = None
    """1-based place among the waiting workloads of its queue, in planned order."""
    lost_gpu_s: float = 0.0
    """Evictions: GPU-seconds of work thrown away (GPUs x time since checkpoint + restart)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The engine's output: the division and the decisions in the order they are to be carried out."""

    fair_share: Mapping[str, Mapping[str, Share]]
    """queue -> class -> share; the implied root is under the empty name."""
    decisions: tuple[Decision, ...]


class Fault(NamedTuple):
    """One place of a snapshot that cannot be: what stands at ``path``, what was expected, what to do."""

    path: str
    found: str
    expected: str
    remedy: str = "correct it"


class SnapshotError(ValueError):
    """A snapshot that contradicts itself."""

    def __init__(self, faults: Iterable[Sequence[str]]) -> None:
        """``faults``: what a Fault is made of."""
        self.faults = [Fault(*fault) for fault in faults]
        super().__init__(
            "; ".join(
                f"{fault.path}: {fault.found}, expected {fault.expected}" for fault in self.faults
            )
        )
