"""What speaks for and against promoting a variant: conditions that it meets or lacks, each in a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduling.models import Cluster, Quota, Study, StudyState
from scheduling.services.studies.experiments.results import FigureRow, Results, Verdict
from scheduling.services.studies.experiments.worlds import OF_POLICY, wall_of
from scheduling.simulation.replications import LEAST

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
        Condition("told", _told(study, row)),
        Condition("better", _better(row)),
        Condition("no_queue_pays", _pays(found, row)),
        Condition("nothing_worse", _worse(row)),
        Condition("still_in_force", _outdated(study)),
        Condition("a_week", _short(study)),
        Condition("own_work", _foreign(study)),
    )


def lacking(study: Study, found: Results, row: FigureRow) -> list[dict[str, str]]:
    """Those that are not met, as {condition, sentence}."""
    told = conditions(study, found, row)
    return [{"condition": one.key, "sentence": one.sentence} for one in told if not one.is_met]


def _told(study: Study, row: FigureRow) -> str:
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
    names = ", ".join(longer[:NAMED]) + (
        f" and {len(longer) - NAMED} more" if len(longer) > NAMED else ""
    )
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
    told = Cluster.history.filter(id=cluster.pk).order_by("history_date", "history_id")
    for at, *values in told.values_list("history_date", *OF_POLICY):
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
