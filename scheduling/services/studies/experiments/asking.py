"""An experiment is asked: a past period, or a trace, lived under variants; its world and work are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from scheduling.engine import model as m
from scheduling.models import Cluster, Study, StudyKind
from scheduling.services.errors import ServiceError
from scheduling.services.snapshot.live import live_or_refused
from scheduling.services.studies import doors
from scheduling.services.studies.experiments import periods, variants
from scheduling.services.studies.experiments.past import (
    Days,
    TraceQuestion,
    days_of_past,
    days_of_trace,
    opened,
    taken_from_past,
    taken_from_trace,
)
from scheduling.simulation.traces import Trace

LETTERS = "ABCDEF"
MOST_REPLAYS = 40
A_NAME = "As in force"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """``variants`` are those beside A: {name, changes}. The work is the
    cluster's own past, or that of ``trace``, of which begin and end may both be left out. ``of_today``: the
    past comes again in today's world, for whoever asks what to have in force from now on."""

    name: str
    begin: datetime | None = None
    end: datetime | None = None
    warm_up: timedelta = timedelta(days=7)
    replays: int = 20
    is_drawn: bool = True
    variants: Sequence[Mapping[str, Any]] = ()
    trace: TraceQuestion | None = None
    of_today: bool = False


def ask(
    *, cluster: Cluster, author: str, question: Question, kind: StudyKind = StudyKind.EXPERIMENT
) -> Study:
    """Write it down. Raises ServiceError at a field."""
    _check(question)
    trace = opened(question.trace)
    days = days_of(cluster, question, trace)
    today = live_or_refused(cluster)
    for number, one in enumerate(question.variants):
        check_variant(one, today, at=f"variants.{number}")
    if question.trace is not None and trace is not None:
        found = taken_from_trace(today, trace, question.trace.name, days)
    else:
        found = taken_from_past(cluster, today, days, of_today=question.of_today)
    others = [(str(one["name"]).strip(), list(one["changes"])) for one in question.variants]
    ways = zip(LETTERS, [(A_NAME, []), *others], strict=False)
    return doors.write(
        cluster=cluster,
        kind=kind,
        name=question.name.strip(),
        author=author,
        begin=days.begin,
        end=days.end,
        warm_up_s=int(days.warm_up.total_seconds()),
        replays=question.replays if question.is_drawn else 1,
        is_drawn=question.is_drawn,
        world=periods.world_document(found.world),
        work=periods.work_document(found.period),
        basis={
            "jobs": sum(found.period.judged),
            "recorded": found.recorded,
            "source": found.source,
            "world": found.basis,
        },
        ways=[(letter, name, changes) for letter, (name, changes) in ways],
    )


def days_of(cluster: Cluster, question: Question, trace: Trace | None) -> Days:
    """Raises ServiceError where ledger or trace does not have them."""
    if trace is None:
        return days_of_past(cluster, question.begin, question.end, question.warm_up)
    return days_of_trace(trace, question.begin, question.end, question.warm_up)


def _check(question: Question) -> None:
    if not question.name.strip() or len(question.name) > 120:
        raise ServiceError(
            "no_name", "An experiment needs a name.", "Write one of up to 120 characters.", field="name"
        )  # fmt: skip
    if len(question.variants) > len(LETTERS) - 1:
        raise ServiceError(
            "too_many", f"There are {len(question.variants) + 1} variants.",
            f"Compare {len(LETTERS)} at most, A among them.", field="variants",
        )  # fmt: skip
    if not 1 <= question.replays <= MOST_REPLAYS:
        raise ServiceError(
            "bad_replays", "So many replays are not lived.", f"Ask for 1 to {MOST_REPLAYS}.", field="replays"
        )  # fmt: skip


def check_variant(one: Mapping[str, Any], snapshot: m.Snapshot, *, at: str) -> None:
    """Raises ServiceError whose field says where: ``variants.0.changes.0.queue``."""
    try:
        if not str(one.get("name", "")).strip():
            raise ServiceError("no_name", "A variant needs a name.", "Write one.", field="name")
        variants.check(snapshot, one.get("changes", []))
    except ServiceError as error:
        raise ServiceError(
            error.code, error.sentence, error.remedy, field=f"{at}.{error.field}"
        ) from error
