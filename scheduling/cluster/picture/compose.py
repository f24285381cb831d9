"""The mirror read as one picture: nodes, workloads, and what pods outside the queues hold."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import Any

from scheduling.cluster.adapters import ADAPTERS, Adapter, ClassSpec, Sighting, notes, unlike
from scheduling.cluster.adapters import pods as pods_of
from scheduling.cluster.adapters.demand import Demand
from scheduling.cluster.adapters.podgroup import gather
from scheduling.cluster.connection.client import Client, ForbiddenError, NotFoundError
from scheduling.cluster.connection.mirror import Mirror
from scheduling.cluster.connection.reflector import untrimmed
from scheduling.cluster.picture.around import NO_DEVICES, RESOURCES, Circumstances, circumstances
from scheduling.cluster.picture.kinship import Kinship
from scheduling.cluster.picture.memo import NO_PODS, Memo
from scheduling.cluster.picture.neighbourhood import Nearby, nearby, shut_out
from scheduling.cluster.picture.nodes import ObservedNode, bare_of, closed, rows_of, trim_node
from scheduling.cluster.vocabulary import devices, labels, refusals
from scheduling.cluster.vocabulary.devices import Claims, Devices
from scheduling.cluster.vocabulary.limit_ranges import NO_DEFAULTS, ByNamespace
from scheduling.cluster.vocabulary.quantities import instant
from scheduling.cluster.vocabulary.runtimes import Runtimes
from scheduling.cluster.vocabulary.volumes import NO_VOLUMES, Volumes

Json = dict[str, Any]
Pods = dict[str, list[Json]]
Seat = tuple[str, str]
"""(node, GPU class)"""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Orphans:
    """Pods whose object was deleted: they hold their GPUs until they are gone. Amounts are of the largest of
    them, as in Sighting."""

    namespace: str
    name: str
    gpus: int
    placement: Mapping[str, int]
    uid: str = ""
    """Of the object."""
    cpus: int = 0
    memory_mib: int = 0
    gone_by: datetime | None = None
    """When their grace ends; None while one of them is not going."""


KINDS: Mapping[str, Adapter] = {a.kind: a for a in ADAPTERS}


@dataclass(frozen=True)
class Picture:
    workloads: tuple[Sighting, ...]
    """By age."""
    nodes: tuple[ObservedNode, ...]
    """Those that hand out GPUs."""
    by_uid: Mapping[str, Sighting]
    orphans: tuple[Orphans, ...] = ()
    departed: Mapping[str, Sighting] = field(default_factory=dict)
    """uid -> the last that was seen of objects that are gone."""
    strayed: frozenset[str] = frozenset()
    """uids of those that are there and no workloads any more."""
    devices: Devices = NO_DEVICES
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """uid -> why the object's demand cannot be understood."""
    runtimes: Runtimes = field(default_factory=dict)
    defaults: ByNamespace = field(default_factory=dict)
    volumes: Volumes = NO_VOLUMES
    nearby: Nearby = field(default_factory=dict)
    bare: tuple[ObservedNode, ...] = ()
    """Nodes that are known to have GPUs and hand out none."""

    def with_known(self, more: Mapping[str, Sighting]) -> Picture:
        """With these, by uid, in the places of theirs."""
        if not more:
            return self
        by_uid = {**self.by_uid, **more}
        return replace(self, workloads=tuple(by_uid.values()), by_uid=by_uid)

    @cached_property
    def seats(self) -> Set[Seat]:
        """What of which class there is where."""
        return {(node.name, node.gpu_class) for node in self.nodes}

    @cached_property
    def class_by_node(self) -> Mapping[str, str]:
        """The class of each node; of several the first."""
        return {node.name: node.gpu_class for node in reversed(self.nodes)}


def resources(
    adapters: Iterable[Adapter] = ADAPTERS,
) -> dict[str, tuple[str, Callable[[Json], Json]]]:
    """What a mirror has to hold for a picture."""
    by_resource: dict[str, tuple[str, Callable[[Json], Json]]] = {
        "nodes": ("/api/v1/nodes", trim_node),
        "pods": ("/api/v1/pods", pods_of.trim),
        **RESOURCES,
        **{reason: (path, refusals.trim) for reason, path in refusals.LIST_PATHS.items()},
    }
    return by_resource | {a.kind: (a.list_path, a.trim) for a in adapters if a.resource == a.kind}


OPTIONAL = frozenset({*(a.kind for a in ADAPTERS), *RESOURCES, *refusals.REASONS}) - {"Job"}
"""Kinds that a cluster may lack, as their definitions are added by others, or not let us see."""


def take(
    mirror: Mirror,
    classes: Sequence[ClassSpec],
    memo: Memo | None = None,
    *,
    awaited: Set[str] = frozenset(),
) -> Picture:
    """The picture that ``mirror`` holds now; ``awaited`` are uids whose end is of interest.

    ``memo`` remembers from one picture of this mirror to the next.
    """
    memo = memo or Memo()
    around = circumstances(classes, lambda name: mirror[name].objects())
    picture = compose(
        mirror["nodes"].objects(),
        mirror["pods"].objects(),
        {a.kind: mirror[a.kind].objects() for a in ADAPTERS if a.resource == a.kind},
        around,
        memo,
    )
    departed = {a.kind: mirror[a.kind].departed(awaited) for a in ADAPTERS if a.resource == a.kind}
    last = Memo()
    for kind, found in departed.items():
        for obj in found:
            _read(KINDS[kind], obj, NO_PODS, Circumstances(classes), last)
    missing = awaited - picture.by_uid.keys() - picture.unreadable.keys()
    strayed = frozenset(uid for uid in missing if memo.kin.find(uid) is not None)
    picture = replace(picture, departed=last.by_age(), strayed=strayed)
    return picture.with_known(_refused(mirror, memo.kin, picture.by_uid))


def _refused(mirror: Mirror, kin: Kinship, by_uid: Mapping[str, Sighting]) -> dict[str, Sighting]:
    """Those that lack pods which the API server refused since their admission, with its words, whichever of
    their objects the pods would belong to."""
    said = refusals.read(chain.from_iterable(mirror[name].objects() for name in refusals.REASONS))
    found: dict[str, Sighting] = {}
    for uid, what in sorted(said.items(), key=lambda each: (each[1].at, each[0])):
        observed = by_uid.get(kin.workload_of(uid) or "")
        if observed and observed.lacks_pods and observed.admitted and what.at >= observed.admitted:
            found[observed.uid] = replace(observed, unmade=what.said)
    return found


def retire(mirror: Mirror, memo: Memo, uids: Iterable[str]) -> None:
    """Leave out of later pictures what has ended and been noted, until it changes: there may be many
    times as many of them as of the others."""
    for job in memo.retire(uids):
        mirror["Job"].set_aside(job)


def fetch(client: Client, classes: Sequence[ClassSpec]) -> Picture:
    """The same picture from one list of each resource, for a process without a mirror."""
    by_resource = {
        name: _list(client, path, trim, optional=name in OPTIONAL)
        for name, (path, trim) in resources().items()
        if name not in refusals.REASONS  # It gives up no start.
    }
    objects = {a.kind: by_resource[a.kind] for a in ADAPTERS if a.resource == a.kind}
    around = circumstances(classes, by_resource.__getitem__)
    return compose(by_resource["nodes"], by_resource["pods"], objects, around)


def count_devices(client: Client, *, drivers: Callable[[str], bool] = bool) -> Devices:
    """The devices of a cluster now, and what claims on them take.

    ``drivers`` bounds them to those whose driver's name is such.
    """
    classes, slices, templates = (
        _list(client, devices.list_path(name), untrimmed, optional=True)
        for name in devices.RESOURCES
    )
    driven = [s for s in slices if drivers(str(s["spec"]["driver"]))]
    return devices.count(classes, driven, templates)


def _list(client: Client, path: str, trim: Callable[[Json], Json], *, optional: bool) -> list[Json]:
    """Everything at ``path``; nothing of an ``optional`` kind that is not served or not ours to see."""
    found: list[Json] = []
    query: dict[str, str | int] = {"limit": 500}
    while True:
        try:
            page = client.get(path, **query)
        except (NotFoundError, ForbiddenError):
            if optional:
                return []
            raise
        found += [trim(obj) for obj in page.get("items") or []]
        token = page["metadata"].get("continue")
        if not token:
            return found
        query["continue"] = token


def compose(
    nodes: Sequence[Json],
    pods: Sequence[Json],
    objects: Mapping[str, Sequence[Json]],
    around: Circumstances,
    memo: Memo | None = None,
) -> Picture:
    """A picture of raw objects; those without a queue label are foreign and so are their pods."""
    memo = memo or Memo()
    classes, counted = around.classes, around.devices
    stale = memo.open(objects, around)
    groups = gather(pod for pod in pods if memo.kin.root_of(pod) is None)
    formed = {group["metadata"]["uid"]: group for group, _ in groups}
    owned = {group["metadata"]["uid"]: mine for group, mine in groups}
    orphaned, foreign = _put_to(owned, pods, {*objects, "PodGroup"}, memo.kin)
    _observe({**stale, **memo.crewed(owned)}, formed, owned, around, memo)
    by_uid = memo.by_age()
    # What asks for no GPUs is sent to no node, so what its pods hold is taken off those they came to.
    unplaced = [uid for uid in owned if uid in by_uid and not by_uid[uid].gpus]
    orphans = [_orphans(uid, pods, classes, counted) for uid, pods in sorted(orphaned.items())]
    seatless = [
        *(owned.get(uid, NO_PODS) for uid in (*memo.unreadable, *unplaced)),
        *(orphaned[left.uid] for left in orphans if not left.gpus),
    ]
    for pod in filter(pods_of.holds, chain.from_iterable(seatless)):
        foreign.setdefault(pod["spec"]["nodeName"], []).append(pod)
    rows, bare = _nodes(nodes, foreign, classes, counted)
    left = nearby(rows, pods, owned, by_uid.values())
    by_uid |= shut_out(by_uid.values(), left)
    return Picture(
        workloads=tuple(by_uid.values()),
        by_uid=by_uid,
        nodes=closed(
            rows,
            {spec.resource_name for spec in classes},
            (observed.bounds for observed in by_uid.values()),
        ),
        orphans=tuple(orphans),
        unreadable=dict(memo.unreadable),
        devices=counted,
        runtimes=around.runtimes,
        defaults=around.defaults,
        volumes=around.volumes,
        nearby=left,
        bare=tuple(bare),
    )


def _nodes(
    nodes: Sequence[Json], foreign: Pods, classes: Sequence[ClassSpec], counted: Devices
) -> tuple[list[ObservedNode], list[ObservedNode]]:
    """By name: those that hand out GPUs, and those that should and do not."""
    rows: list[ObservedNode] = []
    bare: list[ObservedNode] = []
    for node in sorted(nodes, key=lambda n: n["metadata"]["name"]):
        found = rows_of(node, foreign.get(node["metadata"]["name"], []), classes, counted)
        rows += found
        if not found:
            bare += bare_of(node, classes)
    return rows, bare


def _put_to(owned: Pods, pods: Sequence[Json], kinds: Set[str], kin: Kinship) -> tuple[Pods, Pods]:
    """Put ``pods`` to the uid of their workload in ``owned``, where those of groups are already. Returns the
    others that hold GPUs: those whose object is gone, by its uid, and those outside the queues, by node."""
    grouped = {pod["metadata"]["uid"] for mine in owned.values() for pod in mine}
    orphaned: Pods = {}
    foreign: Pods = {}
    for pod in pods:
        root = kin.root_of(pod)
        if pod["metadata"].get("uid") in grouped:
            continue
        if root is not None:
            owned.setdefault(root, []).append(pod)
        elif not pods_of.holds(pod):
            continue
        elif uid := _left_by(pod, kinds, kin):
            orphaned.setdefault(uid, []).append(pod)
        else:
            foreign.setdefault(pod["spec"]["nodeName"], []).append(pod)
    return orphaned, foreign


def _left_by(pod: Json, kinds: Set[str], kin: Kinship) -> str:
    """uid of the object that made ``pod`` and is gone, or left it to itself (``kubectl delete
    --cascade=orphan``); empty for other pods outside the queues."""
    owner = pods_of.owner_of(pod)
    if not owner:
        return str((pod["metadata"].get("labels") or {}).get(labels.MADE_BY_JOB, ""))
    return str(owner["uid"]) if owner.get("kind") in kinds and not kin.is_known(pod) else ""


def _orphans(
    uid: str, pods: Sequence[Json], classes: Sequence[ClassSpec], counted: Devices
) -> Orphans:
    first, names = pods[0], tuple(c.resource_name for c in classes)
    claims = counted.claims(first["metadata"].get("namespace", ""))
    members = [pod for pod in pods if pods_of.gpus(pod["spec"], names, claims)] or pods
    needs = [pods_of.requests_of(pod["spec"], claims) for pod in members]
    gpus = [pods_of.gpus_among(need, names) for need in needs]
    part = unlike.part_of(gpus)
    weights = unlike.weights(members, part, names, claims)
    return Orphans(
        namespace=first["metadata"].get("namespace", ""),
        name=pods_of.owner_of(first).get("name", first["metadata"]["name"]),
        gpus=part or gpus[0],
        placement=pods_of.by_node(members, weights),
        uid=uid,
        cpus=_of_one([need.get("cpu", 0) for need in needs], weights),
        memory_mib=_of_one([need.get("memory", 0) for need in needs], weights),
        gone_by=pods_of.gone_by(pods),
    )


def _of_one(amounts: Sequence[int], weights: Sequence[int] | None) -> int:
    """Of one member the most that any asks for; of a part of unlike ones its share of what all do."""
    return -(-sum(amounts) // sum(weights)) if weights else max(amounts)


def _observe(
    stale: Iterable[str],
    groups: Mapping[str, Json],
    owned: Mapping[str, list[Json]],
    around: Circumstances,
    memo: Memo,
) -> None:
    """Read those whose uids are ``due`` and all ``groups`` of plain pods (by uid) into ``memo``."""
    for uid in {**dict.fromkeys(stale), **groups}:
        found = ("PodGroup", groups[uid]) if uid in groups else memo.kin.find(uid)
        pods = owned.get(uid, NO_PODS)
        is_queued = uid in groups or uid in memo.kin.workloads
        over = found and memo.is_retired(uid, found[1]) and all(map(pods_of.is_over, pods))
        if found and is_queued and not over:
            _read(KINDS[found[0]], found[1], pods, around, memo, memo.kin.made_by(uid))
        else:
            memo.drop(uid)


def _read(
    adapter: Adapter,
    obj: Json,
    pods: list[Json],
    around: Circumstances,
    memo: Memo,
    parts: Sequence[Json] = (),
) -> None:
    try:
        claims = around.devices.claims(obj["metadata"]["namespace"])
        demand = memo.demand_of(adapter.kind, obj, lambda: _demand(adapter, obj, around, claims))
        memo.note(
            adapter.observe(obj, pods, around.classes, claims, around.runtimes, parts, demand)
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # One broken object must not stop the others from being planned.
        log.warning("%s %s: %s", adapter.kind, obj["metadata"]["name"], error)
        if waits := _broken(adapter, obj, str(error)):
            memo.note(waits)
        else:
            memo.drop(obj["metadata"]["uid"])
            memo.unreadable[obj["metadata"]["uid"]] = str(error)


def _demand(adapter: Adapter, obj: Json, around: Circumstances, claims: Claims) -> Demand | None:
    """Of ``obj`` with what its pods will ask for by the LimitRanges of its namespace."""
    filled = adapter.filled(obj, around.defaults.get(obj["metadata"]["namespace"], NO_DEFAULTS))
    return adapter.demand_of(filled, around.classes, claims, around.runtimes)


def _broken(adapter: Adapter, obj: Json, why: str) -> Sighting | None:
    """A waiting object whose demand cannot be read, with the reason for people; None if it runs."""
    meta = obj["metadata"]
    if not instant(meta.get("creationTimestamp")) or not adapter.is_suspended(obj):
        return None
    return Sighting(
        generation=int(meta.get("generation", 0)),
        user=notes.of(obj).get(labels.USER, ""),
        priority_class="",
        gpus=0,
        cpus=0,
        memory_mib=0,
        min_members=1,
        max_members=1,
        members=1,
        gpu_classes=(),
        fault=why,
        deleting=bool(meta.get("deletionTimestamp")),
        said=labels.status_of(notes.of(obj)),
        **notes.identity(adapter.kind, obj),
    )
