"""A workload's past: what it went through, and what each eviction took and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.accounts.models import User
from portal.teams.access import visible_workloads
from portal.web.format import number, state_glyph
from portal.web.workloads.rows import gang
from portal.web.workloads.timeline import Step
from scheduling.models import Eviction, State, Transition, Workload

HEADS = {
    State.PENDING: "Submitted",
    State.ADMITTED: "Admitted",
    State.RUNNING: "Running",
    State.EVICTED: "Evicted",
    State.REQUEUED: "Requeued",
    State.FINISHED: "Finished",
}


@dataclass(frozen=True, slots=True)
class Side:
    """One queue at the moment of an eviction, numbers of GPUs; None was not kept."""

    queue: str
    before: Any
    fair_share: Any
    after: Any

    @property
    def name(self) -> str:
        return self.queue.rpartition("/")[2]

    @property
    def above(self) -> str:
        """The path above the name, with its last '/'."""
        return self.queue.removesuffix(self.name)


@dataclass(frozen=True, slots=True)
class Loss:
    """An eviction as its box shows it. ``winner_uid`` is empty where the reader may not open it."""

    eviction: Eviction
    sides: Sequence[Side]
    winner_uid: str
    minutes: str
    """Minutes of work lost by each GPU: the loss over the GPUs."""
    ratio: str
    """Evicted over asked GPUs; empty where nobody asked."""


@dataclass(frozen=True, slots=True)
class Entry:
    at: datetime
    head: str
    icon: str
    text: str
    loss: Loss | None = None


def steps(workload: Workload, transitions: Sequence[Transition]) -> list[Step]:
    """The transitions as the timeline reads them; the submission alone when none was kept."""
    found = [Step(t.at, t.to_state, t.gpus) for t in transitions]
    if not found or found[0].at > workload.submitted_at:
        found.insert(0, Step(workload.submitted_at, State.PENDING))
    return [step for step in found if step.state != State.FINISHED]


def entries(
    workload: Workload,
    transitions: Sequence[Transition],
    evictions: Sequence[Eviction],
    user: User,
) -> list[Entry]:
    """Newest first. One query: which winners ``user`` may open."""
    losses = _losses(evictions, user)
    found = [_entry(workload, step, losses) for step in transitions]
    return list(reversed(found))


def _losses(evictions: Iterable[Eviction], user: User) -> list[Loss]:
    evictions = list(evictions)
    winners = {e.for_workload_id for e in evictions if e.for_workload_id}
    seen = visible_workloads(user).filter(pk__in=winners)
    open_to = set(seen.values_list("pk", flat=True)) if winners else set()
    return [_loss(eviction, eviction.for_workload_id in open_to) for eviction in evictions]


def _loss(eviction: Eviction, may_open: bool) -> Loss:
    kept = eviction.numbers
    sides = [_side(kept, "victim", eviction.queue)]
    if eviction.for_queue is not None and eviction.for_queue != eviction.queue:
        sides.append(_side(kept, "for", eviction.for_queue))
    gpus, asked = eviction.gpus / 1000, eviction.asked_gpus / 1000
    return Loss(
        eviction=eviction,
        sides=[side for side in sides if side.before is not None],
        winner_uid=eviction.for_workload.uid if may_open and eviction.for_workload else "",
        minutes=number(eviction.lost_gpu_s / gpus / 60, 1) if gpus else "",
        ratio=number(gpus / asked, 2) if asked else "",
    )


def _side(kept: dict[str, Any], prefix: str, queue: Any) -> Side:
    return Side(
        queue=str(queue) if queue is not None else "a queue that is gone",
        before=kept.get(f"{prefix}_held_before"),
        fair_share=kept.get(f"{prefix}_fair_share"),
        after=kept.get(f"{prefix}_held_after"),
    )


def _entry(workload: Workload, step: Transition, losses: list[Loss]) -> Entry:
    state = State(step.to_state)
    loss = _taken(step, losses) if state == State.EVICTED else None
    shown = workload.outcome if state == State.FINISHED and workload.outcome else state.value
    head = shown.capitalize() if state == State.FINISHED else HEADS[state]
    return Entry(step.at, head, state_glyph(shown)[0], _text(workload, step, loss), loss)


def _taken(step: Transition, losses: list[Loss]) -> Loss | None:
    """The eviction that belongs to this step: the nearest in time, within a minute."""
    near = sorted(losses, key=lambda one: abs((one.eviction.at - step.at).total_seconds()))
    if not near or abs((near[0].eviction.at - step.at).total_seconds()) > 60:
        return None
    return near[0]


def _text(workload: Workload, step: Transition, loss: Loss | None) -> str:
    if loss is not None:
        return ""
    if step.sentence:
        return step.sentence
    if step.to_state == State.PENDING:
        asked = f"{gang(workload)} × {' or '.join(workload.gpu_classes) or 'any class'}"
        return f"By {workload.user or 'somebody unknown'}, a gang of {asked}."
    if step.to_state == State.REQUEUED:
        return "Keeps its submit time, so it goes before newer work of the queue."
    if step.to_state == State.RUNNING and step.gpus:
        return f"On {number(step.gpus / 1000, 1)} GPU{'' if step.gpus == 1000 else 's'}."
    return ""
