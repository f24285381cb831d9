"""What is queued, decided and enforced."""

from scheduling.engine.model import MILLI, Action, Reason, Sharing, StepKind, Stop, WorkloadType
from scheduling.engine.reasons.catalogue import headline
from scheduling.models.clusters import (
    Cluster,
    ClusterMode,
    GpuClass,
    Guardrail,
    Node,
    NodePool,
    Standing,
)
from scheduling.models.consolidation import Consolidation, ConsolidationState
from scheduling.models.events import Announcement, Delivery
from scheduling.models.foresight import (
    Cause,
    ForecastOutcome,
    ForecastRun,
    StartForecast,
    WhatIf,
    WhatIfKind,
    WhatIfState,
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
    "Announcement",
    "Cause",
    "CheckpointHabit",
    "Cluster",
    "ClusterMode",
    "Consolidation",
    "ConsolidationState",
    "Cycle",
    "CycleRecord",
    "Decision",
    "Delivery",
    "Eviction",
    "EvictionRule",
    "ForecastOutcome",
    "ForecastRun",
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
    "Sharing",
    "Standing",
    "StartForecast",
    "State",
    "StepKind",
    "Stop",
    "Transition",
    "UsageSample",
    "UserUsage",
    "WhatIf",
    "WhatIfKind",
    "WhatIfState",
    "Workload",
    "WorkloadType",
    "headline",
]
