"""What changes would do at once: the cluster's snapshot planned as it is and with them.

The shipped engine decides what starts and leaves; the difference of two plans is all that is
calculated here. Figures are milli-GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduling.engine import model as m
from scheduling.engine import plan as engine_plan
from scheduling.services.errors import ServiceError
from scheduling.services.studies.whatif.changes import QuestionChanges

ACTS = (m.Action.ADMIT, m.Action.EVICT, m.Action.SHRINK, m.Action.GROW, m.Action.MOVE)


@dataclass(frozen=True, slots=True)
class ComparedWork:
    """What is decided on a workload, before and after; None where it is not in the snapshot."""

    workload: str
    queue: str
    before: m.Decision | None
    after: m.Decision | None

    @property
    def starts(self) -> bool:
        """It starts with the change and would not without."""
        return _does(self.after, m.Action.ADMIT) and not _does(self.before, m.Action.ADMIT)

    @property
    def leaves(self) -> bool:
        return _does(self.after, m.Action.EVICT) and not _does(self.before, m.Action.EVICT)

    @property
    def stays_out(self) -> bool:
        """It would start, and with the change does not."""
        return _does(self.before, m.Action.ADMIT) and not _does(self.after, m.Action.ADMIT)

    @property
    def is_other(self) -> bool:
        """Another act, or another reason to wait."""
        return _what(self.before) != _what(self.after)


@dataclass(frozen=True, slots=True)
class AtOnce:
    """Two plans of one moment. ``shares`` are queue -> class -> (before, after)."""

    lines: tuple[ComparedWork, ...]
    shares: Mapping[str, Mapping[str, tuple[m.Share | None, m.Share | None]]]
    ready: Mapping[str, tuple[int, int]]

    @property
    def starts(self) -> list[ComparedWork]:
        return [line for line in self.lines if line.starts]

    @property
    def leaves(self) -> list[ComparedWork]:
        return [line for line in self.lines if line.leaves]

    @property
    def lost_gpu_s(self) -> float:
        """Work that those who leave lose."""
        return sum(line.after.lost_gpu_s for line in self.leaves if line.after)


def at_once(snapshot: m.Snapshot, changes: QuestionChanges) -> AtOnce:
    """Raises ChangeError at a name that is not there; ServiceError where the world that is asked for
    contradicts itself."""
    return beside(snapshot, plan_of(snapshot), changes.applied(snapshot))


def plan_of(snapshot: m.Snapshot) -> m.Plan:
    """Raises ServiceError where the snapshot contradicts itself."""
    try:
        return engine_plan(snapshot)
    except m.SnapshotError as error:
        first = error.faults[0]
        raise ServiceError(
            "cannot_plan", f"With these changes {first.found}.", f"{first.remedy.capitalize()}."
        ) from error


def beside(snapshot: m.Snapshot, before: m.Plan, changed: m.Snapshot) -> AtOnce:
    """``before`` is the plan of ``snapshot``, made once for all that is held against it. Raises as
    ``plan_of``."""
    after = plan_of(changed)
    return AtOnce(
        lines=_lines(changed, before, after),
        shares=_shares(before, after),
        ready={
            c.name: (ready(snapshot, c.name), ready(changed, c.name)) for c in changed.gpu_classes
        },
    )


def ready(snapshot: m.Snapshot, gpu_class: str) -> int:
    """Milli-GPU that may be scheduled to."""
    mine = (n for n in snapshot.nodes if n.gpu_class == gpu_class and n.ready)
    return sum(node.gpus - node.foreign_gpus for node in mine)


def _lines(snapshot: m.Snapshot, before: m.Plan, after: m.Plan) -> tuple[ComparedWork, ...]:
    queue_of = {w.name: w.queue for w in snapshot.workloads}
    was = {d.workload: d for d in before.decisions}
    decisions = {d.workload: d for d in after.decisions}
    names = [*decisions, *(name for name in was if name not in decisions)]
    return tuple(ComparedWork(n, queue_of.get(n, ""), was.get(n), decisions.get(n)) for n in names)


def _shares(before: m.Plan, after: m.Plan) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name in {**before.fair_share, **after.fair_share}:
        was, has = before.fair_share.get(name, {}), after.fair_share.get(name, {})
        found[name] = {c: (was.get(c), has.get(c)) for c in {**was, **has}}
    return found


def _does(decision: m.Decision | None, action: m.Action) -> bool:
    return decision is not None and decision.action is action


def _what(decision: m.Decision | None) -> Any:
    """A wait of another reason is another; a start is the same wherever it starts."""
    if decision is None:
        return None
    return decision.action if decision.action in ACTS else (decision.action, decision.reason)
