"""What is queued, decided and enforced."""

from scheduling.engine.model import MILLI, Action, Reason, Sharing, StepKind, Stop, WorkloadType
from scheduling.engine.reasons.catalogue import headline
from scheduling.models.adapting import Adaptation, AdaptingParameter, AdaptingTrial, TrialState
from scheduling.models.capacity import CapacityCurve, CapacityPoint, CapacityStudy
from scheduling.models.clusters import (
    ClassOrder,
    Cluster,
    ClusterMode,
    GpuClass,
    Guardrail,
    Node,
    NodePool,
    Standing,
)
from scheduling.models.consolidation import PARTLY_DONE, Consolidation, ConsolidationState
from scheduling.models.credentials import Credential, LostCredentialError
from scheduling.models.demand import DemandForecast
from scheduling.models.events import Announcement, Delivery
from scheduling.models.foresight import (
    Cause,
    Change,
    ForecastOutcome,
    ForecastRun,
    StartForecast,
    ToldStart,
    WhatIf,
    WhatIfKind,
    WhatIfState,
)
from scheduling.models.lab import Experiment, Variant, VariantReplay, VariantState
from scheduling.models.ledger import (
    Cycle,
    CycleRecord,
    Decision,
    Eviction,
    EvictionRule,
    LapseCause,
    Share,
    UsageSample,
    UserUsage,
)
from scheduling.models.loans import Loan
from scheduling.models.metrics import GpuUse, IdleEnd, IdleSpell
from scheduling.models.passes import TaskPass
from scheduling.models.predictions import (
    Prediction,
    Predictor,
    PredictorKind,
    PredictorState,
    RunTimeQuestion,
)
from scheduling.models.processes import Lane, Process, Role
from scheduling.models.queues import PodSecurity, Queue, Quota, QuotaChange
from scheduling.models.rollups import WorkDay
from scheduling.models.workloads import (
    CheckpointHabit,
    EndCause,
    Outcome,
    PriorityClass,
    State,
    Transition,
    Workload,
)

__all__ = [
    "MILLI",
    "PARTLY_DONE",
    "Action",
    "Adaptation",
    "AdaptingParameter",
    "AdaptingTrial",
    "Announcement",
    "CapacityCurve",
    "CapacityPoint",
    "CapacityStudy",
    "Cause",
    "Change",
    "CheckpointHabit",
    "ClassOrder",
    "Cluster",
    "ClusterMode",
    "Consolidation",
    "ConsolidationState",
    "Credential",
    "Cycle",
    "CycleRecord",
    "Decision",
    "Delivery",
    "DemandForecast",
    "DifferenceKind",
    "EndCause",
    "Eviction",
    "EvictionRule",
    "Experiment",
    "ForecastOutcome",
    "ForecastRun",
    "GpuClass",
    "GpuUse",
    "Guardrail",
    "IdleEnd",
    "IdleSpell",
    "Lane",
    "LapseCause",
    "Loan",
    "LostCredentialError",
    "Node",
    "NodePool",
    "Outcome",
    "PodSecurity",
    "Prediction",
    "Predictor",
    "PredictorKind",
    "PredictorState",
    "PriorityClass",
    "Process",
    "Queue",
    "Quota",
    "QuotaChange",
    "Reason",
    "Role",
    "RunTimeQuestion",
    "Share",
    "Sharing",
    "Standing",
    "StartForecast",
    "State",
    "StepKind",
    "Stop",
    "TaskPass",
    "ToldStart",
    "Transition",
    "TrialState",
    "UsageSample",
    "UserUsage",
    "Variant",
    "VariantReplay",
    "VariantState",
    "WhatIf",
    "WhatIfKind",
    "WhatIfState",
    "WorkDay",
    "Workload",
    "WorkloadType",
    "headline",
]
