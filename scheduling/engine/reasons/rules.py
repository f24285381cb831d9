"""One sentence for each rule by which a workload is evicted, shrunk or moved, and for each cause of a lapse.

Where a rule leaves a queue below its nominal, or takes from inside its share, the sentence says so first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from scheduling.engine.enums import Lapse, Rule
from scheduling.engine.reasons.facts import Facts
from scheduling.engine.reasons.wording import above, amount, are, clock, plural, share


@dataclass(frozen=True, slots=True)
class RuleEntry:
    """What is known of a rule."""

    headline: str
    means: str
    """For documentation and pages: what is so when this rule takes."""


RULES: Final[Mapping[Rule, RuleEntry]] = {
    Rule.ABOVE_FAIR_SHARE: RuleEntry(
        "Above fair share", "its queue held more than its fair share, and another is entitled to it"
    ),
    Rule.OWED_NOMINAL: RuleEntry(
        "Nominal is owed",
        "another asks for its nominal; gangs are whole, so this one may lie partly inside the fair share of"
        " its queue, but not inside its nominal",
    ),
    Rule.LENT_NOMINAL: RuleEntry(
        "Lent above nominal",
        "another asks for its nominal and finds no other room; what its queue held above its own nominal is"
        " lent, though inside its fair share",
    ),
    Rule.ROUNDED: RuleEntry(
        "Rounded to whole gangs",
        "another passes its fair share by a part of a gang, and all come closer to their shares with it",
    ),
    Rule.REGAINED: RuleEntry(
        "Nominal grows back", "an elastic gang grows inside its nominal, by members that were lent"
    ),
    Rule.LOWER_PRIORITY: RuleEntry(
        "Lower priority", "higher priority of its own queue needs its GPUs"
    ),
    Rule.GIVES_WAY: RuleEntry(
        "Gives way",
        "its subtree shares by promise or throughput, and another goes first: it is well ahead of its own"
        " quota, or expected to take far longer",
    ),
    Rule.MOVED: RuleEntry(
        "Moves together", "it moves so that free GPUs lie side by side for another"
    ),
    Rule.STALE_GANG: RuleEntry(
        "Stale gang", "fewer than its least members have been running for longer than the grace"
    ),
    Rule.DRAINED: RuleEntry("Queue drained", "its queue, or one above it, is being drained"),
}

LAPSES: Final[Mapping[Lapse, RuleEntry]] = {
    Lapse.SEATS_GONE: RuleEntry(
        "Seats are gone",
        "nodes that were kept for it went, shrank or were taken by pods outside the queues, or it asks for"
        " something else by now",
    ),
    Lapse.TAKEN_AWAY: RuleEntry(
        "Taken away by people",
        "a limit or nominal above it was lowered, its GPU-hours are spent, or it or its queue is held or"
        " drained",
    ),
    Lapse.OVERDUE: RuleEntry(
        "Room did not come", "its room was due for longer than a claim is held, and is not there"
    ),
}


def begins_with(f: Facts) -> str:
    """That what is taken leaves the queue below its nominal, or lies inside its share; empty where not."""
    of = f.figures
    if of.keeps < min(of.held, of.nominal):
        return (
            f"This leaves {f.blame} below its nominal of {amount(of.nominal)}: it keeps"
            f" {amount(of.keeps)}. "
        )
    if of.keeps < of.fair_share:
        return (
            f"This takes from inside the fair share of {f.blame}, {share(of.fair_share)}: it keeps"
            f" {amount(of.keeps)}. "
        )
    return ""


def above_fair_share(f: Facts) -> str:
    usage, fair = f.figures.held, f.figures.fair_share
    return (
        f"{f.blame} held {amount(usage)} {f.gpu_class}, {above(usage, fair)} above its fair share of"
        f" {share(fair)}; {f.other} is entitled to them."
    )


def owed_nominal(f: Facts) -> str:
    usage, fair = f.figures.held, f.figures.fair_share
    return (
        f"{f.blame} held {amount(usage)} {f.gpu_class}, {above(usage, fair)} above its fair share of"
        f" {share(fair)}; {f.other} asks for {amount(f.figures.requested)} inside its nominal, and gangs are"
        " whole."
    )


def lent_nominal(f: Facts) -> str:
    usage, nominal = f.figures.held, f.figures.nominal
    return (
        f"{f.blame} held {amount(usage)} {f.gpu_class}, {amount(usage - nominal)} above its nominal of"
        f" {amount(nominal)}: that is lent, and {f.other} asks for {amount(f.figures.requested)} inside its"
        " own."
    )


def rounded(f: Facts) -> str:
    usage, fair = f.figures.held, f.figures.fair_share
    return (
        f"{f.blame} held {amount(usage)} {f.gpu_class} with a fair share of {share(fair)}; {f.other} needs"
        f" {amount(f.figures.requested)} at once, and with them all are closer to their shares than without."
    )


RECLAIMS: Final[Mapping[str, Callable[[Facts], str]]] = {
    Rule.OWED_NOMINAL: owed_nominal,
    Rule.LENT_NOMINAL: lent_nominal,
    Rule.ROUNDED: rounded,
}
"""Why a queue gives back, where it is not only what it held above its share."""


def taken_from(f: Facts) -> str:
    """How the queue stood that gives back, and who is entitled to it."""
    return begins_with(f) + RECLAIMS.get(f.rule, above_fair_share)(f)


def claim_lapsed(f: Facts) -> str:
    room = f"{amount(f.figures.needs)} {f.gpu_class}".strip()
    left = f.figures.victims
    vain = f" {plural(left, 'workload')} left for it in vain." if left else ""
    cause = {
        Lapse.SEATS_GONE: "the seats are there no more, or it asks for something else by now",
        Lapse.TAKEN_AWAY: "a limit, a quota or a hold of people forbids its start by now",
        Lapse.OVERDUE: f"they were due {clock(f.until)} and it still cannot start",
    }.get(Lapse(f.rule or Lapse.SEATS_GONE))
    return f"{room} {are(f.figures.needs)} kept for it no longer: {cause}.{vain}"
