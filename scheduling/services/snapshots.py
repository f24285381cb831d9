"""The engine's frozen input, made of what the cluster shows and what people decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import compress
from operator import is_not
from typing import Any

from scheduling.cluster import picture as pictures
from scheduling.cluster.adapters import Observed
from scheduling.cluster.client import Client
from scheduling.cluster.nodes import ObservedNode
from scheduling.cluster.picture import Orphans, Picture, Seat
from scheduling.engine import model as m
from scheduling.models import Cluster, ClusterMode, Workload
from scheduling.services import policy as policies
from scheduling.services.blocked import Refusals, blocked
from scheduling.services.checkpoints import Habits, last_checkpoint
from scheduling.services.divided import BESIDE, divide, parts_of
from scheduling.services.policy import NO_PRIORITY_CLASS, PolicyRows
from scheduling.services.situations import Known, Situation, class_of, held_by, judge
from scheduling.services.strangers import strange_gpus, vanished_nodes


class Waiting:
    """The engine's values of what waits, kept from snapshot to snapshot while nothing of it changes."""

    def __init__(self) -> None:
        self._priorities: tuple[object, ...] = ()
        self._known: dict[str, Known] = {}
        """What was known of those in ``works``. It is made anew for whatever is seen otherwise."""
        self.works: dict[str, m.Workload] = {}
        """By uid, once ``sift`` has been called for the snapshot."""

    def sift(
        self, rows: PolicyRows, picture: Picture, known: Mapping[str, Known]
    ) -> list[Observed]:
        """Begin a snapshot: the workloads that are not in ``works`` as they are now. All have to be made
        anew when the priority classes changed."""
        priorities = tuple((p.name, p.is_default) for p in rows.priority_classes)
        if priorities != self._priorities:
            self._forget(list(self.works))
        self._priorities = priorities
        # Thousands, of which a few changed: this goes through them without a line of Python for each.
        uids = picture.by_uid.keys()
        differs = map(is_not, map(self._known.get, uids), map(known.get, uids))
        changed = list(compress(picture.workloads, differs))
        self._forget(self._known.keys() - uids)
        self._forget(o.uid for o in changed)
        return changed

    def keep(self, observed: Observed, known: Known, made: m.Workload) -> None:
        self._known[observed.uid], self.works[observed.uid] = known, made

    def _forget(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self._known.pop(uid, None)
            self.works.pop(uid, None)


def build(
    rows: PolicyRows,
    picture: Picture,
    known: Mapping[str, Known],
    *,
    now: datetime,
    waiting: Waiting | None = None,
) -> m.Snapshot:
    """A Snapshot at cluster time ``now``; ``known`` maps uid to what the cycle knows.

    ``waiting`` remembers from one snapshot of a cluster to the next. Workloads are named
    ``namespace/name``. What is done and gone is left out; what is done or was suspended but still has
    pods on nodes is *leaving*.
    """
    waiting = waiting or Waiting()
    changed = [o for o in waiting.sift(rows, picture, known) if o.uid in known]
    parts = parts_of(changed, picture, known, rows)
    strange = strange_gpus(changed, picture, parts)
    nodes = [
        *(_node(n, strange) for n in picture.nodes),
        *vanished_nodes(changed, picture, known, parts),
    ]
    class_by_node = {n.name: n.gpu_class for n in reversed(nodes)}
    present = {(n.name, n.gpu_class) for n in nodes}
    works: list[m.Workload] = []
    for observed in changed:
        what = known[observed.uid]
        work = _workload(observed, what, rows, class_by_node, present, now)
        if work is not None and what.situation is Situation.WAITING:
            waiting.keep(observed, what, work)
        elif work is not None and observed.uid in parts:
            works += divide(work, observed, parts[observed.uid])
        elif work is not None:
            works.append(work)
    return m.Snapshot(
        now=now,
        gpu_classes=tuple(m.GpuClass(c.name, float(c.exchange_rate)) for c in rows.gpu_classes),
        nodes=tuple(nodes),
        queues=policies.engine_queues(rows),
        priority_classes=(*policies.engine_priority_classes(rows), *([BESIDE] if parts else [])),
        workloads=(
            *waiting.works.values(),
            *works,
            *_left_behind(changed, picture, known, rows, class_by_node, now),
            *_orphans(picture, rows, class_by_node, now),
        ),
        policy=policies.engine_policy(rows.cluster),
    )


def live(cluster: Cluster) -> m.Snapshot:
    """The Snapshot of ``cluster`` now, from one list of each resource over the API.

    For a process that holds no mirror. Raises ApiError when the cluster does not answer.
    """
    now = cluster.now()
    rows = policies.load(cluster, at=now)
    client = Client.connect(cluster)
    try:
        picture = pictures.fetch(client, rows.class_specs)
    finally:
        client.close()
    uids = [o.uid for o in picture.workloads]
    held = {w.uid: w for w in Workload.objects.filter(cluster=cluster, uid__in=uids)}
    newcomer = not Workload.objects.filter(cluster=cluster).exists()
    enforce = cluster.mode == ClusterMode.ENFORCE
    habits = Habits.of(cluster)
    known = {
        o.uid: Known(
            judge(o, w.state if w else None, enforce=enforce, newcomer=newcomer),
            started=(w.started_at or w.admitted_at) if w else None,
            blocked=blocked(o, Refusals(), now=now),
            presumed=habits.presumed(w, now) if w else None,
        )
        for o in picture.workloads
        for w in [held.get(o.uid)]
    }
    return build(rows, picture, known, now=now)


def _node(node: ObservedNode, strange: Mapping[Seat, int]) -> m.Node:
    foreign_gpus = node.foreign_gpus + strange.get((node.name, node.gpu_class), 0)
    return m.Node(
        name=node.name,
        gpu_class=node.gpu_class,
        gpus=node.gpus,
        cpus=node.cpus,
        memory_mib=node.memory_mib,
        topology=dict(node.topology),
        ready=node.ready,
        foreign_gpus=min(node.gpus, foreign_gpus),
    )


def _workload(
    observed: Observed,
    known: Known,
    rows: PolicyRows,
    class_by_node: Mapping[str, str],
    present: set[Seat],
    now: datetime,
) -> m.Workload | None:
    running = _running(observed, known, class_by_node, present, now)
    if running is None and (known.situation is Situation.DONE or observed.deleting):
        return None
    if running is None and observed.marked and known.situation is Situation.HOLDING:
        return None  # It holds what belongs to no class any more: there is nothing to plan.
    priority = rows.priority_of(observed.priority_class)
    predicted = observed.predicted_s
    return m.Workload(
        name=observed.key,
        queue=observed.queue_label,
        user=observed.user,
        priority_class=priority.name if priority else NO_PRIORITY_CLASS.name,
        submitted=observed.created,
        gpus=observed.gpus,
        # Without GPUs it goes where kube-scheduler finds room, on nodes that are not in any class as well.
        cpus=observed.cpus if observed.gpus else 0,
        memory_mib=observed.memory_mib if observed.gpus else 0,
        members=m.Members(observed.min_members, observed.max_members),
        gpu_classes=observed.gpu_classes,
        topology=m.Topology(**observed.topology),
        elastic=observed.min_members < observed.max_members,
        predicted=m.Predicted(*predicted) if predicted else None,
        # A jumper without pods waits like a held one: it is suspended first and queued next.
        held=observed.held or known.situation is Situation.BYPASSING or known.blocked is not None,
        checkpointed=checkpoint_of(observed, known, now),
        **(running or {}),
    )


def _orphans(
    picture: Picture,
    rows: PolicyRows,
    class_by_node: Mapping[str, str],
    now: datetime,
    what: str = "deleted",
) -> list[m.Workload]:
    """What deleted objects left on nodes: nobody's work, but their GPUs are about to come free."""
    priority = rows.default_priority.name if rows.default_priority else NO_PRIORITY_CLASS.name
    found: list[m.Workload] = []
    parts = (part for orphans in picture.orphans for part in _by_class(orphans, class_by_node))
    for number, (orphans, gpu_class) in enumerate(parts):
        members = sum(orphans.placement.values())
        found.append(
            m.Workload(
                name=f"{orphans.namespace}/{orphans.name} ({what} {number})",
                queue="",
                priority_class=priority,
                submitted=now,
                gpus=orphans.gpus,
                members=m.Members(members, members),
                phase=m.Phase.RUNNING,
                leaving=True,
                started=now,
                gpu_class=gpu_class,
                placement=orphans.placement,
            )
        )
    return found


def _by_class(orphans: Orphans, class_by_node: Mapping[str, str]) -> list[tuple[Orphans, str]]:
    """``orphans`` on nodes that are known, apart by the class of their nodes."""
    placed: dict[str, dict[str, int]] = {}
    for node, count in orphans.placement.items() if orphans.gpus else ():
        if node in class_by_node:
            placed.setdefault(class_by_node[node], {})[node] = count
    return [(replace(orphans, placement=nodes), name) for name, nodes in placed.items()]


def _left_behind(
    workloads: Iterable[Observed],
    picture: Picture,
    known: Mapping[str, Known],
    rows: PolicyRows,
    class_by_node: Mapping[str, str],
    now: datetime,
) -> list[m.Workload]:
    """What those of ``workloads`` on the move still hold on the nodes they leave, and stale gangs with
    pods that do not run."""
    left = (
        Orphans(o.namespace, o.name, o.gpus, placement)
        for o in workloads
        if (placement := _given_up(o, known[o.uid]))
    )
    going = replace(picture, orphans=tuple(left))
    return _orphans(going, rows, class_by_node, now, what="leaving")


def _given_up(observed: Observed, known: Known) -> Mapping[str, int]:
    """Members by node whose pods hold GPUs there and do not count for it any more."""
    if known.situation is Situation.MOVING:
        return observed.placement
    if known.stale_since is None or known.situation is not Situation.HOLDING:
        return {}
    return {
        node: members - observed.up.get(node, 0)
        for node, members in observed.placement.items()
        if members > observed.up.get(node, 0)
    }


def _running(
    observed: Observed,
    known: Known,
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


def _moving(observed: Observed, present: set[Seat], now: datetime) -> dict[str, Any] | None:
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


def checkpoint_of(observed: Observed, known: Known, now: datetime) -> datetime | None:
    """The last checkpoint of work that holds GPUs; of other work the one it announced."""
    if known.situation is not Situation.HOLDING or known.started is None:
        return observed.checkpointed
    return last_checkpoint(
        known.started, observed.checkpointed, observed.checkpoint_interval_s, known.presumed, now
    )
