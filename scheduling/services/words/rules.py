"""What the rule of an eviction, and the cause of a claim that lapsed, are called on pages and in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduling.engine.model import Rule
from scheduling.engine.reasons.rules import RULES
from scheduling.models import Eviction, EvictionRule, LapseCause
from scheduling.models.ledger import OWN_CAUSES

IN_VAIN = frozenset(LapseCause.values) - {cause.value for cause in OWN_CAUSES}
"""Causes that count: whose people called the work off has lost what left for it by themselves."""


def label_of(rule: str, allowed_by: str) -> str:
    """Of an eviction by ``rule`` that the row ``allowed_by`` let go; of ``rule`` where nobody said which; ''
    where neither is known.
    """
    known = RULES.get(Rule(allowed_by)) if allowed_by in list(Rule) else None
    if known:
        return known.headline.lower()
    return EvictionRule(rule).label if rule else ""


def rules_in_words() -> Sequence[tuple[str, str]]:
    """Each rule by which work leaves: its headline, and when it takes, as a sentence."""
    return [(one.headline, f"{one.means[0].upper()}{one.means[1:]}.") for one in RULES.values()]


def cause_of(eviction: Eviction) -> str:
    """Why whom it made room for did not get it: 'In vain: the other could not start in time.'; '' where it
    did, or still may."""
    if not eviction.in_vain:
        return ""
    said = "In vain" if eviction.in_vain in IN_VAIN else "Not needed"
    return f"{said}: {LapseCause(eviction.in_vain).label}."


WHY: Mapping[LapseCause, str] = {
    LapseCause.SEATS_GONE: "its nodes are gone",
    LapseCause.EDITED: "it asks for something else by now",
    LapseCause.HELD: "it was held or may not start",
    LapseCause.GONE: "it ended or was cancelled",
    LapseCause.OVERDUE: "the cluster did not let the others go",
}


def sentence_of(cause: LapseCause, victims: int) -> str:
    """Of a claim that lapsed though no plan of the engine said so."""
    left = {0: "Nobody", 1: "One workload"}.get(victims, f"{victims} workloads")
    why = WHY.get(cause, "a plan gave it up")
    return f"Nothing is kept for it any more: {why}. {left} left for it."
