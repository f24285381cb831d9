"""The snapshot document as pydantic reads it: keys, types, ranges and defaults."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from scheduling.engine import model as m


def _exact_to_a_thousandth(value: float) -> float:
    if abs(value * m.MILLI - round(value * m.MILLI)) > 1e-6:
        raise ValueError("a number of GPUs exact to a thousandth")
    return value


def _no_timestamp(value: object) -> object:
    if isinstance(value, int | float):
        raise ValueError("a time, as 2026-01-05T10:00:00Z")
    return value


def _aware(value: datetime) -> datetime:
    if not FIRST_YEAR <= value.year <= LAST_YEAR:
        raise ValueError(f"a time in the years {FIRST_YEAR} to {LAST_YEAR}")
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _printable(value: str) -> str:
    if not value.isprintable():
        raise ValueError("printable characters only")
    return value


# Bounds keep sums of milli-GPU (and of mebibytes) inside 64 bits, tables of seats and GPUs inside
# memory, and every instant plus every duration inside the calendar.
FIRST_YEAR, LAST_YEAR = 1971, 2199
MOST_HELD = 100_000
MOST = 1_000_000_000

Number = Annotated[float, Field(ge=0, le=MOST)]
Gpus = Annotated[Number, AfterValidator(_exact_to_a_thousandth)]
HeldGpus = Annotated[float, Field(ge=0, le=MOST_HELD), AfterValidator(_exact_to_a_thousandth)]
Instant = Annotated[
    datetime, Field(strict=False), BeforeValidator(_no_timestamp), AfterValidator(_aware)
]
LONGEST = 512
Text = Annotated[str, Field(max_length=LONGEST), AfterValidator(_printable)]
Name = Annotated[str, Field(min_length=1, max_length=LONGEST), AfterValidator(_printable)]
Seconds = Number
WholeSeconds = Annotated[int, Field(ge=0, le=MOST)]
Count = Annotated[int, Field(ge=0, le=MOST)]
Members = Annotated[int, Field(ge=1, le=MOST_HELD)]
AnyMembers = Annotated[int, Field(ge=0, le=MOST_HELD)]
Device = Annotated[int, Field(ge=0, lt=MOST_HELD)]
Rank = Annotated[int, Field(ge=-MOST, le=MOST)]
Strength = Annotated[float, Field(ge=0, le=1000)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class PolicyDoc(_Strict):
    history_strength: Strength = 0
    preemption_delay_s: WholeSeconds = 0
    eviction_cap: Annotated[float, Field(gt=0, le=MOST)] | None = None
    placement: Literal["pack", "spread"] = "pack"
    spread_weight: Annotated[float, Field(ge=0, le=1)] = 0
    order: Literal["arrival", "shortest_predicted", "rank"] = "arrival"
    stale_gang_grace_s: WholeSeconds = 60
    user_history_strength: Strength = 1
    usage_half_life_s: Annotated[int, Field(ge=1, le=MOST)] = 7 * 86400
    charge_s: WholeSeconds = 3600
    reserve_after_s: WholeSeconds = 86400
    backfill_quantile: Annotated[float, Field(ge=0.5, le=0.99)] = 0.9
    cooldown_s: WholeSeconds = 600
    fair_share_delay_s: WholeSeconds = 3600
    max_evictions: Count | None = 3
    max_moves: Count = 0
    claim_hold_s: Annotated[
        WholeSeconds,
        Field(
            description="A claim lapses so long after its room was due, where that is not there."
        ),
    ] = 600
    sharing: Annotated[m.Sharing, Field(strict=False)] = m.Sharing.FAIR_SHARE
    evictions_left: Number | None = None


class GpuClassDoc(_Strict):
    name: Name
    exchange_rate: Annotated[float, Field(ge=0.001, le=1_000_000)] = 1


class NodeDoc(_Strict):
    name: Name
    gpu_class: Name
    gpus: HeldGpus
    cpus: Number | None = None
    memory_gib: Number | None = None
    topology: dict[Text, Text] = {}
    ready: bool = True
    foreign_gpus: HeldGpus = 0
    overfull: Annotated[
        bool, Field(description="More is held there than it has: it lost GPUs that are in use.")
    ] = False
    dedicated: Annotated[
        bool, Field(description="Only workloads of a node set that names it may run there.")
    ] = False
    outage: Annotated[m.Outage | None, Field(strict=False, description="Why it is not ready.")] = (
        None
    )
    beside: Annotated[
        dict[Name, Count], Field(description="What else pods take of it, amounts by name.")
    ] = {}
    foreign_beside: Annotated[
        dict[Name, Count], Field(description="What pods outside the queues hold of that.")
    ] = {}


class NodeSetDoc(_Strict):
    """Nodes that workloads with the same constraints may use."""

    name: Name
    nodes: list[Text] = []
    constraints: Annotated[Text, Field(description="What they are bound by, in words.")] = ""


class EntitlementDoc(_Strict):
    nominal: Gpus = 0
    borrowing_limit: Gpus | None = None
    lending_limit: Gpus | None = None
    weight: Number = 1


class LoweredDoc(EntitlementDoc):
    until: Instant


class QuotaDoc(EntitlementDoc):
    lowered: LoweredDoc | None = None
    budget_gpu_hours: Number | None = None
    used_gpu_hours: Number = 0
    period_ends: Instant | None = None


class QueueDoc(_Strict):
    name: Name
    parent: Text | None = None
    priority: Rank = 0
    stop: Annotated[m.Stop, Field(strict=False)] = m.Stop.NONE
    quotas: dict[Text, QuotaDoc] = {}
    usage: dict[Text, Number] = {}
    eviction_budget_gpus: Gpus | None = None
    max_running: Count | None = None
    max_running_per_user: Count | None = None
    max_gpus_per_user: Gpus | None = None
    user_usage: dict[Text, HeldGpus] = {}
    eviction_budget_until: Instant | None = None
    min_run_time_s: WholeSeconds | None = None
    sharing: Annotated[
        m.Sharing | None,
        Field(strict=False, description="How what is above nominal is given out below it."),
    ] = None
    evictions_left: Annotated[
        Number | None, Field(description="How many more its subtree may evict by merit.")
    ] = None
    played_along: Annotated[
        bool,
        Field(
            description="A workload without a virtual start would still wait on its nominal alone."
        ),
    ] = False


class PriorityClassDoc(_Strict):
    name: Name
    value: Rank = 0
    preemptible: bool = True
    min_run_time_s: WholeSeconds = 0
    type: Annotated[m.WorkloadType, Field(strict=False)] = m.WorkloadType.TRAINING
    max_wait_s: WholeSeconds | None = None


class MembersDoc(_Strict):
    min: Members = 1
    max: Members | None = None


class RangeDoc(_Strict):
    """How many members a role has at least and at most."""

    min: AnyMembers
    max: Members


class RoleDoc(_Strict):
    """Members of a gang that are alike."""

    name: Name
    members: Annotated[
        Members | RangeDoc,
        Field(
            description="A number; min and max of the one role by which an elastic gang grows and shrinks."
        ),
    ] = 1
    gpus: HeldGpus
    cpus: Number = 0
    memory_gib: Number = 0
    beside: dict[Name, Count] = {}
    placement: dict[Text, Members] = {}
    leaving: Annotated[
        dict[Text, Members],
        Field(description="Members by node that it gave up, whose pods still hold GPUs."),
    ] = {}

    @property
    def least(self) -> int:
        return self.members if isinstance(self.members, int) else self.members.min

    @property
    def most(self) -> int:
        return self.members if isinstance(self.members, int) else self.members.max


class SegmentDoc(_Strict):
    members: Members
    required: Text | None = None
    preferred: Text | None = None


class TopologyDoc(_Strict):
    required: Text | None = None
    preferred: Text | None = None
    segment: Annotated[
        SegmentDoc | None,
        Field(description="So many members at a time inside one domain of a level."),
    ] = None


class PredictedDoc(_Strict):
    p50: Seconds
    p90: Seconds


class WorkloadDoc(_Strict):
    name: Name
    queue: Text
    user: Text = ""
    priority_class: Name
    members: MembersDoc = MembersDoc()
    roles: Annotated[
        list[RoleDoc],
        Field(
            description="Of a gang of unlike members, in place of gpus, members, cpus, memory_gib,"
            " beside and placement."
        ),
    ] = []
    gpus: HeldGpus = 1
    cpus: Number = 0
    memory_gib: Number = 0
    beside: Annotated[
        dict[Name, Count],
        Field(description="What else a member takes of its node, by the names that nodes state."),
    ] = {}
    gpu_classes: list[Text] = []
    topology: TopologyDoc = TopologyDoc()
    elastic: bool = False
    submitted: Instant
    predicted_s: PredictedDoc | None = None
    held: bool = False
    state: Annotated[m.Phase, Field(strict=False)] = m.Phase.PENDING
    started: Instant | None = None
    checkpointed: Instant | None = None
    restart_cost_s: WholeSeconds = 0
    stale_since: Instant | None = None
    leaving: bool = False
    awaits_victims: bool = False
    victims: Annotated[
        list[Text], Field(description="Its victims, of the workloads that still are.")
    ] = []
    claimed_since: Instant | None = None
    room_due: Annotated[
        Instant | None,
        Field(description="When the room of its claim was free, or should have been."),
    ] = None
    taken_gpus: Annotated[
        Gpus, Field(description="GPUs that were evicted for it since it waits.")
    ] = 0
    gpu_class: Text | None = None
    placement: dict[Text, Members] = {}
    misplaced: Annotated[
        bool, Field(description="It runs with more or fewer members placed than it has.")
    ] = False
    devices: dict[Text, list[Device]] = {}
    evictions: Annotated[Count, Field(description="In the 24 hours before now.")] = 0
    last_evicted: Instant | None = None
    last_evicted_for: Text | None = None
    leaving_members: dict[Text, Members] = {}
    leaving_devices: dict[Text, list[Device]] = {}
    node_set: Annotated[
        Text | None,
        Field(description="The nodes it may use; without one, all that are not dedicated."),
    ] = None
    rank_s: Annotated[
        Seconds | None, Field(description="Gittins index of its run time at the time it has had.")
    ] = None
    virtual_start: Annotated[
        Instant | None,
        Field(description="When it would have started on its queue's nominal alone."),
    ] = None
    saved_s: Annotated[
        Seconds, Field(description="Work that checkpoints of earlier runs hold.")
    ] = 0


class SnapshotDoc(_Strict):
    """Everything the engine sees."""

    now: Instant
    policy: PolicyDoc = PolicyDoc()
    gpu_classes: list[GpuClassDoc] = []
    nodes: list[NodeDoc] = []
    queues: list[QueueDoc] = []
    priority_classes: list[PriorityClassDoc] = []
    workloads: list[WorkloadDoc] = []
    node_sets: list[NodeSetDoc] = []
    topology_levels: Annotated[
        list[Name],
        Field(max_length=m.MOST_TOPOLOGY_LEVELS, description="Of nodes' topology, widest first."),
    ] = list(m.TOPOLOGY_LEVELS)
