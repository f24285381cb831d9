"""One pass of the engine as its page shows it, each part narrowed to what the reader may see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.functional import cached_property

from portal.accounts.models import User
from portal.display.adding_up import rounded
from portal.display.entitlement import Axis, Bar, Figures, axis, bar
from portal.display.units import unit
from portal.teams.access import visible_queues, visible_workloads
from portal.web.cycles.around import Way, way
from scheduling.models import Action, Cycle, CycleRecord, Decision, GpuClass, Queue
from scheduling.services.cycle.record.records import FIGURES, WRITING

ACTS = (Action.EVICT, Action.MOVE, Action.SHRINK, Action.ADMIT, Action.GROW)
WAITS = (Action.WAIT, Action.RESERVE)
BADGES = {
    Action.EVICT: ("evicted", "warn", "Evict"),
    Action.MOVE: ("swap", "warn", "Move"),
    Action.SHRINK: ("down", "info", "Shrink"),
    Action.ADMIT: ("admitted", "ok", "Start"),
    Action.GROW: ("plus", "info", "Grow"),
    Action.RESERVE: ("clock", "info", "Reserve"),
    Action.WAIT: ("pending", "neutral", "Wait"),
    Action.LAPSE: ("clock", "warn", "Lapse"),
}
"""Glyph, tone and word of an action."""


@dataclass(frozen=True, slots=True)
class DecisionLine:
    """One decision. ``lost_gpu_s`` is None where nothing is thrown away."""

    decision: Decision
    glyph: str
    tone: str
    word: str
    lost_gpu_s: float | None


@dataclass(frozen=True, slots=True)
class QueueChange:
    """A queue of a class before and after the plan, both on the axis of its page."""

    queue: Queue
    gpu_class: GpuClass
    change: float
    before: Figures
    after: Figures
    before_bar: Bar
    after_bar: Bar


@dataclass(frozen=True, slots=True)
class Phase:
    """A step of the cascade, places in percent of the whole; ``shown_ms`` add up as they are shown."""

    name: str
    ms: float
    shown_ms: float
    x: str
    width: str


@dataclass(frozen=True)
class Pass:
    """Everything about ``cycle`` that ``user`` may see."""

    cycle: Cycle
    user: User

    @cached_property
    def record(self) -> CycleRecord | None:
        return CycleRecord.objects.filter(cycle=self.cycle).first()

    @cached_property
    def _seen(self) -> list[Decision]:
        seen = visible_workloads(self.user).filter(cluster=self.cycle.cluster_id)
        rows = self.cycle.decisions.filter(workload__in=seen)
        return list(
            rows.select_related(
                "workload__queue", "workload__cluster", "gpu_class", "for_workload__queue", "cycle"
            )
        )

    @cached_property
    def acts(self) -> list[DecisionLine]:
        return [_line(d) for d in self._seen if d.action in ACTS]

    @cached_property
    def waits(self) -> list[DecisionLine]:
        """Those who were told a new reason."""
        return [_line(d) for d in self._seen if d.action in WAITS]

    @cached_property
    def others(self) -> int:
        """Decisions about work that the reader does not see."""
        return self.cycle.decisions.count() - len(self._seen)

    @cached_property
    def lost_gpu_s(self) -> float:
        return sum(line.lost_gpu_s or 0 for line in self.acts)

    @cached_property
    def sides(self) -> list[QueueChange]:
        record, cluster = self.record, self.cycle.cluster
        if record is None:
            return []
        queues = {q.name: q for q in visible_queues(self.user).filter(cluster=cluster)}
        classes = {c.name: c for c in cluster.gpu_classes.all()}
        rows = [r for r in record.queues if r["queue"] in queues and r["gpu_class"] in classes]
        on = axis(figures for row in rows for figures in _figures(row))
        return [_side(row, queues[row["queue"]], classes[row["gpu_class"]], on) for row in rows]

    @cached_property
    def axis(self) -> Axis:
        return axis(f for side in self.sides for f in (side.before, side.after))

    @cached_property
    def unit(self) -> str:
        """Of the axis: a class of slices is counted in slices."""
        return " and ".join(dict.fromkeys(unit(side.gpu_class) for side in self.sides)) or "GPUs"

    @cached_property
    def phases(self) -> list[Phase]:
        return cascade(self.record.phases if self.record else [])

    @cached_property
    def phases_ms(self) -> float:
        return sum(phase.ms for phase in self.phases)

    @property
    def writing_ms(self) -> float:
        return next((phase.ms for phase in self.phases if phase.name == WRITING), 0.0)

    @property
    def way(self) -> Way | None:
        """From the first of what it answered to its plan and its writes."""
        one, record = self.cycle, self.record
        speed = one.cluster.clock_speed
        return way(one.at, one.took_ms, record.causes, record.phases, speed) if record else None

    @cached_property
    def earlier(self) -> Cycle | None:
        return self._others.filter(number__lt=self.cycle.number).order_by("-number").first()

    @cached_property
    def later(self) -> Cycle | None:
        return self._others.filter(number__gt=self.cycle.number).order_by("number").first()

    @property
    def _others(self) -> Any:
        return Cycle.objects.filter(cluster=self.cycle.cluster_id)


def _line(decision: Decision) -> DecisionLine:
    action = Action(decision.action)
    lost = decision.numbers.get("lost_gpu_s") if action in (Action.EVICT, Action.MOVE) else None
    return DecisionLine(decision, *BADGES[action], lost)


def _figures(row: dict[str, Any]) -> tuple[Figures, Figures]:
    """Before the plan and once it has come true."""
    before = Figures(**{name: row[name] for name in FIGURES})
    usage = max(0, before.allocated + row["change"])
    pending = max(0, before.pending - row["change"])
    return before, replace(before, allocated=usage, pending=pending)


def _side(row: dict[str, Any], queue: Queue, gpu_class: GpuClass, on: Axis) -> QueueChange:
    before, after = _figures(row)
    return QueueChange(
        queue=queue,
        gpu_class=gpu_class,
        change=row["change"],
        before=before,
        after=after,
        before_bar=bar(f"{queue.name} before", before, on),
        after_bar=bar(f"{queue.name} after", after, on),
    )


def cascade(phases: Sequence[Sequence[Any]]) -> list[Phase]:
    """Each phase begins where the one before ends."""
    total = sum(float(ms) for _, ms in phases) or 1.0
    found, passed = [], 0.0
    shown = rounded([float(ms) for _, ms in phases])
    for (name, ms), shown_ms in zip(phases, shown, strict=True):
        left, width = _percent(passed / total), _percent(max(0.005, ms / total))
        found.append(Phase(name, ms, shown_ms, left, width))
        passed += ms
    return found


def _percent(part: float) -> str:
    return f"{100 * part:.2f}%"
