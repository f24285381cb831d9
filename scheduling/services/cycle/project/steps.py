"""Which steps lead a workload's row to what the cluster shows, and what is said at each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from scheduling.cluster.adapters import Sighting, key_of
from scheduling.cluster.picture.compose import Picture
from scheduling.engine.model import Action, Reason
from scheduling.models import Decision, EndCause, Outcome, State, Workload
from scheduling.models.workloads import HOLDING
from scheduling.services.queues.rows import PolicyRows
from scheduling.services.snapshot.obstacles import RAN_OUT
from scheduling.services.snapshot.situations import Situation, class_of, placement_of
from scheduling.services.words import endings
from scheduling.services.workloads import lifecycle

Move = tuple[Workload, Sighting | None, tuple[State, ...]]
"""A row, what the cluster shows of it (None: it is gone) and the steps that are due."""

DELETED = "The object was deleted."
STRAYED = "It names no queue any more, or what made it does."


def way_to(row: Workload, observed: Sighting, situation: Situation) -> tuple[State, ...]:
    """The steps that lead from the row's state to what the cluster shows."""
    state = State(row.state)
    if situation is Situation.DONE:
        # A Job that ran and ended between two looks was admitted all the same.
        unseen = state in (State.PENDING, State.REQUEUED) and not observed.suspended
        ran = unseen or (state == State.ADMITTED and observed.outcome == "succeeded")
        return (*lifecycle.way(state, State.RUNNING), State.FINISHED) if ran else (State.FINISHED,)
    if situation is Situation.HOLDING:
        if state == State.RUNNING:
            return ()
        return lifecycle.way(state, State.RUNNING if observed.is_up else State.ADMITTED)
    if observed.deleting or situation is Situation.BYPASSING:
        return ()
    leaving = situation is Situation.LEAVING or (
        situation is Situation.MOVING and observed.pods_left > 0
    )
    if leaving:
        return (State.EVICTED,) if state in (State.ADMITTED, State.RUNNING) else ()
    return lifecycle.way(state, State.REQUEUED) if state in HOLDING else ()


def farewell(row: Workload, picture: Picture) -> Move:
    """The last steps of one whose object is gone: it had ended, or somebody deleted it."""
    last = picture.departed.get(row.uid)
    if last is None or not last.outcome:
        return row, None, (State.FINISHED,)
    return row, last, way_to(row, last, Situation.DONE)


def ending_of(observed: Sighting) -> dict[str, Any]:
    """Columns of what ended it, or keeps it from running: they stay as they were where the cluster says no
    more of it, and go once all of it runs."""
    ending = observed.ending
    if ending is not None and not observed.is_up:
        values = (EndCause(ending.cause).value, ending.exit_code, ending.said)
    elif observed.is_up:
        values = ("", None, "")
    else:
        return {}
    return dict(zip(lifecycle.OF_ENDING, values, strict=True))


def evicted_by_weir(observed: Sighting | None) -> bool:
    return observed is not None and observed.evicted_by is not None


def decisions_behind(moves: Iterable[Move]) -> dict[tuple[int, State], Decision]:
    """The newest decision behind each admission and eviction that is due, by workload and state."""
    states = {
        "admit": (State.ADMITTED,),
        "evict": (State.EVICTED,),
        "move": (State.EVICTED, State.ADMITTED),
    }
    wanted = sorted(
        row.pk
        for row, _, way in moves
        if row.pk and {State.ADMITTED, State.EVICTED}.intersection(way)
    )
    found: dict[tuple[int, State], Decision] = {}
    for start in range(0, len(wanted), 500):
        rows = (
            Decision.objects.filter(
                workload__in=wanted[start : start + 500], action__in=states.keys()
            )
            .select_related("cycle")
            # Evictions name another workload; a join would make one of every admission.
            .prefetch_related("for_workload")
            .order_by("cycle__number", "id")
        )
        for decision in rows:
            for state in states[decision.action]:
                found[decision.workload_id, state] = decision
    return found


def step_args(
    row: Workload,
    observed: Sighting | None,
    state: State,
    *,
    decision: Decision | None,
    rows: PolicyRows,
    class_by_node: Mapping[str, str],
    now: datetime,
    strayed: bool = False,
) -> dict[str, Any]:
    """Arguments of ``lifecycle.step`` for the move of ``row`` to ``state``; ``strayed``: its object is there
    and no workload any more."""
    args: dict[str, Any] = {"at": now, "actor": "cluster"}
    if observed is None:
        return args | {"outcome": Outcome.CANCELLED, "sentence": STRAYED if strayed else DELETED}
    if state == State.ADMITTED:
        args |= _why(decision) if observed.marked else {}
        args["at"] = observed.admitted or observed.started or now
        args["gpu_class"] = rows.class_by_name.get(class_of(observed, class_by_node) or "")
        args["members"] = observed.members
        args["placement"] = placement_of(observed) or dict(observed.planned)
    elif state == State.RUNNING:
        args |= _last_word(row)
        args["at"] = observed.started or args["at"]
    elif state == State.EVICTED and evicted_by_weir(observed) and decision is not None:
        args |= _why(decision) | {"lost_gpu_s": float(decision.numbers.get("lost_gpu_s") or 0)}
        if decision.action == Action.EVICT:
            args["evicted"] = (decision.cycle.at, _rival_of(decision))
    elif state in (State.EVICTED, State.REQUEUED):
        args |= _stopped(row, observed, state)
    elif state == State.FINISHED:
        outcome = Outcome(observed.outcome)
        args |= {"outcome": outcome, "at": observed.finished or now}
        args["sentence"] = endings.sentence(row) if outcome == Outcome.FAILED else ""
    args["at"] = max(args["at"], _last_step(row))
    return args


def _why(decision: Decision | None) -> dict[str, Any]:
    if decision is None:
        return {}
    return _last_word(decision) | {"actor": "engine"}


def _rival_of(decision: Decision) -> str:
    rival = decision.for_workload
    return key_of(rival.kind, rival.namespace, rival.name) if rival else ""


def _last_word(row: Workload | Decision) -> dict[str, Any]:
    return {"reason": row.reason, "sentence": row.sentence, "sealed": row.sealed}


def _stopped(row: Workload, observed: Sighting, state: State) -> dict[str, Any]:
    if observed.ran_out:
        return {"reason": Reason.RUN_TIME_OVER.value, "sentence": RAN_OUT, "actor": "engine"}
    if observed.is_held:
        sentence = "Somebody suspended it by hand. Release it to queue it again."
        return {"reason": "held", "sentence": sentence}
    if state == State.REQUEUED and evicted_by_weir(observed):
        return _last_word(row) | {"actor": "engine"}
    return {"reason": "", "sentence": "It was suspended in the cluster and waits again."}


def _last_step(row: Workload) -> datetime:
    """Nothing happens to a workload before what happened to it last (stamps are whole seconds)."""
    times = (row.submitted_at, row.admitted_at, row.started_at, row.stepped_at)
    return max(t for t in times if t is not None)
