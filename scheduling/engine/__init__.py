"""The engine: a pure function from a snapshot to a plan. No Django, no clock, no dice, no log.

Its values are here at once. What plans is loaded with the compiler's run time where it is first asked for, so
that a process which only names values starts without either.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    PredictedRunTime,
    PriorityClass,
    Queue,
    Quota,
    Reason,
    Role,
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
from scheduling.engine.reasons.catalogue import headline

if TYPE_CHECKING:
    from scheduling.engine.compile.mode import run_plainly
    from scheduling.engine.explain.decode import decode, outline
    from scheduling.engine.explain.outline import Outline, Waits
    from scheduling.engine.placement.fragmentation import left_over, wanted_member
    from scheduling.engine.planner import Planner, divide, plan, plan_frame
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
    "PredictedRunTime",
    "PriorityClass",
    "Queue",
    "Quota",
    "Reason",
    "Role",
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
    "run_plainly",
    "wanted_member",
]

PLANNING = {
    "compile.mode": ("run_plainly",),
    "explain.decode": ("decode", "outline"),
    "explain.outline": ("Outline", "Waits"),
    "placement.fragmentation": ("left_over", "wanted_member"),
    "planner": ("Planner", "divide", "plan", "plan_frame"),
    "snapshot.encode": ("encode",),
    "snapshot.frame": ("Frame",),
    "state.array_plan": ("ArrayPlan",),
}
"""Module -> what is loaded from it when it is asked for."""
_AT = {name: module for module, names in PLANNING.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _AT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_AT[name]}"), name)
    globals()[name] = found
    return found
