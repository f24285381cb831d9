"""Experiments that are asked, left, found again, cancelled and dropped.

1. ``ask`` writes one down with its world, its work, its variants and a row for every replay.
2. ``running.start`` has tasks live the replays.
3. ``cancel`` stops one variant or all, ``drop`` forgets it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q

from scheduling.engine import model as m
from scheduling.models import Cluster, Experiment, Variant, VariantReplay, VariantState
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce
from scheduling.services.lab import kinds, periods
from scheduling.services.lab.taken import (
    Days,
    TraceAsked,
    days_of_past,
    days_of_trace,
    opened,
    taken_from_past,
    taken_from_trace,
)
from scheduling.services.snapshot.asked import live_or_refused
from scheduling.simulation.traces import Trace

LETTERS = "ABCDEF"
MOST_REPLAYS = 40
MOST_OPEN = 5
"""Experiments of a cluster that are not over."""
OPEN = (VariantState.WAITING, VariantState.RUNNING)
FORGOTTEN = timedelta(days=180)
A_NAME = "As in force"
BY = {"people": ~Q(author=""), "adaptation": Q(author=""), "all": Q()}
"""Whose experiments are listed; the daily ones of adaptation would bury those of people."""
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """``variants`` are those beside A: {name, changes, and kind where it is another}. The work is the
    cluster's own past, or that of ``trace``, of which begin and end may both be left out. ``of_today``: the
    past comes again in today's world, for who asks what to have in force from now on."""

    name: str
    begin: datetime | None = None
    end: datetime | None = None
    warm_up: timedelta = timedelta(days=7)
    replays: int = 20
    is_drawn: bool = True
    variants: Sequence[Mapping[str, Any]] = ()
    trace: TraceAsked | None = None
    of_today: bool = False


def ask(*, cluster: Cluster, author: str, asked: Asked) -> Experiment:
    """Write it down. Raises ServiceError at a field."""
    _check(asked)
    trace = opened(asked.trace)
    days = days_of(cluster, asked, trace)
    today = live_or_refused(cluster)
    for number, one in enumerate(asked.variants):
        check_variant(one, today, days, at=f"variants.{number}")
    if asked.trace is not None and trace is not None:
        found = taken_from_trace(today, trace, asked.trace.name, days)
    else:
        found = taken_from_past(cluster, today, days, of_today=asked.of_today)
    with transaction.atomic():
        if _open(cluster) >= MOST_OPEN:
            raise ServiceError(
                "busy", "Too many experiments run.", "Cancel one, or wait until one has ended."
            )
        made = Experiment.objects.create(
            cluster=cluster,
            name=asked.name.strip(),
            author=author,
            begin=days.begin,
            end=days.end,
            warm_up_s=int(days.warm_up.total_seconds()),
            replays=asked.replays if asked.is_drawn else 1,
            is_drawn=asked.is_drawn,
            jobs=sum(found.period.judged),
            asked_at=cluster.now(),
            world=periods.world_document(found.world),
            work=periods.work_document(found.period),
            recorded=found.recorded,
            source=found.source,
            basis=found.basis,
        )
        _write_variants(made, asked.variants)
        announce(
            "lab.asked", actor=author, cluster=cluster, subject=made.name,
            after={"variants": [str(one) for one in made.variants.all()]},
        )  # fmt: skip
    return made


def days_of(cluster: Cluster, asked: Asked, trace: Trace | None) -> Days:
    """Raises ServiceError where ledger or trace does not have them."""
    if trace is None:
        return days_of_past(cluster, asked.begin, asked.end, asked.warm_up)
    return days_of_trace(trace, asked.begin, asked.end, asked.warm_up)


def _check(asked: Asked) -> None:
    if not asked.name.strip() or len(asked.name) > 120:
        raise ServiceError(
            "no_name", "An experiment needs a name.", "Write one of up to 120 characters.", field="name"
        )  # fmt: skip
    if len(asked.variants) > len(LETTERS) - 1:
        raise ServiceError(
            "too_many", f"There are {len(asked.variants) + 1} variants.",
            f"Compare {len(LETTERS)} at most, A among them.", field="variants",
        )  # fmt: skip
    if not 1 <= asked.replays <= MOST_REPLAYS:
        raise ServiceError(
            "bad_replays", "So many replays are not lived.", f"Ask for 1 to {MOST_REPLAYS}.", field="replays"
        )  # fmt: skip


def check_variant(one: Mapping[str, Any], snapshot: m.Snapshot, days: Days, *, at: str) -> None:
    """Raises ServiceError whose field says where: ``variants.0.changes.0.queue``."""
    try:
        if not str(one.get("name", "")).strip():
            raise ServiceError("no_name", "A variant needs a name.", "Write one.", field="name")
        kind = kinds.kind_of(str(one.get("kind", kinds.CHANGES)))
        changes = one.get("changes", [])
        kind.world(snapshot, changes)
        kind.refuses(changes, days.begin - days.warm_up, days.end)
    except ServiceError as error:
        raise ServiceError(
            error.code, error.sentence, error.remedy, field=f"{at}.{error.field}"
        ) from error


def _open(cluster: Cluster) -> int:
    return Experiment.objects.filter(cluster=cluster, variants__state__in=OPEN).distinct().count()


def _write_variants(made: Experiment, variants: Sequence[Mapping[str, Any]]) -> None:
    first: Json = {"name": A_NAME, "kind": kinds.IN_FORCE, "changes": []}
    for letter, one in zip(LETTERS, (first, *variants), strict=False):
        variant = Variant.objects.create(
            experiment=made,
            letter=letter,
            name=str(one["name"]).strip()[:120],
            kind=one.get("kind", kinds.CHANGES),
            changes=list(one.get("changes", [])),
        )
        VariantReplay.objects.bulk_create(
            VariantReplay(variant=variant, seed=seed) for seed in made.seeds
        )


def cancel(experiment: Experiment, *, letter: str = "", author: str = "") -> int:
    """Stop one variant, or all; how many waited or ran still. What is lived already stays."""
    mine = Variant.objects.filter(experiment=experiment, state__in=OPEN)
    if letter:
        mine = mine.filter(letter=letter)
    count = mine.update(state=VariantState.CANCELLED)
    if count:
        announce(
            "lab.cancelled", actor=author, cluster=experiment.cluster, subject=experiment.name,
            after={"variants": letter or "all"},
        )  # fmt: skip
    return count


def drop(experiment: Experiment) -> None:
    Experiment.objects.filter(pk=experiment.pk).delete()


def forget(cluster: Cluster) -> int:
    """Drop those that are old and of which nothing was promoted; how many."""
    old = Experiment.objects.filter(cluster=cluster, asked_at__lt=cluster.now() - FORGOTTEN)
    return old.exclude(variants__promoted_at__isnull=False).delete()[0]
