"""One pass from the cluster to a plan and back.

1. Find the cluster's worker; a paused cluster is left alone.
2. Hold the lease (enforce mode only: observe writes nothing, not even that).
3. Wait until the mirror has seen the cluster once.
4. Project the cluster into rows, book the time since the last cycle.
5. Make the snapshot and plan; of more starts than one cycle should write, take a portion.
6. Record the plan and commit.
7. Enforce: only a committed plan reaches the cluster.
8. Settle: project once more, so that people see what was done without waiting for the next cycle. A
   large cluster that is called for the next one already leaves it to that.
9. Keep what an acting cycle was made of. A kill before that loses the record, never an act.

Killed at any point and run again, it ends in the same state: steps 4 and 8 read what the cluster shows,
step 7 decides each write on the object as it is.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from scheduling.cluster import picture as pictures
from scheduling.cluster.adapters import Observed
from scheduling.cluster.enforcement import Report
from scheduling.cluster.lease import LeaseLostError
from scheduling.cluster.picture import Picture
from scheduling.engine import Outline, Snapshot
from scheduling.models import Cluster, ClusterMode, Workload
from scheduling.services import backstops, own_quotas, recording, records, snapshots
from scheduling.services import policy as policies
from scheduling.services.acts import Scene, phases_of
from scheduling.services.blocked import Blocked, all_blocked, reworded
from scheduling.services.changes import Changes, save
from scheduling.services.own_quotas import Layout, OwnQuotas, node_gpus
from scheduling.services.policy import PolicyRows
from scheduling.services.portions import portion
from scheduling.services.projection import Projection
from scheduling.services.recording import Pass, Recorded
from scheduling.services.records import Watch
from scheduling.services.situations import Known, Situation
from scheduling.services.standings import RunTimes, Standings
from scheduling.services.workers import ClusterWorker, worker_of

log = logging.getLogger(__name__)

SYNC_S = 20.0
"""Wall seconds a cycle waits for the first list."""
ADMISSIONS = 200
"""Starts in one cycle: writing them takes its time, in which others end and more important ones come, so
the rest is planned anew. Where planning takes longer than writing so many, it is as many as take as long."""
MANY = 500
"""Workloads of a cluster whose second look costs more than it shows."""
LAG_S = 30.0
"""No plan is made of a picture that has been out of touch for longer (wall seconds)."""


@dataclass(frozen=True, slots=True)
class CycleResult:
    """What a cycle did. ``skipped`` says why it did nothing; counts are of acts, times in ms."""

    skipped: str = ""
    number: int = 0
    decisions: int = 0
    written: int = 0
    failed: Mapping[str, str] | None = None
    plan_ms: float = 0.0
    took_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class _View:
    """The cluster as one cycle sees it."""

    cluster: Cluster
    picture: Picture
    rows: PolicyRows
    known: Mapping[str, Known]
    now: datetime
    changes: Changes
    blocked: Mapping[str, Blocked]
    """Engine name -> what keeps it from being started."""


@dataclass(frozen=True, slots=True)
class _Planned:
    """What is to be done about it; ``is_whole`` unless some starts are left to the next cycle."""

    snapshot: Snapshot
    plan: Outline
    is_whole: bool
    took_ms: float
    began: list[Workload]
    """Those that begin on the nominal quota of their queue alone."""


def run_cycle(
    cluster_id: int, *, trigger: str = "timer", on_change: Callable[[], None] = lambda: None
) -> CycleResult:
    """One cycle of the cluster; ``on_change`` is what its mirror calls when another is due.

    Never two at once in this process (``skipped='busy'``), and by the lease never two that write.
    Raises ApiError when the cluster does not answer and Cluster.DoesNotExist when the row is gone.
    """
    cluster = Cluster.objects.get(pk=cluster_id)
    if cluster.mode == ClusterMode.PAUSED:
        return CycleResult(skipped="paused")
    worker = worker_of(cluster, on_change=on_change)
    if not worker.turn.take():
        # What called for this cycle may have come after the other one looked.
        worker.trigger()
        return CycleResult(skipped="busy")
    try:
        return _run(cluster, worker, trigger)
    except BaseException:
        worker.forget()
        raise
    finally:
        worker.turn.give_back()


def _run(cluster: Cluster, worker: ClusterWorker, trigger: str) -> CycleResult:
    began = time.monotonic()
    enforce = cluster.mode == ClusterMode.ENFORCE
    if skipped := _excuse(worker, enforce=enforce):
        return CycleResult(skipped=skipped)
    worker.ledger.cluster = cluster
    if worker.projection is None or not enforce:
        worker.projection = Projection(cluster)
    projection, now, watch = worker.projection, cluster.now(), Watch(began)
    rows = _policy(cluster, worker, projection, now)
    watch.lap("Read the policy")
    view = _look(worker, projection, rows, now)
    watch.lap("Look at the cluster")
    planned = _plan(worker, projection, view, watch)
    recorded, is_news = _commit(worker, projection, view, planned, trigger, began)
    causes = worker.causes.take()
    watch.lap("Commit to the ledger")

    pictures.retire(worker.mirror, worker.memo, projection.ended())
    report = _enforce(worker, projection, view, planned.plan, recorded) if enforce else Report()
    watch.lap(records.WRITING)
    if not planned.is_whole:
        worker.trigger()
    many = len(view.picture.workloads) > MANY and worker.trigger.is_due()
    settled = report.written > report.said and not many and _settle(worker, view)
    if recorded.decisions and planned.plan.acts:
        watch.lap("Look again")
        kept = records.Kept(
            recorded.cycle, planned.snapshot, planned.plan, projection.by_name, causes
        )
        records.keep(kept, watch.laps, report)
    if is_news or settled:
        cluster.touch()
    Cluster.objects.filter(pk=cluster.pk).update(planned_at=timezone.now())
    return CycleResult(
        number=recorded.cycle.number,
        decisions=recorded.decisions,
        written=report.written,
        failed=report.failed,
        plan_ms=planned.took_ms,
        took_ms=_ms_since(began),
    )


def _excuse(worker: ClusterWorker, *, enforce: bool) -> str:
    """Why there is no cycle now; empty when there is one."""
    if enforce and not worker.lease.hold():
        worker.projection = None
        return "lease"
    if not worker.mirror.wait_synced(SYNC_S):
        return "not synced"
    return "out of touch" if worker.mirror.lag_s() > LAG_S else ""


def _policy(
    cluster: Cluster, worker: ClusterWorker, projection: Projection, now: datetime
) -> PolicyRows:
    shares = projection.shares.rows
    rows = policies.load(cluster, at=now, unchanged=worker.unchanged, shares=shares)
    worker.causes.hear_of_policy(rows, now)
    return replace(rows, usage=worker.ledger.usage(rows, now=now))


def _plan(worker: ClusterWorker, projection: Projection, view: _View, watch: Watch) -> _Planned:
    since = time.monotonic()
    snapshot = snapshots.build(
        view.rows,
        view.picture,
        view.known,
        now=view.now,
        waiting=worker.waiting,
        heirs=projection.heirs(view.picture),
    )
    began = _play_along(worker, projection, view)
    if worker.standings is not None:
        snapshot = worker.standings.put(snapshot, view.rows, projection.by_name)
    watch.lap("Make the snapshot")
    plan = reworded(worker.planner.plan(snapshot), view.blocked)
    watch.lap("Plan")
    is_whole = True
    if view.cluster.mode == ClusterMode.ENFORCE:
        plan = _within_quotas(plan, worker, projection, view)
        most = max(ADMISSIONS, worker.enforcer.writable(watch.passed_s()))
        plan, is_whole = portion(plan, most, _priorities(view, projection))
        watch.lap("Fit namespace quotas")
    return _Planned(snapshot, plan, is_whole, _ms_since(since), began)


def _play_along(worker: ClusterWorker, projection: Projection, view: _View) -> list[Workload]:
    """Bring up to now what everybody would have on the nominal quota of their queue alone."""
    if worker.own is None or worker.standings is None:
        worker.own = OwnQuotas(view.cluster)
        worker.standings = Standings(RunTimes.of(view.cluster, view.now))
    sizes = node_gpus((node.gpu_class, node.gpus) for node in view.picture.nodes)
    layout = Layout.of(view.rows, sizes)
    began = worker.own.follow(projection.rows, view.changes.stepped, layout, view.now)
    worker.standings.times.note(worker.own.take_ended())
    return began


def _within_quotas(
    plan: Outline, worker: ClusterWorker, projection: Projection, view: _View
) -> Outline:
    def find(name: str) -> Observed | None:
        row = projection.by_name.get(name)
        return view.picture.by_uid.get(row.uid) if row else None

    holding = (o for o in projection.restless if view.known[o.uid].situation is Situation.HOLDING)
    plan, refused = backstops.within(plan, find, view.rows, worker.mirror, worker.machines, holding)
    worker.refusals.note(refused, now=view.now)
    return plan


def _priorities(view: _View, projection: Projection) -> Callable[[str], int]:
    classes = view.rows.priority_classes
    values: dict[int | None, int] = {priority.pk: priority.value for priority in classes}
    return lambda name: values.get(projection.by_name[name].priority_class_id, 0)


@transaction.atomic
def _commit(
    worker: ClusterWorker,
    projection: Projection,
    view: _View,
    planned: _Planned,
    trigger: str,
    began: float,
) -> tuple[Recorded, bool]:
    """Write what was seen and what is to be done about it; whether a page shows anything of that."""
    # The span that ends now was spent under the division that still stands in the rows.
    worker.ledger.book(view.rows, projection.rows.values(), now=view.now)
    save(view.changes)
    own_quotas.save(planned.began)
    moved = projection.nodes.save(planned.snapshot, view.rows, view.picture.nodes)
    worker.causes.hear_of_nodes(projection.nodes.turned, view.now)
    recorded = _record(view, projection, planned, trigger)
    recorded.cycle.took_ms = _ms_since(began)
    recorded.cycle.save(update_fields=["took_ms"])
    return recorded, bool(view.changes or moved or recorded.visible)


def _ms_since(began: float) -> float:
    return (time.monotonic() - began) * 1000


def _look(worker: ClusterWorker, projection: Projection, rows: PolicyRows, now: datetime) -> _View:
    """What the mirror holds now, projected into the rows in memory."""
    picture = pictures.take(
        worker.mirror, rows.class_specs, worker.memo, awaited=projection.rows.keys()
    )
    enforce = rows.cluster.mode == ClusterMode.ENFORCE
    changes, known = projection.project(picture, rows, now=now, enforce=enforce)
    worker.causes.hear_of_work(changes, now)
    grace_s = rows.cluster.stale_gang_grace_s
    projection.note_missing_members(known, now=now, grace_s=grace_s)
    worker.refusals.forget(picture.by_uid)
    suspects = projection.suspects(worker.refusals)
    found = all_blocked(suspects, worker.refusals, now=now, barred=projection.barred)
    for observed, why in found:
        known[observed.uid] = replace(known[observed.uid], blocked=why)
    blocked_by = {observed.key: why for observed, why in found}
    return _View(rows.cluster, picture, rows, known, now, changes, blocked_by)


def _record(view: _View, projection: Projection, planned: _Planned, trigger: str) -> Recorded:
    pending, running = projection.counts()
    return recording.record(
        Pass(
            cluster=view.cluster,
            snapshot=planned.snapshot,
            plan=planned.plan,
            rows=view.rows,
            by_name=projection.by_name,
            pending=pending,
            running=running,
            shares=projection.shares,
            at=view.now,
            trigger=trigger,
            telling=projection.telling,
        )
    )


def _settle(worker: ClusterWorker, view: _View) -> bool:
    """Show what enforcing did; whether that changed anything a page shows."""
    if worker.projection is None:
        return False
    changes = _look(worker, worker.projection, view.rows, view.cluster.now()).changes
    with transaction.atomic():
        save(changes)
    return bool(changes)


def _enforce(
    worker: ClusterWorker, projection: Projection, view: _View, plan: Outline, recorded: Recorded
) -> Report:
    scene = Scene(
        plan=plan,
        picture=view.picture,
        known=view.known,
        classes={c.name: c for c in view.rows.class_specs},
        cycle=recorded.cycle.number,
        now=view.now,
        nodes={n.name: n for n in view.picture.nodes},
        rows=projection.by_name,
        restless=projection.restless,
    )
    try:
        phases, words = phases_of(scene, worker.spoken, hurried=worker.trigger.is_due())
        report = worker.enforcer.carry_out(phases, words, is_called=worker.trigger.is_due)
        worker.refusals.note(report.refused, now=view.now)
        return report
    except LeaseLostError as lost:
        log.warning("%s; the rest of the plan is left to it", lost)
        return Report(written=1)
