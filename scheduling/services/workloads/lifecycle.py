"""The one door for every change of a workload's state.

    pending ──▶ admitted ──▶ running ──▶ finished
                   │            │
                   └──▶ evicted ◀┘
                          │
    admitted ◀── requeued ◀┘          every state may end in finished; what was taken out of its queue
                                      and is put back goes on as requeued

``step`` changes a workload in memory and returns the Transition; ``save`` writes many of both at once;
``transition`` does the two for one workload. Simulated histories use the same ``move``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypedDict, Unpack

from django.db import transaction

from scheduling.models import EndCause, GpuClass, Outcome, State, Transition, Workload
from scheduling.services.errors import LifecycleError
from scheduling.services.ledger.claims import note_eviction
from scheduling.services.tables.bulk import insert_rows, write_columns

LEGAL: dict[str, tuple[State, ...]] = {
    "": (State.PENDING,),
    State.PENDING: (State.ADMITTED, State.FINISHED),
    State.ADMITTED: (State.RUNNING, State.EVICTED, State.FINISHED),
    State.RUNNING: (State.EVICTED, State.FINISHED),
    State.EVICTED: (State.REQUEUED, State.FINISHED),
    State.REQUEUED: (State.ADMITTED, State.FINISHED),
    State.FINISHED: (State.REQUEUED,),
}
"""From FINISHED only, when what was taken out of its queue is put back."""

OF_ENDING = ("cause", "exit_code", "cause_said")

HELD_BY_STEP = [
    "state",
    "outcome",
    *OF_ENDING,
    "admitted_at",
    "first_started_at",
    "started_at",
    "finished_at",
    "gpu_class",
    "members",
    "placement",
    "reason",
    "sentence",
    "sealed",
    "numbers",
    "until",
    "position",
    "eviction_count",
    "used_gpu_s",
    "held_since",
    "lost_gpu_s",
    "virtual_start_at",
    "class_on_own_quota",
    "own_pace",
    "saved_s",
    "claim",
    "taken_gpus",
    "recent_evictions",
    "last_evicted_at",
    "last_evicted_for",
]
"""Columns that a step may change."""


class How(TypedDict, total=False):
    """What goes with a move."""

    sentence: str
    sealed: Mapping[str, Any] | None
    gpu_class: GpuClass | None
    members: int | None
    placement: Mapping[str, int] | None
    outcome: Outcome | None
    lost_gpu_s: float
    evicted: tuple[datetime, str] | None
    first: bool


def step(
    workload: Workload,
    to_state: State,
    *,
    at: datetime,
    reason: str = "",
    actor: str = "engine",
    **how: Unpack[How],
) -> Transition:
    """``move`` ``workload``, in memory only; returns the Transition. Arguments and errors as there."""
    before = move(workload, to_state, at=at, reason=reason, **how)
    return _noted(workload, before, at, reason=reason, actor=actor)


def move(
    workload: Workload,
    to_state: State,
    *,
    at: datetime,
    reason: str = "",
    sentence: str = "",
    sealed: Mapping[str, Any] | None = None,
    gpu_class: GpuClass | None = None,
    members: int | None = None,
    placement: Mapping[str, int] | None = None,
    outcome: Outcome | None = None,
    lost_gpu_s: float = 0.0,
    evicted: tuple[datetime, str] | None = None,
    first: bool = False,
) -> str:
    """Move ``workload`` to ``to_state`` at cluster time ``at``, in memory only; returns the state before.

    ``sealed`` goes with a ``sentence`` of the engine, as ``told.sealed_of``.
    ``gpu_class``, ``members`` and ``placement`` go with ADMITTED, ``outcome`` with FINISHED,
    ``lost_gpu_s`` (GPU-seconds of work thrown away) with EVICTED, and where an eviction is behind it
    ``evicted``: when it was decided, and the engine name of whom it was for. ``first`` is the step that
    makes the workload known. Raises LifecycleError for a move that LEGAL does not list.
    """
    before = "" if first else workload.state
    if to_state not in LEGAL[before]:
        raise LifecycleError(f"{workload.name} cannot go from {before or 'nothing'} to {to_state}.")
    _charge(workload, at)
    workload.state, workload.stepped_at = to_state, at
    _tell(workload, reason, sentence, sealed)
    if to_state == State.ADMITTED:
        _admit(workload, at, gpu_class, members, placement)
    elif to_state == State.RUNNING:
        _run(workload, at)
    elif to_state == State.EVICTED:
        _evict(workload, at, lost_gpu_s, evicted)
    elif to_state == State.REQUEUED:
        _requeue(workload, at, before)
    elif to_state == State.FINISHED:
        _finish(workload, at, outcome)
    return before


def resize(workload: Workload, members: int, *, at: datetime, actor: str = "cluster") -> Transition:
    """So many members hold GPUs from ``at`` on, in memory only; returns the step from its state to itself."""
    _charge(workload, at)
    workload.members = members
    return _noted(workload, workload.state, at, actor=actor, is_told=False)


def _noted(
    workload: Workload,
    before: str,
    at: datetime,
    *,
    actor: str,
    reason: str = "",
    is_told: bool = True,
) -> Transition:
    gpus = workload.allocated_gpus
    return Transition(
        workload=workload,
        at=at,
        from_state=before,
        to_state=workload.state,
        reason=reason,
        sentence=workload.sentence if is_told else "",
        sealed=workload.sealed if is_told else None,
        actor=actor,
        gpus=gpus,
        gpu_class=workload.gpu_class if gpus else None,
    )


def _tell(workload: Workload, reason: str, sentence: str, sealed: Mapping[str, Any] | None) -> None:
    """Why it is where it is now; what it was told of its wait is over."""
    workload.reason, workload.sentence = reason, sentence
    workload.sealed = None if sealed is None else dict(sealed)
    workload.numbers, workload.until, workload.position = {}, None, None


def _run(workload: Workload, at: datetime) -> None:
    workload.started_at = at
    workload.first_started_at = workload.first_started_at or at


def _evict(
    workload: Workload, at: datetime, lost_gpu_s: float, evicted: tuple[datetime, str] | None
) -> None:
    workload.saved_s += _checkpointed_s(workload, at)
    workload.eviction_count += 1
    workload.lost_gpu_s += lost_gpu_s
    if evicted is not None:
        note_eviction(workload, *evicted)


def _checkpointed_s(workload: Workload, at: datetime) -> float:
    """Seconds of the run that ends at ``at`` which its last checkpoint holds, as far as it told of any."""
    started, last = workload.started_at, workload.checkpointed_at
    if started is None:
        return 0.0
    ran_s = max(0.0, (at - started).total_seconds())
    held_s = (last - started).total_seconds() if last else 0.0
    if every := workload.checkpoint_interval_s:
        held_s = max(held_s, ran_s // every * every)
    return min(ran_s, max(0.0, held_s))


def _requeue(workload: Workload, at: datetime, before: str) -> None:
    workload.gpu_class, workload.members, workload.placement = None, 0, {}
    workload.outcome, workload.finished_at = "", None
    note_ending(workload)
    if before == State.FINISHED:
        workload.virtual_start_at, workload.saved_s = None, 0.0
        workload.class_on_own_quota, workload.own_pace = "", 1.0
        workload.admitted_at = at  # What it held before that is booked.


def _admit(
    workload: Workload,
    at: datetime,
    gpu_class: GpuClass | None,
    members: int | None,
    placement: Mapping[str, int] | None,
) -> None:
    workload.admitted_at, workload.claim, workload.taken_gpus = at, None, 0
    workload.held_since = at
    workload.gpu_class = gpu_class
    workload.members = workload.min_members if members is None else members
    workload.placement = dict(placement or {})


def _charge(workload: Workload, at: datetime) -> None:
    """Add what it held up to ``at``: pods of an eviction hold until they are gone."""
    if workload.allocated_gpus:
        workload.used_gpu_s = workload.held_gpu_s(at)
        workload.held_since = at


def _finish(workload: Workload, at: datetime, outcome: Outcome | None) -> None:
    """The last run's class, members and placement stay, for reports to read."""
    workload.finished_at = at
    workload.outcome = outcome or Outcome.SUCCEEDED
    if workload.outcome == Outcome.SUCCEEDED:
        note_ending(workload)
    elif workload.outcome == Outcome.CANCELLED:
        note_ending(workload, EndCause.CANCELLED)
    elif not workload.cause:
        note_ending(workload, EndCause.FAILED)


def note_ending(workload: Workload, cause: str = "") -> None:
    """Why it ended; empty where nothing failed."""
    workload.cause, workload.exit_code, workload.cause_said = cause, None, ""


def way(from_state: str, to_state: State) -> tuple[State, ...]:
    """The shortest legal sequence of states after ``from_state`` that ends in ``to_state``.

    What the watch shows may have skipped a state (a Job that was admitted and started between two
    looks). Empty when it is there already; raises LifecycleError when no way leads there.
    """
    if from_state == to_state:
        return ()
    ways: list[tuple[State, ...]] = [()]
    seen: set[str] = {from_state}
    for done in ways:
        for state in LEGAL[done[-1] if done else from_state]:
            if state == to_state:
                return (*done, state)
            if state not in seen:
                seen.add(state)
                ways.append((*done, state))
    raise LifecycleError(f"No way leads from {from_state or 'nothing'} to {to_state}.")


def save(workloads: Iterable[Workload], transitions: Iterable[Transition]) -> None:
    """Write the stepped columns of ``workloads`` (known rows) and all ``transitions``."""
    write_columns(list(workloads), HELD_BY_STEP)
    steps = list(transitions)
    for each in steps:
        each.workload_id = each.workload.pk  # the row may have been new when the step was made
    insert_rows(steps)


@transaction.atomic
def transition(
    workload: Workload, to_state: State, *, at: datetime, **step_args: Any
) -> Transition:
    """``step`` for one workload, saved. Arguments and errors as there."""
    made = step(workload, to_state, at=at, **step_args)
    workload.save(update_fields=None if workload.pk is None else HELD_BY_STEP)
    made.save()
    return made
