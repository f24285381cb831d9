"""What is queued, decided and enforced."""

from scheduling.engine.model import MILLI, Action, Reason, StepKind, Stop, WorkloadType
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
from scheduling.models.predictions import (
    Prediction,
    Predictor,
    PredictorKind,
    PredictorState,
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
    "Prediction",
    "Predictor",
    "PredictorKind",
    "PredictorState",
    "PriorityClass",
    "Queue",
    "Quota",
    "QuotaChange",
    "Reason",
    "Share",
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
