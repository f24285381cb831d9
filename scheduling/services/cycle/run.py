"""One pass from the cluster to a plan and back.

1. Take the turn; a paused cluster is left alone (``worker/cycles.py``).
2. Hold the lease (enforce mode only: observe writes nothing, not even that).
3. Wait until the mirror has seen the cluster once.
4. Project the cluster into rows, book the time since the last cycle.
5. Make the snapshot and plan, after the moves of a consolidation that somebody ordered; of more starts than
   one cycle should write, take a portion.
6. Record the plan and commit.
7. Enforce: only a committed plan reaches the cluster. Starts that are slow to be written are left on their
   way when the next cycle is called for: its plan counts them as made (``snapshot/starts_under_way.py``).
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

from scheduling.cluster.adapters import Sighting
from scheduling.cluster.connection.lease import LeaseLostError
from scheduling.cluster.enforcement.enforcer import Report
from scheduling.cluster.picture import compose as pictures
from scheduling.engine import Outline, Snapshot, outline, plan_frame
from scheduling.models import Cluster, ClusterMode, Cycle, Workload
from scheduling.services import tracing
from scheduling.services.clusters import consolidation_orders
from scheduling.services.clusters.connection import ClusterLink
from scheduling.services.clusters.consolidation_orders import TakenError
from scheduling.services.cycle import backstops
from scheduling.services.cycle.backstops import ahead_of, portion, served_by
from scheduling.services.cycle.changes import save
from scheduling.services.cycle.enforce.acts import phases_of
from scheduling.services.cycle.enforce.scene import Scene, unsent
from scheduling.services.cycle.look import look
from scheduling.services.cycle.memory import Memory, Rows
from scheduling.services.cycle.project.projection import Projection
from scheduling.services.cycle.record import claims, records
from scheduling.services.cycle.record import plan as recording
from scheduling.services.cycle.record.plan import Pass, RecordedPlan
from scheduling.services.cycle.record.records import Watch
from scheduling.services.cycle.view import Call, CyclePlan, View
from scheduling.services.queues import own_quotas
from scheduling.services.queues import rows as policies
from scheduling.services.queues.own_quotas import Layout, node_gpus
from scheduling.services.queues.rows import PolicyRows
from scheduling.services.snapshot import build as snapshots
from scheduling.services.snapshot.departures import heirs_in
from scheduling.services.snapshot.obstacles import reworded
from scheduling.services.snapshot.situations import Situation
from scheduling.services.snapshot.starts_under_way import slow_starts

log = logging.getLogger(__name__)

SYNC_S = 20.0
"""Wall seconds a cycle waits for the first list."""
ADMISSIONS = 200
"""Starts in one cycle: writing them takes its time, in which others end and more important ones come, so
the rest is planned anew. Where planning takes longer than writing so many, it is as many as take as long."""
MANY = 500
"""Workloads of a cluster whose second look costs more than it shows."""
PATIENCE_S = 0.25
"""Starts are waited for so long, and for as long as the plan took, before the next cycle may begin: a plan
for every few writes would take the API server's CPU from them."""
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
class _Pass:
    """What the steps of one pass work with."""

    cluster: Cluster
    link: ClusterLink
    memory: Memory
    rows: Rows
    call: Call
    trigger: str
    began: float


def run(
    cluster: Cluster, link: ClusterLink, memory: Memory, call: Call, trigger: str
) -> CycleResult:
    """One cycle by whoever has the turn. Raises ApiError when the cluster does not answer."""
    watch = Watch(time.monotonic())
    with tracing.span("cycle", {"weir.cluster": cluster.name, "weir.trigger": trigger}) as note:
        done = _run(cluster, link, memory, call, trigger, watch)
        tracing.phases(watch.laps)
        note(
            {
                "weir.skipped": done.skipped, "weir.cycle": done.number, "weir.decisions": done.decisions,
                "weir.written": done.written, "weir.failed": len(done.failed or ()),
            }
        )  # fmt: skip
    return done


def _run(
    cluster: Cluster, link: ClusterLink, memory: Memory, call: Call, trigger: str, watch: Watch
) -> CycleResult:
    began = watch.began
    enforce = cluster.mode == ClusterMode.ENFORCE
    if skipped := _excuse(link, memory, enforce=enforce):
        return CycleResult(skipped=skipped)
    rows = memory.rows_of(cluster, keep=enforce)
    one, now = _Pass(cluster, link, memory, rows, call, trigger, began), cluster.now()
    _hear(one, now)
    policy = _policy(one, now)
    watch.lap("Read the policy")
    view = look(link, memory, rows, policy, now)
    watch.lap("Look at the cluster")
    planned = _plan(one, view, watch)
    try:
        recorded, is_news = _commit(one, view, planned)
    except TakenError:
        memory.forget()
        call()
        return CycleResult(skipped="taken")
    watch.lap("Commit to the ledger")
    report, is_settled = _act(one, view, planned, recorded, watch)
    if is_news or is_settled:
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


def _act(
    one: _Pass, view: View, planned: CyclePlan, recorded: RecordedPlan, watch: Watch
) -> tuple[Report, bool]:
    """Bring about what was committed and keep what it was made of; whether a second look showed anything."""
    causes, projection = one.memory.causes.take(), one.rows.projection
    pictures.retire(one.link.mirror, one.memory.memo, projection.ended())
    enforces = one.cluster.mode == ClusterMode.ENFORCE
    patience_s = max(PATIENCE_S, watch.passed_s())
    report = _enforce(one, view, planned.plan, recorded, patience_s) if enforces else Report()
    if planned.ordered is not None:
        consolidation_orders.settle(planned.ordered, report.writes)
    watch.lap(records.WRITING)
    if not planned.is_whole and len(one.link.enforcer.starts) <= ADMISSIONS // 2:
        one.call()  # Where more are on their way, their ends ask for it.
    many = len(view.picture.workloads) > MANY and one.call.is_due()
    is_settled = report.written > report.said and not many and _settle(one, view)
    if recorded.decisions and planned.plan.acts:
        watch.lap("Look again")
        plan_record = records.PlanRecord(
            recorded.cycle,
            planned.snapshot,
            planned.plan,
            projection.by_name,
            causes,
            one.memory.writer,
        )
        records.keep(plan_record, watch.laps, report)
    return report, is_settled


def _excuse(link: ClusterLink, memory: Memory, *, enforce: bool) -> str:
    """Why there is no cycle now; empty when there is one."""
    if enforce and not link.lease.hold():
        memory.drop_rows()
        return "lease"
    if not link.mirror.wait_synced(SYNC_S):
        return "not synced"
    return "out of touch" if link.mirror.lag_s() > LAG_S else ""


def _hear(one: _Pass, now: datetime) -> None:
    """Take in what came of starts that earlier cycles left on their way."""
    late = one.link.enforcer.heard()
    one.memory.refusals.note(late.refused, now=now)
    records.complete(one.cluster, late.writes)


def _policy(one: _Pass, now: datetime) -> PolicyRows:
    memory, shares = one.memory, one.rows.shares.rows
    rows = policies.load(one.cluster, at=now, unchanged=memory.unchanged, shares=shares)
    memory.causes.hear_of_policy(rows, now)
    return replace(rows, usage=memory.ledger.usage(rows, now=now))


def _plan(one: _Pass, view: View, watch: Watch) -> CyclePlan:
    since = time.monotonic()
    foreseen = one.memory.foreseen
    one.memory.waiting.drop(foreseen.renew(view.cluster, view.picture.by_uid.keys(), view.now))
    snapshot = snapshots.build(
        view.rows,
        view.supposed.picture,
        view.supposed.known,
        now=view.now,
        waiting=one.memory.waiting,
        heirs=heirs_in(view.picture, one.rows.projection.rows),
        foreseen=foreseen.by_uid,
    )
    began = _play_along(one, view)
    standings = one.memory.standings_of(view.cluster, view.now)
    snapshot = standings.put(snapshot, view.rows, one.rows.projection.by_name)
    one.memory.word.hold(snapshot, one.rows.projection.claims)
    watch.lap("Make the snapshot")
    enforce, is_whole = view.cluster.mode == ClusterMode.ENFORCE, True
    ordered = consolidation_orders.open_order(view.cluster, snapshot) if enforce else None
    if ordered is not None:
        watch.lap("Plan the moves that were ordered")
    made = _decide(one, ordered.after if ordered else snapshot, watch)
    plan = reworded(made, view.blocked, view.left_out)
    if ordered is not None:
        plan = replace(plan, acts=(*ordered.moves, *plan.acts))
    slow = slow_starts(view.supposed.starting.values(), view.now)
    plan = whole = replace(plan, waits=ahead_of(plan.waits, slow)) if slow else plan
    watch.lap("Put it into words")
    if enforce:
        plan = _within_quotas(plan, one, view)
        most = max(ADMISSIONS, one.link.enforcer.writable(watch.passed_s()))
        room = max(0, most - len(one.link.enforcer.starts))
        plan, is_whole = portion(plan, room, _priorities(view, one.rows.projection))
        watch.lap("Fit namespace quotas")
    put_off = served_by(whole) - served_by(plan)
    return CyclePlan(snapshot, plan, is_whole, _ms_since(since), began, ordered, put_off)


def _play_along(one: _Pass, view: View) -> list[Workload]:
    """Bring up to now what everybody would have on the nominal quota of their queue alone."""
    own, standings = (
        one.memory.own_of(view.cluster),
        one.memory.standings_of(view.cluster, view.now),
    )
    sizes = node_gpus((node.gpu_class, node.gpus) for node in view.picture.nodes)
    layout = Layout.of(view.rows, sizes)
    began = own.follow(one.rows.projection.rows, view.changes.stepped, layout, view.now)
    standings.times.note(own.take_ended())
    return began


def _decide(one: _Pass, snapshot: Snapshot, watch: Watch) -> Outline:
    """The engine's plan; its steps are timed from here, as it knows no clock."""
    frame = one.memory.planner.read(snapshot)
    watch.lap("Read it into arrays")
    made = plan_frame(frame)
    watch.lap("Decide")
    return outline(frame, made, one.memory.etas.of(one.cluster, snapshot.now))


def _within_quotas(plan: Outline, one: _Pass, view: View) -> Outline:
    projection, memory = one.rows.projection, one.memory

    def find(name: str) -> Sighting | None:
        row = projection.by_name.get(name)
        return view.picture.by_uid.get(row.uid) if row else None

    holds = (o for o in projection.restless if view.known[o.uid].situation is Situation.HOLDING)
    holding = (*holds, *view.supposed.starting.values())
    plan, refused = backstops.within(
        plan, find, view.rows, one.link.mirror, memory.machines, holding
    )
    memory.refusals.note(refused, now=view.now)
    return plan


def _priorities(view: View, projection: Projection) -> Callable[[str], int]:
    classes = view.rows.priority_classes
    values: dict[int | None, int] = {priority.pk: priority.value for priority in classes}
    return lambda name: values.get(projection.by_name[name].priority_class_id, 0)


@transaction.atomic
def _commit(one: _Pass, view: View, planned: CyclePlan) -> tuple[RecordedPlan, bool]:
    """Write what was seen and what is to be done about it; whether a page shows anything of that."""
    # The span that ends now was spent under the division that still stands in the rows.
    one.memory.ledger.book(view.rows, one.rows.projection.rows.values(), now=view.now)
    save(view.changes)
    own_quotas.save(planned.began)
    observed = (*view.picture.nodes, *view.picture.bare)
    moved = one.rows.nodes.save(planned.snapshot, view.rows, observed)
    one.memory.causes.hear_of_nodes(one.rows.nodes.turned, view.now)
    done = _pass_of(one, view, planned)
    recorded = recording.record(done)
    if view.cluster.mode == ClusterMode.ENFORCE:  # Nothing is claimed where nobody enforces.
        _follow_claims(one, view, planned, done, recorded.cycle)
    recorded.cycle.lag_s = view.lag_s
    recording.timed(recorded.cycle, _ms_since(one.began))
    recorded.cycle.save(update_fields=["took_ms", "slowest_ms", "slowest_at", "lag_s"])
    if planned.ordered is not None:
        consolidation_orders.claim(planned.ordered, recorded.cycle, one.rows.projection.by_name)
    return recorded, bool(view.changes or moved or recorded.visible)


def _ms_since(began: float) -> float:
    return (time.monotonic() - began) * 1000


def _pass_of(one: _Pass, view: View, planned: CyclePlan) -> Pass:
    projection = one.rows.projection
    pending, running = projection.counts()
    return Pass(
        cluster=view.cluster,
        snapshot=planned.snapshot,
        plan=planned.plan,
        rows=view.rows,
        by_name=projection.by_name,
        pending=pending,
        running=running,
        shares=one.rows.shares,
        at=view.now,
        trigger=one.trigger,
        telling=one.rows.telling,
    )


def _follow_claims(one: _Pass, view: View, planned: CyclePlan, done: Pass, cycle: Cycle) -> None:
    projection = one.rows.projection
    changed = claims.follow(
        done, cycle, projection.claims, starting=view.supposed.starting, put_off=planned.put_off
    )
    projection.look_again(changed)
    one.memory.word.give(planned.snapshot, planned.plan, projection.claims, planned.put_off)


def _settle(one: _Pass, view: View) -> bool:
    """Show what enforcing did; whether that changed anything a page shows."""
    now = view.cluster.now()
    changes = look(one.link, one.memory, one.rows, view.rows, now).changes
    with transaction.atomic():
        save(changes)
    return bool(changes)


def _enforce(
    one: _Pass, view: View, plan: Outline, recorded: RecordedPlan, patience_s: float
) -> Report:
    projection, refusals = one.rows.projection, one.memory.refusals
    scene = Scene(
        plan=replace(plan, acts=(*unsent(view.unsent), *plan.acts)),
        picture=view.picture,
        known=view.known,
        classes={c.name: c for c in view.rows.class_specs},
        cycle=recorded.cycle.number,
        now=view.now,
        nodes={n.name: n for n in view.picture.nodes},
        rows=projection.by_name,
        restless=projection.restless,
        under_way=view.supposed.starting,
        etas=one.memory.etas.words(),
        levels=view.rows.levels,
    )
    try:
        phases, words = phases_of(scene, one.memory.spoken, hurried=one.call.is_due())
        report = one.link.enforcer.carry_out(
            phases, words, is_called=one.call.is_due, patience_s=patience_s
        )
        refusals.note(report.refused, now=view.now)
        return report
    except LeaseLostError as lost:
        log.warning("%s; the rest of the plan is left to it", lost)
        return Report(written=1)
