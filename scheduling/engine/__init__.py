"""The engine: a pure function from a snapshot to a plan. No Django, no clock, no dice, no log."""

from scheduling.engine.array_plan import ArrayPlan
from scheduling.engine.decode import decode
from scheduling.engine.encode import encode
from scheduling.engine.frame import Frame
from scheduling.engine.model import (
    MILLI,
    Action,
    Decision,
    GpuClass,
    Members,
    Node,
    NodeSet,
    Phase,
    Plan,
    Policy,
    Predicted,
    PriorityClass,
    Queue,
    Quota,
    Reason,
    Share,
    Snapshot,
    SnapshotError,
    Step,
    StepKind,
    Stop,
    Topology,
    Workload,
    WorkloadType,
)
from scheduling.engine.outline import Outline, Waits
from scheduling.engine.planner import Planner, divide, plan, plan_frame
from scheduling.engine.reasons import headline
from scheduling.engine.shares import whole_gpus

__all__ = [
    "MILLI",
    "Action",
    "ArrayPlan",
    "Decision",
    "Frame",
    "GpuClass",
    "Members",
    "Node",
    "NodeSet",
    "Outline",
    "Phase",
    "Plan",
    "Planner",
    "Policy",
    "Predicted",
    "PriorityClass",
    "Queue",
    "Quota",
    "Reason",
    "Share",
    "Snapshot",
    "SnapshotError",
    "Step",
    "StepKind",
    "Stop",
    "Topology",
    "Waits",
    "Workload",
    "WorkloadType",
    "decode",
    "divide",
    "encode",
    "headline",
    "plan",
    "plan_frame",
    "whole_gpus",
]
