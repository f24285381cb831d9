"""What would start work that waits, planned before anybody asks and kept until the plan changes.

A pass takes what was planned longest ago first, within ``MOST_S`` of a core, from one reading of the cluster
and one frame of the engine; where nothing has changed since, it reads two tables and plans nothing.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from scheduling.cluster.adapters import key_of
from scheduling.engine import Planner
from scheduling.engine.model import Snapshot, SnapshotError
from scheduling.engine.whatif.change import Reach
from scheduling.engine.whatif.relaxations import relaxations_in
from scheduling.models import Cluster, StartChanges, Workload
from scheduling.models.workloads import WAITING
from scheduling.services.errors import ServiceError
from scheduling.services.explain.documents import relaxation_document
from scheduling.services.snapshot.live import live_or_refused

__all__ = ["Reach", "log", "plan_now", "planned_changes", "refresh"]

log = logging.getLogger(__name__)

Json = dict[str, Any]
ReachOf = Callable[[str], Reach]
"""Of a person's name; an empty one for whoever is nobody here."""

MOST, MOST_S = 60, 2.0
"""Workloads and CPU seconds of one pass."""
FRESH = timedelta(minutes=10)
"""What was planned before is no answer to whoever looks now: where too many wait to keep all up, it is
planned as they look."""
KEPT = timedelta(hours=1)
"""So long after somebody else than its owner looked, their answer is kept up."""


@dataclass(frozen=True, slots=True)
class _Wish:
    """One answer that is to be planned; ``kept_until`` as its row has it."""

    work: Workload
    reach: Reach
    kept_until: Any


def planned_changes(work: Workload, reach: Reach) -> StartChanges | None:
    """What was planned for it of late within ``reach``; None where nothing was."""
    since = timezone.now() - FRESH
    rows = StartChanges.objects.filter(workload=work, reach=_digest(reach), planned_at__gt=since)
    return rows.first()


def plan_now(cluster: Cluster, wanted: Iterable[tuple[Workload, Reach]]) -> Iterator[StartChanges]:
    """Planned anew, all on one reading of ``cluster``, and each kept before the next. Raises ServiceError
    when it does not answer."""
    revision = cluster.revision
    snapshot = live_or_refused(cluster, "Ask again in a moment.")
    wishes = [_Wish(work, reach, _kept_until(work, reach)) for work, reach in wanted]
    for found in _planned(snapshot, wishes, revision):
        _write([found])
        yield found


def _kept_until(work: Workload, reach: Reach) -> datetime | None:
    """An owner's answer is kept up as long as the work waits."""
    owners = StartChanges.objects.filter(workload=work, reach=_digest(reach), kept_until=None)
    return None if owners.exists() else timezone.now() + KEPT


def refresh(cluster: Cluster, reach_of: ReachOf, owners: QuerySet[Any, Any]) -> int:
    """Plan anew what was planned before the plan changed; ``reach_of`` says among what owners choose, and
    ``owners`` is a query of the names of those who may ask: nobody reads what would start other work. How
    many were planned. Raises ServiceError when the cluster does not answer."""
    _forget(cluster)
    wishes = _next_wishes(cluster, reach_of, owners)[:MOST]
    if not wishes:
        return 0
    revision = cluster.revision
    snapshot = live_or_refused(cluster)
    rows, began_s = [], time.thread_time()
    for row in _planned(snapshot, wishes, revision):
        rows.append(row)
        if time.thread_time() - began_s > MOST_S:
            break
    _write(rows)
    return len(rows)


def _forget(cluster: Cluster) -> None:
    """Of what waits no longer, and of who looked long ago."""
    rows = StartChanges.objects.filter(workload__cluster=cluster)
    rows.exclude(workload__state__in=WAITING).delete()
    rows.filter(kept_until__lt=timezone.now()).delete()


def _next_wishes(cluster: Cluster, reach_of: ReachOf, names: QuerySet[Any, Any]) -> list[_Wish]:
    """What was never planned first, the youngest before all, then what was planned longest ago."""
    rows = StartChanges.objects.filter(workload__cluster=cluster)
    waiting = Workload.objects.filter(
        cluster=cluster, state__in=WAITING, held=False, queue__isnull=False, user__in=names
    )
    owners = rows.filter(kept_until=None).values("workload")
    fresh = waiting.exclude(pk__in=owners).order_by("-submitted_at")[: MOST // 2]
    stale = rows.filter(revision__lt=cluster.revision).select_related("workload").order_by("at")
    return [_Wish(work, reach_of(work.user), None) for work in fresh] + [
        _Wish(row.workload, Reach(row.queues, row.priority_classes), row.kept_until)
        for row in stale[:MOST]
    ]


def _planned(snapshot: Snapshot, wishes: Iterable[_Wish], revision: int) -> Iterator[StartChanges]:
    """Nothing for work that the cluster does not show, as for what starts anyway. Two people who choose among
    the same have one plan."""
    try:
        frame = Planner().read(snapshot)
    except SnapshotError as error:
        raise ServiceError(
            "cannot_plan", "The cluster cannot be planned as it is.",
            "Ask an admin to look at the engine's page.",
        ) from error  # fmt: skip
    slots = {name: slot for slot, name in frame.slot_names.items()}
    made: dict[tuple[int, str], list[Json]] = {}
    for wish in wishes:
        key = wish.work.pk, _digest(wish.reach)
        if key not in made:
            slot = slots.get(key_of(wish.work.kind, wish.work.namespace, wish.work.name))
            reach = _within(snapshot, wish.reach)
            found = [] if slot is None else relaxations_in(frame, slot, reach)
            made[key] = [relaxation_document(one) for one in found]
        yield StartChanges(
            workload=wish.work, reach=key[1], queues=list(wish.reach.queues),
            priority_classes=list(wish.reach.priority_classes), found=made[key],
            at=snapshot.now, revision=revision, planned_at=timezone.now(),
            kept_until=wish.kept_until,
        )  # fmt: skip


def _within(snapshot: Snapshot, reach: Reach) -> Reach:
    """Without what the snapshot does not have."""
    known, classes = {q.name for q in snapshot.queues}, {p.name for p in snapshot.priority_classes}
    return Reach(
        [queue for queue in reach.queues if queue in known],
        [kind for kind in reach.priority_classes if kind in classes],
    )


def _write(rows: Iterable[StartChanges]) -> None:
    """In place of what stood there; of two that plan at once the last word stays. An owner's comes before the
    same of somebody else."""
    each = {(row.workload_id, row.reach): row for row in reversed(list(rows))}
    StartChanges.objects.bulk_create(
        each.values(), update_conflicts=True, unique_fields=["workload", "reach"],
        update_fields=["found", "at", "revision", "planned_at", "kept_until"],
    )  # fmt: skip


def _digest(reach: Reach) -> str:
    text = json.dumps([sorted(reach.queues), sorted(reach.priority_classes)])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
