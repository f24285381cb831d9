"""How rules and what they watch read."""

from __future__ import annotations

import math

from portal.alerts.models import Figure, Firing, Rule, Tell
from portal.display.format import counted, duration, number

UNITS = {
    Figure.EVICTED_AGAIN: "times", Figure.IN_VAIN: "evictions", Figure.BUDGET: "days",
    Figure.OVERSUBSCRIBED: "GPUs",
}  # fmt: skip
"""Of the bound; the others are times, typed in minutes."""


def value_of(rule: Rule, value: float) -> str:
    """'15 h 37 min', '3 times', '–'."""
    if math.isnan(value):
        return "–"
    figure = Figure(rule.figure)
    if figure == Figure.EVICTED_AGAIN:
        return counted(value, "time")
    if figure == Figure.IN_VAIN:
        return counted(value, "eviction") if value > 0 else "none"
    if figure == Figure.BUDGET:
        return counted(value, "day") if value > 0 else "lasts"
    if figure == Figure.OVERSUBSCRIBED:
        return counted(value, "GPU") if value > 0 else "none"
    return duration(value)


def scope(rule: Rule) -> str:
    """'products/assistant, a100-40gb'; of all where it says nothing."""
    place = rule.queue.path if rule.queue else "any queue"
    if rule.figure in (Figure.ENGINE_STALLED, Figure.MIRROR_STALE):
        return ""
    if rule.figure == Figure.OVERSUBSCRIBED:
        return rule.gpu_class.name if rule.gpu_class else "any class"
    return f"{place}, {rule.gpu_class.name}" if rule.gpu_class else place


def fires(rule: Rule) -> str:
    """When it does: 'products/assistant: over 12 h'."""
    bound = value_of(rule, rule.over)
    said = {
        Figure.LONGEST_WAIT: f"a workload waits over {bound} for its first start",
        Figure.WAIT_P90: f"of the last 24 h over {bound}",
        Figure.STARVATION: f"below 80 % of its fair share for over {bound}",
        Figure.IDLE_GPUS: f"{rule.least_gpus} or more of one workload idle for over {bound}",
        Figure.EVICTED_AGAIN: f"one workload {bound} in 7 days",
        Figure.IN_VAIN: "evicted in 24 h for work that did not get the GPUs"
        + (f": over {bound}" if rule.over else ""),
        Figure.BUDGET: f"runs out {bound} or more before its end",
        Figure.OVERSUBSCRIBED: "nominal above what is ready"
        + (f" by over {bound}" if rule.over else ""),
        Figure.ENGINE_STALLED: f"no plan for {bound}",
        Figure.MIRROR_STALE: f"the picture is older than {bound}",
    }[Figure(rule.figure)]
    place = scope(rule)
    span = f", for {duration(rule.for_s)}" if rule.for_s else ""
    return f"{place}: {said}{span}" if place else f"{said}{span}"


def title(rule: Rule) -> str:
    place = scope(rule)
    return f"{rule.get_figure_display()}, {place}" if place else rule.get_figure_display()


def whom(rule: Rule) -> str:
    """The people who are told."""
    if rule.tell == Tell.OWNER:
        return "its owner"
    if rule.tell == Tell.LEADS:
        return f"{rule.queue.name} leads" if rule.queue else "the queue's leads"
    return "operators"


def circle(rule: Rule) -> str:
    """The people who are told where nobody acknowledges it, and after how long; empty where nobody is."""
    if not rule.escalate_s:
        return ""
    team = [rule.escalate_team.name] if rule.escalate_team else []
    names = [*team, *rule.escalate_people] or ["administrators"]
    return f"{', '.join(names)} after {duration(rule.escalate_s)}"


def headline(rule: Rule, firing: Firing, *, is_over: bool) -> str:
    whose = [one.name for one in (firing.workload, firing.queue) if one][:1]
    if firing.gpu_class is not None:
        whose.append(firing.gpu_class.name)
    about = f" of {', '.join(whose)}" if whose else ""
    name = rule.get_figure_display()
    if is_over:
        lasted = duration((firing.until or firing.since) - firing.since)
        return f"{name}{about} is over, after {lasted}; it reached {value_of(rule, firing.peak)}."
    return f"{name}{about}: {value_of(rule, firing.peak)}."


def bound_typed(rule: Rule) -> str:
    """The bound as its field has it: minutes where it is a time."""
    value = rule.over if rule.figure in UNITS else rule.over / 60
    return number(value, 2).replace(",", "")
