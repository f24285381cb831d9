"""The snapshot document as pydantic reads it: keys, types, ranges and defaults."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from scheduling.engine import model as m


def _exact_to_a_thousandth(value: float) -> float:
    if abs(value * m.MILLI - round(value * m.MILLI)) > 1e-6:
        raise ValueError("a number of GPUs exact to a thousandth")
    return value


def _aware(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


Gpus = Annotated[float, Field(ge=0), AfterValidator(_exact_to_a_thousandth)]
Instant = Annotated[datetime, AfterValidator(_aware)]
Name = Annotated[str, Field(min_length=1)]
Seconds = Annotated[float, Field(ge=0)]
WholeSeconds = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PolicyDoc(_Strict):
    history_strength: Annotated[float, Field(ge=0)] = 0
    preemption_delay_s: WholeSeconds = 0
    eviction_cap: Annotated[float, Field(gt=0)] | None = None
    placement: Literal["pack", "spread"] = "pack"
    order: Literal["arrival", "shortest_predicted"] = "arrival"
    stale_gang_grace_s: WholeSeconds = 60
    user_history_strength: Annotated[float, Field(ge=0)] = 1
    usage_half_life_s: Annotated[int, Field(ge=1)] = 7 * 86400
    charge_s: WholeSeconds = 3600
    reserve_after_s: WholeSeconds = 86400
    cooldown_s: WholeSeconds = 600
    fair_share_delay_s: WholeSeconds = 3600
    max_evictions: Count | None = 3
    max_moves: Annotated[int, Field(ge=0)] = 0


class GpuClassDoc(_Strict):
    name: Name
    exchange_rate: Annotated[float, Field(gt=0)] = 1


class NodeDoc(_Strict):
    name: Name
    gpu_class: Name
    gpus: Gpus
    cpus: Annotated[float, Field(ge=0)] | None = None
    memory_gib: Annotated[float, Field(ge=0)] | None = None
    topology: dict[str, str] = {}
    ready: bool = True
    foreign_gpus: Gpus = 0


class EntitlementDoc(_Strict):
    nominal: Gpus = 0
    borrowing_limit: Gpus | None = None
    lending_limit: Gpus | None = None
    weight: Annotated[float, Field(ge=0)] = 1


class LoweredDoc(EntitlementDoc):
    until: Instant


class QuotaDoc(EntitlementDoc):
    lowered: LoweredDoc | None = None
    budget_gpu_hours: Annotated[float, Field(ge=0)] | None = None
    used_gpu_hours: Annotated[float, Field(ge=0)] = 0
    period_ends: Instant | None = None


class QueueDoc(_Strict):
    name: Name
    parent: str | None = None
    priority: int = 0
    stop: m.Stop = m.Stop.NONE
    quotas: dict[str, QuotaDoc] = {}
    usage: dict[str, Annotated[float, Field(ge=0)]] = {}
    eviction_budget_gpus: Gpus | None = None
    max_running: Count | None = None
    max_running_per_user: Count | None = None
    max_gpus_per_user: Gpus | None = None
    user_usage: dict[str, Gpus] = {}
    eviction_budget_until: Instant | None = None
    min_run_time_s: WholeSeconds | None = None


class PriorityClassDoc(_Strict):
    name: Name
    value: int = 0
    preemptible: bool = True
    min_run_time_s: WholeSeconds = 0
    type: m.WorkloadType = m.WorkloadType.TRAINING
    max_wait_s: WholeSeconds | None = None


class MembersDoc(_Strict):
    min: Annotated[int, Field(ge=1)] = 1
    max: Annotated[int, Field(ge=1)] | None = None


class TopologyDoc(_Strict):
    required: str | None = None
    preferred: str | None = None


class PredictedDoc(_Strict):
    p50: Seconds
    p90: Seconds


class WorkloadDoc(_Strict):
    name: Name
    queue: str
    user: str = ""
    priority_class: Name
    members: MembersDoc = MembersDoc()
    gpus: Gpus = 1
    cpus: Annotated[float, Field(ge=0)] = 0
    memory_gib: Annotated[float, Field(ge=0)] = 0
    gpu_classes: list[str] = []
    topology: TopologyDoc = TopologyDoc()
    elastic: bool = False
    submitted: Instant
    predicted_s: PredictedDoc | None = None
    held: bool = False
    state: m.Phase = m.Phase.PENDING
    started: Instant | None = None
    checkpointed: Instant | None = None
    restart_cost_s: WholeSeconds = 0
    stale_since: Instant | None = None
    leaving: bool = False
    awaits_victims: bool = False
    gpu_class: str | None = None
    placement: dict[str, Annotated[int, Field(ge=1)]] = {}
    devices: dict[str, list[Count]] = {}
    evictions: Count = 0
    last_evicted: Instant | None = None
    last_evicted_for: str | None = None
    leaving_members: dict[str, Annotated[int, Field(ge=1)]] = {}
    leaving_devices: dict[str, list[Annotated[int, Field(ge=0)]]] = {}


class SnapshotDoc(_Strict):
    """Everything the engine sees."""

    now: Instant
    policy: PolicyDoc = PolicyDoc()
    gpu_classes: list[GpuClassDoc] = []
    nodes: list[NodeDoc] = []
    queues: list[QueueDoc] = []
    priority_classes: list[PriorityClassDoc] = []
    workloads: list[WorkloadDoc] = []
