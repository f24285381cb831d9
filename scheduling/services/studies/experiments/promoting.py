"""A variant is chosen, with a reason: by which door its changes go. Nothing is changed here.

Policy and quotas have doors with a preview of their own; nodes, classes and priorities are changed elsewhere,
by hand, and are told as left out.

What speaks for and against promoting a variant: conditions that it meets or lacks, each in a sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from scheduling.models import Cluster, Quota, Study, StudyState, Variant
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce
from scheduling.services.lists import few
from scheduling.services.queues.knobs import BY_FIELD
from scheduling.services.studies.experiments.results import FigureRow, Results, Verdict
from scheduling.services.studies.experiments.variants import kinds_changed
from scheduling.services.studies.experiments.worlds import OF_POLICY, wall_of
from scheduling.simulation.replications import LEAST

DOORS = ("policy", "quota", "queue")
"""Kinds of changes that have one."""
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Promotion:
    """``policy`` are values by field, ``quotas`` and ``queues`` changes of a what-if, ``left_out`` kinds."""

    policy: Mapping[str, Any]
    quotas: tuple[Json, ...]
    queues: tuple[Json, ...]
    left_out: tuple[str, ...]

    @property
    def has_door(self) -> bool:
        return bool(self.policy or self.quotas or self.queues)


def promotion_of(variant: Variant) -> Promotion:
    changes = [dict(one) for one in variant.changes]
    policy = {one["setting"]: one["value"] for one in changes if one["kind"] == "policy"}
    known = {name: value for name, value in policy.items() if name in BY_FIELD}
    left_out = [kind for kind in kinds_changed(changes) if kind not in DOORS]
    return Promotion(
        known,
        tuple(one for one in changes if one["kind"] == "quota"),
        tuple(one for one in changes if one["kind"] == "queue"),
        (*left_out, *sorted(policy.keys() - known.keys())),
    )


@transaction.atomic
def promote(*, variant: Variant, author: str, reason: str) -> Promotion:
    """Note who chose it and why. Raises ServiceError without a reason, a replay, or a door to go through."""
    if not reason.strip():
        raise ServiceError("no_reason", "A promotion needs a reason.", "Say why.", field="reason")
    if not variant.results.exclude(done_at=None).exists():
        raise ServiceError(
            "not_lived", f"Nothing was lived under {variant} yet.", "Wait for its first replays.",
            field="variant",
        )  # fmt: skip
    found = promotion_of(variant)
    if not found.has_door:
        raise ServiceError(
            "no_door", f"{variant} changes no policy and no quota.",
            "Promote one that does; nodes and classes are changed where they are kept.", field="variant",
        )  # fmt: skip
    variant.promoted_at = variant.study.cluster.now()
    variant.promoted_by, variant.reason = author, reason.strip()[:500]
    variant.save(update_fields=["promoted_at", "promoted_by", "reason"])
    announce(
        "lab.promoted",
        actor=author,
        cluster=variant.study.cluster,
        subject=f"{variant.study.name}: {variant}",
        after={"changes": variant.changes},
        reason=reason.strip(),
    )
    return found


WEEK = timedelta(days=7)
NAMED = 4
"""Queues that a sentence names."""


@dataclass(frozen=True, slots=True)
class Condition:
    """``sentence`` says what is lacking where it is not met; else it is empty."""

    key: str
    sentence: str = ""

    @property
    def is_met(self) -> bool:
        return not self.sentence


def conditions(study: Study, found: Results, row: FigureRow) -> tuple[Condition, ...]:
    """In the order in which they weigh. Two queries."""
    return (
        Condition("told", _figure_in_words(study, row)),
        Condition("better", _better(row)),
        Condition("no_queue_pays", _pays(found, row)),
        Condition("nothing_worse", _worse(row)),
        Condition("still_in_force", _outdated(study)),
        Condition("a_week", _short(study)),
        Condition("own_work", _foreign(study)),
    )


def lacking(study: Study, found: Results, row: FigureRow) -> list[dict[str, str]]:
    """Those that are not met, as {condition, sentence}."""
    criteria = conditions(study, found, row)
    return [{"condition": one.key, "sentence": one.sentence} for one in criteria if not one.is_met]


def _figure_in_words(study: Study, row: FigureRow) -> str:
    if not study.is_drawn:
        return "The period was lived once, as it came: its gain is not told from noise."
    if row.done < LEAST:
        return f"Fewer than {LEAST} replays ({row.done}): its effect is not told from noise."
    left = len(study.seeds) - row.done
    if left and row.variant.state in (StudyState.WAITING, StudyState.RUNNING):
        return f"{left} of its {len(study.seeds)} replays {'is' if left == 1 else 'are'} not lived yet."
    return ""


def _better(row: FigureRow) -> str:
    if row.done < LEAST or row.keys(Verdict.BETTER):
        return ""
    return "No figure over all is better by more than noise."


def _pays(found: Results, row: FigureRow) -> str:
    longer = [
        one.queue
        for one in found.queues
        for cell in one.cells
        if cell.letter == row.variant.letter and cell.verdict == Verdict.WORSE
    ]
    if not longer:
        return ""
    names = few(longer, NAMED)
    if row.keys(Verdict.BETTER):
        return f"The gain over all is paid for by longer waits in {names}."
    return f"Longer waits by more than noise in {names}."


def _worse(row: FigureRow) -> str:
    names = [
        cell.figure.name.lower()
        for cell in row.cells
        if cell.verdict == Verdict.WORSE and cell.figure.drawn
    ]
    return f"Worse by more than noise over all: {', '.join(names)}." if names else ""


def _outdated(study: Study) -> str:
    changed = max(_policy_changes(study), default=None)
    if changed is None:
        return ""
    return (
        f"Policy or quotas have changed since the period, last on {changed.day} {changed:%b %Y}:"
        " A is not what is in force now."
    )


def _policy_changes(study: Study) -> Iterator[datetime]:
    """Cluster times after the period; of a trace, whose world is that of its day, after it was asked."""
    cluster = study.cluster
    since = study.asked_at if _is_of_trace(study) else study.period[1]
    rows = Quota.objects.filter(
        queue__cluster=cluster, effective_from__gt=since, effective_from__lte=cluster.now()
    )
    last = rows.order_by("-effective_from").values_list("effective_from", flat=True).first()
    if last is not None:
        yield last
    yield from _steps(cluster, since)


def _steps(cluster: Cluster, since: datetime) -> Iterator[datetime]:
    """When the policy became another after ``since``."""
    wall, before = wall_of(cluster, since), None
    history = Cluster.history.filter(id=cluster.pk).order_by("history_date", "history_id")
    for at, *values in history.values_list("history_date", *OF_POLICY):
        if before is not None and values != before and at > wall:
            yield at
        before = values


def _short(study: Study) -> str:
    begin, end = study.period
    if end - begin >= WEEK:
        return ""
    return "Less than a week is judged: weekdays and weekends differ."


def _foreign(study: Study) -> str:
    return "The work is that of a trace, not of this cluster." if _is_of_trace(study) else ""


def _is_of_trace(study: Study) -> bool:
    return bool(study.basis.get("source", {}).get("kind") == "trace")
