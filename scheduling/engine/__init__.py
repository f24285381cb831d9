"""The engine: a pure function from a snapshot to a plan. No Django, no clock, no dice, no log.

Its values are here at once. What plans is loaded with the compiler's run time where it is first asked for, so
that a process which only names values starts without either.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from scheduling.engine.model import MILLI as MILLI
from scheduling.engine.model import Action as Action
from scheduling.engine.model import Decision as Decision
from scheduling.engine.model import GpuClass as GpuClass
from scheduling.engine.model import Lapse as Lapse
from scheduling.engine.model import Members as Members
from scheduling.engine.model import Node as Node
from scheduling.engine.model import NodeSet as NodeSet
from scheduling.engine.model import Phase as Phase
from scheduling.engine.model import Plan as Plan
from scheduling.engine.model import Policy as Policy
from scheduling.engine.model import PriorityClass as PriorityClass
from scheduling.engine.model import Queue as Queue
from scheduling.engine.model import Quota as Quota
from scheduling.engine.model import Reason as Reason
from scheduling.engine.model import Role as Role
from scheduling.engine.model import Rule as Rule
from scheduling.engine.model import Snapshot as Snapshot
from scheduling.engine.model import SnapshotError as SnapshotError
from scheduling.engine.model import StepKind as StepKind
from scheduling.engine.model import Stop as Stop
from scheduling.engine.model import Topology as Topology
from scheduling.engine.model import Workload as Workload
from scheduling.engine.model import WorkloadType as WorkloadType
from scheduling.engine.reasons.catalogue import headline as headline

if TYPE_CHECKING:
    from scheduling.engine.compile.mode import run_plainly as run_plainly
    from scheduling.engine.explain.decode import decode as decode
    from scheduling.engine.explain.decode import outline as outline
    from scheduling.engine.explain.outline import Outline as Outline
    from scheduling.engine.explain.outline import Waits as Waits
    from scheduling.engine.placement.fragmentation import left_over as left_over
    from scheduling.engine.placement.fragmentation import wanted_member as wanted_member
    from scheduling.engine.planner import Planner as Planner
    from scheduling.engine.planner import divide as divide
    from scheduling.engine.planner import plan as plan
    from scheduling.engine.planner import plan_frame as plan_frame
    from scheduling.engine.snapshot.encode import encode as encode
    from scheduling.engine.snapshot.frame import Frame as Frame
    from scheduling.engine.state.array_plan import ArrayPlan as ArrayPlan

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
