"""The engine's frozen input, made of what the cluster shows and what people decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from scheduling.cluster.adapters import Sighting, bounds, key_of
from scheduling.cluster.connection.client import Client
from scheduling.cluster.picture import compose as pictures
from scheduling.cluster.picture.compose import Picture, Seat
from scheduling.engine import model as m
from scheduling.models import ClassOrder, Cluster, ClusterMode, Workload
from scheduling.services.ledger.claims import NOTHING, remembered
from scheduling.services.queues import rows as policies
from scheduling.services.queues.rows import NO_PRIORITY_CLASS, PolicyRows
from scheduling.services.queues.standings import standing_in
from scheduling.services.run_times.rests import NONE, Rests, rests
from scheduling.services.snapshot.around import beside_gpus, node_of, node_sets, set_name
from scheduling.services.snapshot.at_once import at_limit, hindered
from scheduling.services.snapshot.departures import (
    Heir,
    Heirs,
    as_fixed,
    left_behind,
    orphans_in,
    orphans_stay,
    stays,
)
from scheduling.services.snapshot.obstacles import Refusals, blocked, forbidden
from scheduling.services.snapshot.parts import (
    BESIDE,
    Parts,
    divide,
    parts_of,
    strange_gpus,
    vanished_nodes,
)
from scheduling.services.snapshot.pending import PendingValues
from scheduling.services.snapshot.situations import (
    Situation,
    WorkloadFacts,
    class_of,
    held_by,
    is_taken,
    judge,
    narrowed,
    priority_of,
    roles_of,
)
from scheduling.services.snapshot.starts_under_way import firm
from scheduling.services.snapshot.turns import Others
from scheduling.services.workloads.checkpoints import Habits, last_checkpoint

NO_HEIRS: Heirs = {}


def build(
    rows: PolicyRows,
    picture: Picture,
    known: Mapping[str, WorkloadFacts],
    *,
    now: datetime,
    waiting: PendingValues | None = None,
    heirs: Heirs = NO_HEIRS,
    foreseen: Rests = NONE,
) -> m.Snapshot:
    """A Snapshot at cluster time ``now``; ``known`` maps uid to what the cycle knows, ``heirs`` that of an
    object which is gone to whom its pods count for, ``foreseen`` what is predicted of work by uid.

    ``waiting`` remembers from one snapshot of a cluster to the next. Workloads are named
    ``namespace/name``. What is done and gone is left out; what is done or was suspended but still has
    pods on nodes is *leaving*; it is held by its queue as before where that takes long.
    """
    waiting = waiting or PendingValues()
    changed = [o for o in waiting.sift(rows, picture, known) if o.uid in known]
    parts = parts_of(changed, picture, known, rows)
    strange = strange_gpus(changed, picture, parts)
    nodes = [
        *beside_gpus(picture, (node_of(n, strange, rows.levels) for n in picture.nodes)),
        *vanished_nodes(changed, picture, known, parts),
    ]
    class_by_node = {n.name: n.gpu_class for n in reversed(nodes)}
    present = {(n.name, n.gpu_class) for n in nodes}
    made: list[Made] = []
    for observed in changed:
        what = known[observed.uid]
        work = _workload(observed, what, rows, class_by_node, present, now, foreseen)
        if work is not None:
            made.append((observed, what, work))
    works, unmoved = _at_work(made, waiting, parts, now)
    unmoved = unmoved or any(orphans_stay(o, now) for o in picture.orphans)
    is_beside = bool(parts) or unmoved or waiting.has_supposed
    return m.Snapshot(
        now=now,
        gpu_classes=tuple(m.GpuClass(c.name, float(c.exchange_rate)) for c in rows.gpu_classes),
        nodes=tuple(nodes),
        queues=policies.engine_queues(rows),
        priority_classes=_priority_classes(rows, is_beside=is_beside),
        workloads=(
            *waiting.works.values(),
            *works,
            *left_behind(changed, picture, known, rows, class_by_node, now),
            *orphans_in(picture, rows, class_by_node, now, heirs=heirs),
        ),
        policy=policies.engine_policy(rows),
        node_sets=node_sets(picture, waiting.node_sets, _narrowed_bounds(made)),
        topology_levels=rows.levels.names,
    )


def _priority_classes(rows: PolicyRows, *, is_beside: bool) -> tuple[m.PriorityClass, ...]:
    """With that of what holds GPUs beside its gang, where anything does."""
    return (*policies.engine_priority_classes(rows), *([BESIDE] if is_beside else []))


Made = tuple[Sighting, WorkloadFacts, m.Workload]


def _at_work(
    made: Iterable[Made], waiting: PendingValues, parts: Mapping[str, Parts], now: datetime
) -> tuple[list[m.Workload], bool]:
    """Those that hold GPUs, one for each part of what is divided, and whether one of them does not leave as
    it should; ``waiting`` keeps the others."""
    works: list[m.Workload] = []
    unmoved = False
    for observed, what, read in made:
        is_stuck = read.leaving and stays(observed, what, now)
        work, unmoved = (as_fixed(read), True) if is_stuck else (read, unmoved)
        if what.is_supposed:
            works.append(firm(work))
            waiting.has_supposed = True
        elif what.situation is Situation.WAITING:
            waiting.keep(observed, what, work)
        elif observed.uid in parts:
            works += divide(work, observed, parts[observed.uid])
        else:
            works.append(work)
    return works, unmoved


def live(cluster: Cluster) -> m.Snapshot:
    """The Snapshot of ``cluster`` now, from one list of each resource over the API.

    For a process that holds no mirror. Raises ApiError when the cluster does not answer.
    """
    return live_under(cluster).snapshot


class Live(NamedTuple):
    """A snapshot of a cluster, the policy that it was read under and what the cluster showed."""

    rows: PolicyRows
    picture: Picture
    snapshot: m.Snapshot


def live_under(cluster: Cluster) -> Live:
    """The same with what it was made of."""
    now = cluster.now()
    rows = policies.load(cluster, at=now)
    client = Client.connect(cluster)
    try:
        picture = pictures.fetch(client, rows.class_specs)
    finally:
        client.close()
    uids = [*picture.by_uid, *(orphans.uid for orphans in picture.orphans)]
    by_uid = {w.uid: w for w in Workload.objects.filter(cluster=cluster, uid__in=uids)}
    newcomer = not Workload.objects.filter(cluster=cluster).exists()
    enforce = cluster.mode == ClusterMode.ENFORCE
    habits = Habits.of(cluster)
    known = {
        o.uid: WorkloadFacts(
            judge(o, w.state if w else None, enforce=enforce, newcomer=newcomer),
            started=(w.started_at or w.admitted_at) if w else None,
            presumed=habits.presumed(w, now) if w else None,
            remembered=remembered(w, now),
        )
        for o in picture.workloads
        for w in [by_uid.get(o.uid)]
    }
    for observed in picture.workloads:
        row = by_uid.get(observed.uid)
        known[observed.uid] = _judged(observed, row, known[observed.uid], rows, now)
    turned = [o for o in picture.workloads if o.turn]
    by_name = {key_of(w.kind, w.namespace, w.name): w for w in by_uid.values()}
    hindered(known, Others(cluster).late(turned, known, by_name), {})
    hindered(known, at_limit(picture.workloads, known, rows), {})
    heirs = {uid: Heir(row.queue_label, row.user) for uid, row in by_uid.items()}
    snapshot = build(rows, picture, known, now=now, heirs=heirs, foreseen=rests(cluster))
    return Live(rows, picture, standing_in(snapshot, rows, by_name))


def newcomer(observed: Sighting, rows: PolicyRows, now: datetime) -> m.Workload:
    """The engine's value of work that nobody has submitted yet, as if it arrived at ``now``."""
    known = WorkloadFacts(Situation.WAITING, gpu_classes=narrowed(observed, rows.judge(observed)))
    made = _workload(replace(observed, created=now), known, rows, {}, set(), now)
    assert made is not None  # noqa: S101 - what waits is always planned
    return made


def _judged(
    observed: Sighting, row: Workload | None, known: WorkloadFacts, rows: PolicyRows, now: datetime
) -> WorkloadFacts:
    """``known`` and what keeps it from being started, as the worker's cycle finds it."""
    if known.situation is not Situation.WAITING:
        priority = priority_of(observed, row, known.situation, rows)
        why = blocked(observed, Refusals(), now=now)
        return replace(known, blocked=why, priority_class=priority.name if priority else "")
    judgement = rows.judge(observed)
    why = blocked(observed, Refusals(), now=now, barred=forbidden(judgement))
    barred = observed.start_fault.barred_at(now)
    return replace(known, blocked=why, gpu_classes=narrowed(observed, judgement), barred=barred)


def _bounds(observed: Sighting, known: WorkloadFacts) -> str:
    """Where it may run now."""
    return bounds.barring(observed.bounds, known.barred) if known.barred else observed.bounds


def _narrowed_bounds(made: Iterable[Made]) -> set[str]:
    """Those of work that is kept from nodes for a while; it is made anew in every cycle."""
    return {_bounds(observed, known) for observed, known, _ in made if known.barred}


def _workload(
    observed: Sighting,
    known: WorkloadFacts,
    rows: PolicyRows,
    class_by_node: Mapping[str, str],
    present: set[Seat],
    now: datetime,
    foreseen: Rests = NONE,
) -> m.Workload | None:
    running = _running(observed, known, class_by_node, present, now)
    if running is None and (known.situation is Situation.DONE or observed.deleting):
        return None
    if running is None and observed.marked and known.situation is Situation.HOLDING:
        return None  # It holds what belongs to no class any more: there is nothing to plan.
    priority = rows.priority_of(known.priority_class or observed.priority_class)
    return m.Workload(
        name=observed.key,
        queue=observed.queue_label if is_taken(observed, known.situation, rows) else "",
        user=observed.user,
        priority_class=priority.name if priority else NO_PRIORITY_CLASS.name,
        submitted=observed.created,
        gpus=observed.gpus,
        # Without GPUs it goes where kube-scheduler finds room, on nodes that are not in any class as well.
        cpus=observed.cpus if observed.gpus else 0,
        memory_mib=observed.memory_mib if observed.gpus else 0,
        beside=dict(observed.beside) if observed.gpus else {},
        members=m.Members(observed.min_members, observed.max_members),
        roles=roles_of(observed),
        gpu_classes=_wishes(observed, known, rows, foreseen, now),
        topology=rows.levels.wish(
            observed.topology,
            (observed.min_members, observed.max_members),
            observed.together,
            is_unlike=bool(observed.shapes),
        ),
        elastic=observed.min_members < observed.max_members,
        predicted=_predicted(observed, running, foreseen),
        # A jumper without pods waits like a held one: it is suspended first and queued next.
        held=observed.is_held
        or known.situation is Situation.BYPASSING
        or known.blocked is not None,
        checkpointed=checkpoint_of(observed, known, now),
        node_set=set_name(text) if observed.gpus and (text := _bounds(observed, known)) else None,
        **_remembered(known, waits=running is None),
        **((running or {}) | _claimed(known)),
    )


def _remembered(known: WorkloadFacts, *, waits: bool) -> dict[str, Any]:
    """What the ledger knows of evictions: of it, and for it while it waits for others to leave."""
    past = known.remembered
    if past is NOTHING:
        return {}
    return {
        "evictions": past.evictions,
        "last_evicted": past.last_evicted,
        "last_evicted_for": past.last_evicted_for,
        "taken_gpus": past.taken_gpus if waits else 0,
    }


def _claimed(known: WorkloadFacts) -> dict[str, Any]:
    """What work claims that waits; what leaves keeps its own seats, all of them, whichever pods are gone."""
    claim = known.remembered.claim
    if claim is None or known.situation not in (Situation.WAITING, Situation.LEAVING):
        return {}
    return {
        "awaits_victims": True,
        "gpu_class": claim.gpu_class,
        "placement": dict(claim.placement),
        "devices": dict(claim.devices),
        "victims": claim.names,
        "claimed_since": claim.since,
        "room_due": claim.room_due,
    }


def _wishes(
    observed: Sighting, known: WorkloadFacts, rows: PolicyRows, foreseen: Rests, now: datetime
) -> tuple[str, ...]:
    """The classes that it may use: as its author prefers them, or those first where it would end first; none
    that is slower while waiting for the faster is worth it."""
    left = observed.gpu_classes if known.gpu_classes is None else known.gpu_classes
    rest, order = foreseen.get(observed.uid), rows.cluster.class_order
    if rest is None or not rest.classes or order == ClassOrder.LISTED:
        return left
    place = {name: number for number, name in enumerate(rest.classes)}
    left = tuple(sorted(left, key=lambda name: place.get(name, len(place))))
    if order != ClassOrder.WAITS or known.situation is not Situation.WAITING:
        return left
    later = {name for name, until in rest.not_before if now < until}
    return tuple(name for name in left if name not in later) or left


def _predicted(
    observed: Sighting, running: Mapping[str, Any] | None, foreseen: Rests
) -> m.PredictedRunTime | None:
    """What its author says of its run time, else what was learned of it; from its start, as a plan counts."""
    if observed.predicted_s:
        return m.PredictedRunTime(*observed.predicted_s)
    rest = foreseen.get(observed.uid)
    return (
        m.PredictedRunTime(*rest.whole_s(running["started"] if running else None)) if rest else None
    )


def _running(
    observed: Sighting,
    known: WorkloadFacts,
    class_by_node: Mapping[str, str],
    present: set[Seat],
    now: datetime,
) -> dict[str, Any] | None:
    """The fields of one that holds GPUs; None when it holds none.

    A stale gang is shown with the members that really run: the rest hold nothing it could lose.
    """
    if known.situation is Situation.MOVING:
        return _moving(observed, present, now)
    gpu_class = class_of(observed, class_by_node)
    if gpu_class is None or known.situation is Situation.WAITING:
        return None
    leaving = known.situation is not Situation.HOLDING
    placement = held_by(observed, known)
    if not observed.gpus and placement and class_by_node:
        # Its members need no room of any class, and the nodes that they run on may be of none.
        node, gpu_class = next(iter(class_by_node.items()))
        placement = {node: sum(placement.values())}
    placement = {node: count for node, count in placement.items() if (node, gpu_class) in present}
    if leaving and not placement:
        return None
    return {
        "phase": m.Phase.RUNNING,
        "started": known.started or observed.admitted or observed.created,
        "gpu_class": gpu_class,
        "placement": placement,
        "leaving": leaving,
        "stale_since": known.stale_since,
    }


def _moving(observed: Sighting, present: set[Seat], now: datetime) -> dict[str, Any] | None:
    """Its place on the nodes it moves to is kept as if it ran there; None when they are gone."""
    target = observed.moves_to
    if target is None or any((node, target.gpu_class) not in present for node in target.placement):
        return None
    return {
        "phase": m.Phase.RUNNING,
        "started": now,
        "gpu_class": target.gpu_class,
        "placement": dict(target.placement),
    }


def checkpoint_of(observed: Sighting, known: WorkloadFacts, now: datetime) -> datetime | None:
    """The last checkpoint of work that holds GPUs; of other work the one it announced."""
    if known.situation is not Situation.HOLDING or known.started is None:
        return observed.checkpointed
    return last_checkpoint(
        known.started, observed.checkpointed, observed.checkpoint_interval_s, known.presumed, now
    )
