"""What would start a workload that a limit stops: just so much more of it."""

from __future__ import annotations

from typing import Any

from scheduling.engine import codes
from scheduling.engine.model import UNLIMITED
from scheduling.engine.reasons.wording import amount, gpus_in_words, plural
from scheduling.engine.state.units import GPUS
from scheduling.engine.whatif.change import Change, Relaxation
from scheduling.engine.whatif.replan import Again


def more_for_user(again: Again) -> Relaxation | None:
    """One workload more, or just so many GPUs more, that each user of the queue may have."""
    if again.reason != codes.USER_AT_LIMIT:
        return None
    tree, name = again.frame.tree, _blamed(again)
    figures = again.figures
    if figures.running >= figures.max_running:
        what, value = tree.most_per_user, int(figures.running) + 1
        text = f"{plural(value, 'workload')} at once"
        change = Change.USER_WORKLOADS
    else:
        what, value = tree.most_gpus_per_user, int(figures.holds) + _need(again)
        text, change = gpus_in_words(value), Change.USER_GPUS
    sentence = f"With a limit of {text} for each user of {name} it would start on"
    return _raised(again, what, again.blame, change, value, sentence)


def more_workloads(again: Again) -> Relaxation | None:
    """One workload more that the queue may run at once."""
    if again.reason != codes.QUEUE_AT_JOB_LIMIT:
        return None
    value = int(again.figures.running) + 1
    sentence = f"With a limit of {plural(value, 'workload')} at once for {_blamed(again)} it would start on"
    most = again.frame.tree.most_running
    return _raised(again, most, again.blame, Change.QUEUE_WORKLOADS, value, sentence)


def higher_limit(again: Again) -> Relaxation | None:
    """Just so much more limit of the queue that stands in the way that the gang fits under it."""
    if again.reason not in (codes.AT_LIMIT, codes.NEVER_FITS) or again.blame <= 0:
        return None
    quotas, at = again.frame.quotas, (again.gpu_class, again.blame)
    limit, original = again.usage + _need(again), int(quotas.limit[at])
    if quotas.weight[at] <= 0 or quotas.cap[at] >= UNLIMITED:
        return None
    sentence = f"With a limit of {amount(limit)} for {_blamed(again)} it would start on"
    quotas.limit[at] = limit
    try:
        return _raised(again, quotas.cap, at, Change.LIMIT, limit, sentence)
    finally:
        quotas.limit[at] = original


def more_hours(again: Again) -> Relaxation | None:
    """The least whole budget of GPU-hours that is not spent yet."""
    if again.reason != codes.HOURS_SPENT:
        return None
    value = int(again.figures.used_gpu_hours) + 1
    kind = again.frame.class_names[again.gpu_class]
    hours = f"{value:,} GPU-hours of {kind}"
    sentence = f"With a budget of {hours} for {_blamed(again)} it would start on"
    budget, at = again.frame.quotas.budget_hours, (again.gpu_class, again.blame)
    return _raised(again, budget, at, Change.GPU_HOURS, value, sentence)


def _blamed(again: Again) -> str:
    return again.frame.queue_names[again.blame]


def _need(again: Again) -> int:
    """Milli-GPU of the least members."""
    work = again.frame.work
    return int(work.least[again.slot] * work.need[GPUS, again.slot])


def _raised(
    again: Again, limits: Any, at: Any, change: Change, value: int, sentence: str
) -> Relaxation | None:
    """The relaxation if the slot starts while ``limits[at]`` is ``value``."""
    original = limits[at]
    limits[at] = value
    try:
        return again.starts(change, value, sentence, _blamed(again))
    finally:
        limits[at] = original
