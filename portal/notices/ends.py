"""What its owner is told when work ends: that it is done, or why it is not and what to do."""

from __future__ import annotations

from portal.display.format import duration, hours
from portal.notices.models import Kind
from portal.selectors.costs import gpu_seconds
from scheduling.models import Outcome, State, Transition, Workload
from scheduling.services.words import endings

Told = tuple[Kind, str, list[list[str]]]
"""Kind, title, lines."""
STOPPED = "Clone it with a longer run-time limit, or release it to run it again."


def told_of(step: Transition) -> Told | None:
    """None of what its owner knows: that it was cancelled, or waits again for another reason."""
    work = step.workload
    if step.to_state == State.REQUEUED:
        title = f"{work.name} was stopped at its run-time limit."
        return Kind.FAILED, title, [["Why", step.sentence], ["Next", STOPPED]]
    if work.outcome == Outcome.SUCCEEDED:
        return Kind.FINISHED, f"{work.name} has finished{_after(work)}.", [_use_in_words(work)]
    if work.outcome != Outcome.FAILED:
        return None
    said = [["Why", endings.sentence(work)], ["Next", endings.remedy(work)]]
    lines = [line for line in said if line[1]]
    return Kind.FAILED, f"{work.name} failed{_after(work)}.", [*lines, _use_in_words(work)]


def _after(work: Workload) -> str:
    if work.started_at is None or work.finished_at is None:
        return ""
    return f" after {duration(work.finished_at - work.started_at)}"


def _use_in_words(work: Workload) -> list[str]:
    return ["Held", f"{hours(gpu_seconds(work, work.cluster.now()) / 3600)} GPU-hours"]
