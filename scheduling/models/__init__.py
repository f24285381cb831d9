"""What is queued, decided and enforced."""

from scheduling.engine.model import MILLI, Action, Reason, Sharing, StepKind, Stop, WorkloadType
from scheduling.engine.reasons import headline
from scheduling.models.clusters import (
    Cluster,
    ClusterMode,
    GpuClass,
    Guardrail,
    Node,
    NodePool,
    Standing,
)
from scheduling.models.ledger import (
    Cycle,
    CycleRecord,
    Decision,
    Eviction,
    EvictionRule,
    Share,
    UsageSample,
    UserUsage,
)
from scheduling.models.queues import PodSecurity, Queue, Quota, QuotaChange
from scheduling.models.workloads import (
    CheckpointHabit,
    Outcome,
    PriorityClass,
    State,
    Transition,
    Workload,
)

__all__ = [
    "MILLI",
    "Action",
    "CheckpointHabit",
    "Cluster",
    "ClusterMode",
    "Cycle",
    "CycleRecord",
    "Decision",
    "Eviction",
    "EvictionRule",
    "GpuClass",
    "Guardrail",
    "Node",
    "NodePool",
    "Outcome",
    "PodSecurity",
    "PriorityClass",
    "Queue",
    "Quota",
    "QuotaChange",
    "Reason",
    "Share",
    "Sharing",
    "Standing",
    "State",
    "StepKind",
    "Stop",
    "Transition",
    "UsageSample",
    "UserUsage",
    "Workload",
    "WorkloadType",
    "headline",
]
