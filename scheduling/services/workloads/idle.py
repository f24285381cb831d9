"""GPUs that are held and idle: since when, what became of it, and notebooks that are culled for it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import DateTimeField, F, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from scheduling.models import Cluster, ClusterMode, IdleEnd, IdleSpell, State, WorkloadType
from scheduling.models.workloads import HOLDING
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce
from scheduling.services.workloads import submit
from scheduling.services.workloads.gpu_use import MeasuredGpuUse

log = logging.getLogger(__name__)

LEAST = timedelta(minutes=5)
"""Shorter pauses are forgotten."""
KEPT = timedelta(hours=2)


def note(cluster: Cluster, measured: Iterable[MeasuredGpuUse], now: datetime) -> None:
    """Begin and end spells by what is measured, in the caller's transaction."""
    open_ = {s.workload_id: s for s in going_on(cluster).select_related("workload")}
    seen = set()
    for one in measured:
        seen.add(one.work.pk)
        spell = open_.get(one.work.pk)
        if one.is_idle and spell is None:
            _begin(one, now)
        elif one.is_idle and spell is not None:
            spell.memory_mib = one.use.memory_mib
            spell.save(update_fields=["memory_mib"])
        elif spell is not None:
            _end(spell, IdleEnd.USED, now)
    for pk in open_.keys() - seen:
        work = open_[pk].workload
        if work.state not in HOLDING:
            _end(open_[pk], IdleEnd.GIVEN_BACK, work.finished_at or now)


def going_on(cluster: Cluster) -> QuerySet[IdleSpell]:
    return IdleSpell.objects.filter(workload__cluster=cluster, until=None)


def _begin(one: MeasuredGpuUse, now: datetime) -> None:
    work = one.work
    IdleSpell.objects.create(
        workload=work,
        gpu_class_id=work.gpu_class_id or 0,
        gpus=work.allocated_gpus,
        since=now,
        memory_mib=one.use.memory_mib,
    )


def _end(spell: IdleSpell, how: IdleEnd, at: datetime) -> None:
    if at - spell.since < LEAST and not spell.told:
        spell.delete()
        return
    spell.until, spell.ended = max(at, spell.since), how
    spell.save(update_fields=["until", "ended"])


def keep(spell: IdleSpell, *, by: str, now: datetime) -> None:
    """Its owner keeps the GPUs on purpose for ``KEPT``: nobody tells or culls before. Raises ServiceError."""
    count = going_on(spell.workload.cluster).filter(pk=spell.pk).update(kept_until=now + KEPT)
    if not count:
        raise ServiceError("moved_on", "Its GPUs are no longer idle.", "See the page again.")
    work = spell.workload
    announce(
        "work.kept_idle",
        actor=by,
        cluster=work.cluster,
        queue=work.queue.path if work.queue else "",
        subject=f"{work.namespace}/{work.name}",
        after={"until": (now + KEPT).isoformat()},
    )


def due_to_cull(cluster: Cluster, now: datetime) -> QuerySet[IdleSpell]:
    """Notebooks that idled for as long as the policy says, whose owner was told for long enough before."""
    if cluster.cull_after_s is None:
        return IdleSpell.objects.none()
    return going_on(cluster).filter(
        Q(kept_until=None) | Q(kept_until__lte=now),
        workload__type=WorkloadType.INTERACTIVE,
        workload__state=State.RUNNING,
        since__lte=now - timedelta(seconds=cluster.cull_after_s),
        first_told_at__lte=now - _warning(cluster),
    )


def _warning(cluster: Cluster) -> timedelta:
    """Least time between the first notice and the end."""
    after = cluster.cull_after_s or 0
    return timedelta(seconds=max(60, after - cluster.idle_after_s))


def cull(cluster: Cluster, now: datetime) -> int:
    """Cancel those that are due; how many were. Only where the cluster is enforced."""
    if cluster.mode != ClusterMode.ENFORCE:
        return 0
    done = 0
    for spell in due_to_cull(cluster, now).select_related("workload__cluster", "workload__queue"):
        try:
            submit.cull(spell.workload, now - spell.since)
        except ServiceError as refused:
            log.warning("idle notebook %s: %s", spell.workload, refused)
            continue
        with transaction.atomic():
            ended = IdleSpell.objects.filter(pk=spell.pk, until=None)
            done += ended.update(until=now, ended=IdleEnd.CULLED)
    return done


def culled_at(spell: IdleSpell, cluster: Cluster, now: datetime) -> datetime | None:
    """When it is culled at the soonest if nothing runs again and its owner, if not told yet, is told as soon
    as it is due; None for what is only told."""
    if cluster.cull_after_s is None or spell.workload.type != WorkloadType.INTERACTIVE:
        return None
    due_at = max(spell.since + timedelta(seconds=cluster.idle_after_s), now)
    warned_at = (spell.first_told_at or due_at) + _warning(cluster)
    idle_at = spell.since + timedelta(seconds=cluster.cull_after_s)
    return max(idle_at, warned_at, spell.kept_until or now, now)


def tell_owner(spell: IdleSpell, now: datetime) -> None:
    """Its owner is told, in the caller's transaction."""
    first = Coalesce("first_told_at", Value(now, DateTimeField()))
    IdleSpell.objects.filter(pk=spell.pk).update(
        told=F("told") + 1, told_at=now, first_told_at=first
    )
