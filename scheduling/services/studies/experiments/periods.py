"""The period of an experiment: what the ledger has of it, and how its world and its work are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Avg, F

from scheduling.engine import model as m
from scheduling.engine.document.reader import dump, parse
from scheduling.models import Cluster, Eviction, Study, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.ledger.past import past_of
from scheduling.simulation.ahead.period import Period
from scheduling.simulation.run.jobs import Submission

MOST_DAYS, MOST_WARM_UP_DAYS = 28, 28
MOST_JOBS = 20_000
"""Of warm-up and period: so many are kept with an experiment, and lived in seconds."""
Json = dict[str, Any]


def known_since(cluster: Cluster) -> datetime | None:
    """When the first work came that the ledger has."""
    rows = Workload.objects.filter(cluster=cluster, gpus__gt=0).order_by("submitted_at")
    return rows.values_list("submitted_at", flat=True).first()


def check(cluster: Cluster, begin: datetime, end: datetime, warm_up: timedelta) -> None:
    """Raises ServiceError where the ledger does not have it all."""
    now, first = cluster.now(), known_since(cluster)
    if end > now and begin < end:
        raise fault(
            "end", "The period is not over yet.", f"Let it end by {now:%d %b %Y %H:%M} UTC."
        )
    check_length(begin, end)
    check_warm_up(warm_up)
    if first is None or begin - warm_up < first:
        since = f"It begins on {first:%d %b %Y %H:%M} UTC" if first else "It is empty"
        raise fault(
            "begin", f"The ledger has not all of it. {since}.", "Begin later, or warm up for less."
        )


def check_length(begin: datetime, end: datetime) -> None:
    """Raises ServiceError for a period that ends before it begins, or is too long."""
    if not begin < end:
        raise fault("end", "The period ends before it begins.", "Choose a later last day.")
    if end - begin > timedelta(days=MOST_DAYS):
        raise fault("begin", "That is too long a period.", f"Choose {MOST_DAYS} days at most.")


def check_warm_up(warm_up: timedelta) -> None:
    if not timedelta(0) <= warm_up <= timedelta(days=MOST_WARM_UP_DAYS):
        raise fault(
            "warm_up_days",
            "So long is nothing warmed up.",
            f"Choose 0 to {MOST_WARM_UP_DAYS} days.",
        )


def fault(field: str, sentence: str, remedy: str) -> ServiceError:
    return ServiceError("bad_period", sentence, remedy, field=field)


def read_past(
    cluster: Cluster, snapshot: m.Snapshot, begin: datetime, end: datetime, warm_up: timedelta
) -> Period:
    """The ledger's jobs of warm-up and period. Raises ServiceError for none, or too many."""
    days = (end - begin + warm_up) / timedelta(days=1)
    past = past_of(cluster, days=days, snapshot=replace(snapshot, now=end))
    judged = tuple(
        i >= past.before and job.submitted >= begin for i, job in enumerate(past.submissions)
    )
    check_work(judged)
    return Period(past.begin, begin, end, past.submissions, judged, past.before)


def check_work(judged: Sequence[bool]) -> None:
    """Raises ServiceError for none that is judged, and for more than are lived."""
    if not any(judged):
        raise fault("begin", "Nothing was submitted in it.", "Choose a period in which work came.")
    if len(judged) > MOST_JOBS:
        raise fault(
            "begin",
            f"{len(judged):,} workloads are too many.",
            "Choose a shorter period, or warm-up.",
        )


def recorded(cluster: Cluster, begin: datetime, end: datetime) -> Json:
    """What really came of what was submitted in the period: mean wait of what started, evictions."""
    rows = Workload.objects.filter(
        cluster=cluster, gpus__gt=0, submitted_at__gte=begin, submitted_at__lt=end
    ).exclude(first_started_at=None)
    wait = rows.aggregate(mean=Avg(F("first_started_at") - F("submitted_at")))["mean"]
    evicted = Eviction.objects.filter(workload__cluster=cluster, at__gte=begin, at__lt=end).count()
    return {"avg_wait_s": wait.total_seconds() if wait else 0.0, "evictions": evicted}


def world_document(snapshot: m.Snapshot) -> Json:
    return dump(replace(snapshot, workloads=()))


def world_of(study: Study) -> m.Snapshot:
    return parse(study.world)


def work_document(period: Period) -> list[list[Any]]:
    """One row a job, as ``_columns`` says."""
    return [
        [*_columns(job, period.begin), judged, number < period.standing]
        for number, (job, judged) in enumerate(zip(period.jobs, period.judged, strict=True))
    ]


def _columns(job: Submission, begin: datetime) -> Sequence[Any]:
    work = job.workload
    quantiles = [work.predicted.p50, work.predicted.p90] if work.predicted else None
    return (
        work.name, work.queue, work.user, work.priority_class,
        (work.submitted - begin).total_seconds(), work.gpus, work.cpus, work.memory_mib,
        work.members.min, work.members.max, work.elastic, list(work.gpu_classes), quantiles,
        job.duration_s, job.checkpoint_s, job.restart_s,
    )  # fmt: skip


def period_of(study: Study) -> Period:
    """As it was read when the experiment was asked."""
    return read_work(study.work, study.starts, *study.period)


def read_work(
    rows: Sequence[Sequence[Any]], begin: datetime, since: datetime, until: datetime
) -> Period:
    """What ``work_document`` wrote of a period that begins with its warm-up at ``begin``."""
    return Period(
        begin=begin,
        since=since,
        until=until,
        jobs=tuple(_job(row, begin) for row in rows),
        judged=tuple(row[-2] for row in rows),
        standing=sum(row[-1] for row in rows),
    )


def _job(row: Sequence[Any], begin: datetime) -> Submission:
    (
        name, queue, user, priority, after_s, gpus, cpus, memory, least, most, elastic, classes, quantiles,
        run_s, checkpoint_s, restart_s,
    ) = row[:-2]  # fmt: skip
    work = m.Workload(
        name=name,
        queue=queue,
        user=user,
        priority_class=priority,
        submitted=begin + timedelta(seconds=after_s),
        gpus=gpus,
        cpus=cpus,
        memory_mib=memory,
        members=m.Members(least, most),
        elastic=elastic,
        gpu_classes=tuple(classes),
        predicted=m.PredictedRunTime(*quantiles) if quantiles else None,
    )
    return Submission(work, run_s, checkpoint_s, restart_s)
