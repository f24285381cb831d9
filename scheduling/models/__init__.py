"""What is queued, decided and enforced."""

from scheduling.engine.model import MILLI, Action, Reason, Sharing, StepKind, Stop, WorkloadType
from scheduling.engine.reasons.catalogue import headline
from scheduling.models.adapting import Adaptation, AdaptingParameter, AdaptingTrial, TrialState
from scheduling.models.clusters import (
    ClassOrder,
    Cluster,
    ClusterMode,
    GpuClass,
    Guardrail,
    GuardrailState,
    Node,
    NodePool,
)
from scheduling.models.consolidation import PARTLY_DONE, Consolidation, ConsolidationState
from scheduling.models.credentials import Credential, LostCredentialError
from scheduling.models.demand import DemandForecast
from scheduling.models.events import Announcement, Delivery
from scheduling.models.foresight import (
    ForecastChange,
    ForecastOutcome,
    ForecastRun,
    LateCause,
    StartChanges,
    StartForecast,
    ToldStart,
)
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
from scheduling.models.predictions import Prediction, Predictor, PredictorKind, PredictorState
from scheduling.models.processes import Lane, Process, Role
from scheduling.models.queues import PodSecurity, Queue, Quota, QuotaChange
from scheduling.models.rollups import WorkDay
from scheduling.models.studies import Result, Study, StudyKind, StudyState, Variant
from scheduling.models.workloads import (
    CheckpointHabit,
    EditKind,
    EndCause,
    Outcome,
    PriorityClass,
    State,
    Transition,
    Workload,
    WorkloadEdit,
)

__all__ = [
    "MILLI",
    "PARTLY_DONE",
    "Action",
    "Adaptation",
    "AdaptingParameter",
    "AdaptingTrial",
    "Announcement",
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
    "EditKind",
    "EndCause",
    "Eviction",
    "EvictionRule",
    "ForecastChange",
    "ForecastOutcome",
    "ForecastRun",
    "GpuClass",
    "GpuUse",
    "Guardrail",
    "GuardrailState",
    "IdleEnd",
    "IdleSpell",
    "Lane",
    "LapseCause",
    "LateCause",
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
    "Result",
    "Role",
    "Share",
    "Sharing",
    "StartChanges",
    "StartForecast",
    "State",
    "StepKind",
    "Stop",
    "Study",
    "StudyKind",
    "StudyState",
    "TaskPass",
    "ToldStart",
    "Transition",
    "TrialState",
    "UsageSample",
    "UserUsage",
    "Variant",
    "WorkDay",
    "Workload",
    "WorkloadEdit",
    "WorkloadType",
    "headline",
]
