"""A workload's past: what it went through, and what each eviction took and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, zip_longest
from typing import Any

from django.utils.text import capfirst

from portal.display.format import duration, gpus_counted, ratio, reason_inside, state_glyph
from portal.display.timeline import StateChange
from portal.display.units import unit
from portal.selectors.workloads import gang
from scheduling.models import (
    Action,
    Decision,
    EditKind,
    Eviction,
    State,
    ToldStart,
    Transition,
    Workload,
    WorkloadEdit,
)
from scheduling.models.workloads import WAITING
from scheduling.services.words.sentences import (
    OTHERS_QUEUE,
    Reader,
    may_name,
    name_of,
    queue_of,
    readable,
)
from scheduling.services.workloads.edits import as_it_was

HEADS = {
    State.PENDING: "Submitted",
    State.ADMITTED: "Admitted",
    State.RUNNING: "Running",
    State.EVICTED: "Evicted",
    State.REQUEUED: "Requeued",
    State.FINISHED: "Finished",
}


WAITING_FOR = (Action.WAIT, Action.RESERVE)
STAMP = timedelta(seconds=1)
"""Stamps of the cluster are cut to it."""


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
    sentence: str
    sides: Sequence[Side]
    winner: str
    winner_queue: str
    """Empty where it is the victim's own."""
    winner_uid: str
    each: str
    """How much work each GPU lost: the loss over the GPUs."""
    ratio: str
    """Evicted over asked GPUs; empty where nobody asked."""


@dataclass(frozen=True, slots=True)
class Entry:
    at: datetime
    head: str
    icon: str
    text: str
    loss: Loss | None = None
    until: datetime | None = None
    """Of a wait that is over."""
    cycle: int | None = None
    """Number of the cycle that decided it."""
    span: tuple[datetime | None, datetime] | None = None
    """P50 and P90 of the start that was told; no P50 where a reservation told it."""


WAIT_ICON = "clock"
MOST_REASONS = 4
"""Of one wait that show in its history, before the rest is folded."""


def in_order(transitions: Iterable[Transition]) -> list[Transition]:
    """As they came about: stamps of the cluster are whole seconds, so within one the rows' order holds."""
    return sorted(transitions, key=lambda step: (step.at.replace(microsecond=0), step.pk))


def steps(
    workload: Workload, transitions: Sequence[Transition], counted_in: str
) -> list[StateChange]:
    """The transitions as the timeline reads them; the submission alone when none was kept."""
    found = [StateChange(t.at, t.to_state, t.gpus, counted_in) for t in transitions]
    if not found or found[0].at > workload.submitted_at:
        found.insert(0, StateChange(workload.submitted_at, State.PENDING))
    return [step for step in found if step.state != State.FINISHED]


def entries(
    workload: Workload,
    transitions: Sequence[Transition],
    evictions: Sequence[Eviction],
    decisions: Sequence[Decision],
    reader: Reader,
    *,
    now: datetime,
    told_starts: Sequence[ToldStart] = (),
    edits: Sequence[WorkloadEdit] = (),
) -> list[Entry]:
    """Newest first, as ``reader`` may have it; ``decisions`` and ``edits`` in order of time.

    Between a step into a wait and the next step stand the reasons of that wait, each with its time, what was
    told of its start and who changed it; each step tells its size as it was then.
    """
    losses = [_loss(eviction, reader) for eviction in evictions]
    found: list[Entry] = []
    for step, following in zip_longest(transitions, transitions[1:]):
        found.append(_entry(as_it_was(workload, edits, step.at), step, losses, decisions, reader))
        if step.to_state in WAITING:
            until = following.at if following else now
            found += _waits(decisions, step.at, until, reader, ended=following is not None)
    found.reverse()
    for entry in (
        *map(_start_entry, told_starts),
        *(_edited(workload, edits, one) for one in edits),
    ):
        at = next((i for i, other in enumerate(found) if other.at <= entry.at), len(found))
        found.insert(at, entry)
    return found


def folded(found: Sequence[Entry]) -> list[tuple[Entry, list[Entry]]]:
    """The entries that show, each with those folded below it: a long wait says its newest reasons."""
    shown: list[tuple[Entry, list[Entry]]] = []
    in_turn = 0
    for entry in found:
        in_turn = in_turn + 1 if entry.icon == WAIT_ICON else 0
        if in_turn > MOST_REASONS:
            shown[-1][1].append(entry)
        else:
            shown.append((entry, []))
    return [one for entry, rest in shown for one in _worth_folding(entry, rest)]


def _worth_folding(entry: Entry, rest: list[Entry]) -> list[tuple[Entry, list[Entry]]]:
    """One line more takes no more room than saying that it is folded."""
    return [(entry, []), (rest[0], [])] if len(rest) == 1 else [(entry, rest)]


def _start_entry(row: ToldStart) -> Entry:
    span = (row.p50_at, row.p90_at) if row.p90_at else None
    return Entry(row.at, row.get_change_display(), WAIT_ICON, row.note, span=span)


def _edited(workload: Workload, edits: Sequence[WorkloadEdit], edit: WorkloadEdit) -> Entry:
    by = f"by {edit.actor}" if edit.actor else "on the cluster"
    text = (
        "The next cycle plans it so." if edit.before is None else _otherwise(workload, edits, edit)
    )
    return Entry(edit.at, f"{EditKind(edit.kind).label} {by}", "pending", text)


def _otherwise(workload: Workload, edits: Sequence[WorkloadEdit], edit: WorkloadEdit) -> str:
    """'Size 2 × 8 → 4 × 8, run-time limit 2 h → 4 h.' Empty where its kind says it all."""
    before, after = edit.before or {}, edit.after
    was = as_it_was(workload, edits, edit.at - INSTANT)
    now = as_it_was(workload, edits, edit.at)
    pairs = [("size", gang(was), gang(now)), ("classes", _classes(was), _classes(now))]
    pairs += [
        (words, write(before[name]), write(after[name]))
        for name, (words, write) in EDITED.items()
        if name in before
    ]
    said = [f"{words} {old} → {new}" for words, old, new in pairs if old != new]
    said += ["when it may start"] if "turn" in before else []
    return capfirst(", ".join(said)) + "." if said else ""


def _classes(work: Workload) -> str:
    return " or ".join(work.gpu_classes) or "any class"


INSTANT = timedelta.resolution
EDITED: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "run_time_limit_s": ("run-time limit", lambda s: duration(s) if s else "none"),
    "priority_class": ("priority class", lambda name: name or "none"),
}


def _waits(
    decisions: Sequence[Decision], since: datetime, until: datetime, reader: Reader, *, ended: bool
) -> Iterator[Entry]:
    """One for each reason in turn; a place that is kept is a wait as well."""
    told_in = [d for d in decisions if d.action in WAITING_FOR and since <= d.cycle.at < until]
    turns = [next(same) for _, same in groupby(told_in, key=lambda d: d.reason)]
    for one, following in zip_longest(turns, turns[1:]):
        end = following.cycle.at if following else until
        lasts = following is None and not ended
        length = duration(end - one.cycle.at)
        yield Entry(
            at=one.cycle.at,
            head=f"{'Waits' if lasts else 'Waited'} {length}: {reason_inside(one.reason)}",
            icon=WAIT_ICON,
            text=readable(one, reader).sentence,
            until=None if lasts else end,
            cycle=one.cycle.number,
        )


def _loss(eviction: Eviction, reader: Reader) -> Loss:
    may, winner = readable(eviction, reader), eviction.for_workload
    elsewhere = eviction.for_queue if eviction.for_queue != eviction.queue else None
    sides = [_side(may.numbers, "victim", queue_of(eviction.queue, reader))]
    sides += _blamed(may.numbers)
    if elsewhere is not None:
        sides.append(_side(may.numbers, "for", queue_of(elsewhere, reader)))
    gpus, need = eviction.gpus / 1000, eviction.asked_gpus / 1000
    named = winner is not None and may_name(winner, reader)
    return Loss(
        eviction=eviction,
        sentence=may.sentence,
        sides=[side for side in sides if side.before is not None],
        winner=name_of(winner, reader) or "",
        winner_queue=(queue_of(elsewhere, reader) or "") if named else "",
        winner_uid=winner.uid if named and winner is not None else "",
        each=duration(eviction.lost_gpu_s / gpus) if gpus else "",
        ratio=ratio(gpus / need) if need else "",
    )


def _side(figures: dict[str, Any], prefix: str, queue: str | None) -> Side:
    return Side(
        queue=queue or "a queue that is gone",
        before=figures.get(f"{prefix}_held_before"),
        fair_share=figures.get(f"{prefix}_fair_share"),
        after=figures.get(f"{prefix}_held_after"),
    )


def _blamed(figures: dict[str, Any]) -> list[Side]:
    """The queue that the sentence quotes, where that is one above the victim's own."""
    path = figures.get("queue", OTHERS_QUEUE)
    if path == OTHERS_QUEUE or "held" not in figures:
        return []
    return [Side(path, figures["held"], figures.get("fair_share"), figures.get("keeps"))]


def _entry(
    workload: Workload,
    step: Transition,
    losses: list[Loss],
    decisions: Sequence[Decision],
    reader: Reader,
) -> Entry:
    state = State(step.to_state)
    loss = _nearest_loss(step, losses) if state == State.EVICTED else None
    shown = workload.outcome if state == State.FINISHED and workload.outcome else state.value
    head = shown.capitalize() if state == State.FINISHED else HEADS[state]
    if step.from_state == step.to_state:
        counted_in = unit(workload.gpu_class) if workload.gpu_class else "GPUs"
        return Entry(step.at, "Resized", "running", f"To {gpus_counted(step.gpus, counted_in)}.")
    text = _text(workload, step, loss, reader, [one.sentence for one in losses])
    cycle = _cycle_of(step, loss, decisions)
    return Entry(step.at, head, state_glyph(shown)[0], text, loss, cycle=cycle)


def _cycle_of(step: Transition, loss: Loss | None, decisions: Sequence[Decision]) -> int | None:
    """Number of the cycle that decided the step, where it is known."""
    if loss is not None:
        return loss.eviction.cycle.number if loss.eviction.cycle else None
    if step.to_state != State.ADMITTED:
        return None
    behind = [d for d in decisions if d.action == Action.ADMIT and d.cycle.at <= step.at + STAMP]
    return behind[-1].cycle.number if behind else None


def _nearest_loss(step: Transition, losses: list[Loss]) -> Loss | None:
    """The eviction that belongs to this step: the nearest in time, within a minute."""
    near = sorted(losses, key=lambda one: abs((one.eviction.at - step.at).total_seconds()))
    if not near or abs((near[0].eviction.at - step.at).total_seconds()) > 60:
        return None
    return near[0]


def _text(
    workload: Workload, step: Transition, loss: Loss | None, reader: Reader, said: Sequence[str]
) -> str:
    """What was ``said`` of evictions stands with them, not again where their work is queued anew."""
    if loss is not None:
        return ""
    text = readable(step, reader).sentence if step.sentence else ""
    if text and not (step.to_state == State.REQUEUED and text in said):
        return text
    if step.to_state == State.PENDING:
        need = f"{gang(workload)} × {_classes(workload)}"
        kind = "a gang of " if workload.max_members > 1 else ""
        return f"By {workload.user or 'somebody unknown'}, {kind}{need}."
    if step.to_state == State.REQUEUED:
        return "Keeps its submit time, so it goes before newer work of the queue."
    if step.to_state == State.RUNNING and step.gpus:
        return f"On {gpus_counted(step.gpus)}."
    return ""
