"""The engine: a pure function from a snapshot to a plan. No Django, no clock, no dice, no log."""

from scheduling.engine.explain.decode import decode, outline
from scheduling.engine.explain.outline import Outline, Waits
from scheduling.engine.explain.shares import whole_gpus
from scheduling.engine.model import (
    MILLI,
    Action,
    Decision,
    GpuClass,
    Lapse,
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
    Rule,
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
from scheduling.engine.placement.fragmentation import left_over, wanted_member
from scheduling.engine.planner import Planner, divide, plan, plan_frame
from scheduling.engine.reasons.catalogue import headline
from scheduling.engine.snapshot.encode import encode
from scheduling.engine.snapshot.frame import Frame
from scheduling.engine.state.array_plan import ArrayPlan

__all__ = [
    "MILLI",
    "Action",
    "ArrayPlan",
    "Decision",
    "Frame",
    "GpuClass",
    "Lapse",
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
    "Rule",
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
    "left_over",
    "outline",
    "plan",
    "plan_frame",
    "wanted_member",
    "whole_gpus",
]
