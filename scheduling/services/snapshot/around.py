"""What a snapshot says of nodes, of what they have beside GPUs and of the pods that run there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from operator import attrgetter

from scheduling.cluster.adapters import Sighting, bounds, needs
from scheduling.cluster.picture.compose import Picture, Seat
from scheduling.cluster.picture.node_sets import STORAGE, NodeSets
from scheduling.cluster.picture.nodes import ObservedNode
from scheduling.cluster.vocabulary import conditions
from scheduling.cluster.vocabulary.quantities import is_of_bytes
from scheduling.cluster.vocabulary.topology import Levels
from scheduling.engine import model as m

BESIDE, BOUNDS, GPUS = attrgetter("beside"), attrgetter("bounds"), attrgetter("gpus")
AMPLE = 1_000_000_000
"""Of what a kubelet may have without announcing it."""
ALONE = 1
"""A node has each of its ports once, and one place apart of each kind."""


def node_of(node: ObservedNode, strange: Mapping[Seat, int], levels: Levels) -> m.Node:
    """``strange`` of its GPUs, by seat, are held by what no class counts."""
    foreign_gpus = node.foreign_gpus + strange.get((node.name, node.gpu_class), 0)
    return m.Node(
        name=node.name,
        gpu_class=node.gpu_class,
        gpus=node.gpus,
        cpus=node.cpus,
        memory_mib=node.memory_mib,
        topology=levels.domains(node.labels),
        ready=node.ready,
        foreign_gpus=min(node.gpus, foreign_gpus),
        dedicated=bool(node.kept_for),
        outage=None if node.ready else _outage(node),
    )


OUTAGES = {
    conditions.CORDONED: m.Outage.CORDONED,
    conditions.TAINTED: m.Outage.TAINTED,
    conditions.NO_GPUS: m.Outage.NO_GPUS,
}


def _outage(node: ObservedNode) -> m.Outage:
    """By what tells most of its troubles."""
    codes = {trouble.code for trouble in node.troubles}
    if codes & {conditions.NOT_READY, conditions.SILENT}:
        return m.Outage.NOT_READY
    return next((OUTAGES[code] for code in OUTAGES if code in codes), m.Outage.NOT_READY)


def beside_gpus(picture: Picture, made: Iterable[m.Node]) -> Iterator[m.Node]:
    """``made`` of the nodes of ``picture``, in its order, with all that any of its workloads takes; and with
    places for pods where these may run out before the GPUs do."""
    wanted = {name for each in set(map(BESIDE, picture.workloads)) for name, _ in each}
    wanted |= {m.PLACES} if _may_be_crowded(picture) else set()
    names = sorted(wanted)
    for observed, node in zip(picture.nodes, made, strict=True):
        if not names:
            yield node
            continue
        offers = _offers(observed)
        usage = {**observed.foreign, m.PLACES: observed.foreign_pods}
        yield replace(
            node,
            beside={name: offers.get(name, 0) for name in names} | _once(names, offers),
            foreign_beside={name: usage[name] for name in names if usage.get(name)},
        )


def _offers(node: ObservedNode) -> dict[str, int]:
    """By the names of ``needs``."""
    offered = {needs.name_of(name): _whole(name, each) for name, each in node.beside.items()}
    storage = {needs.name_of(STORAGE): AMPLE}
    places = AMPLE if node.places is None else node.places
    return {**storage, **offered, m.PLACES: places}


def _whole(resource: str, amount: int) -> int:
    return amount if is_of_bytes(resource) else amount // 1000


def _once(names: Iterable[str], offers: dict[str, int]) -> dict[str, int]:
    return {name: ALONE for name in names if name not in offers and needs.is_once(name)}


def _may_be_crowded(picture: Picture) -> bool:
    """Whether on some node the smallest members find more GPUs than places for their pods."""
    least = min(filter(None, map(GPUS, picture.workloads)), default=0)
    return bool(least) and any(
        node.places is not None and node.places - node.foreign_pods < node.gpus // least
        for node in picture.nodes
    )


def node_sets(picture: Picture, found: NodeSets, narrowed: set[str]) -> tuple[m.NodeSet, ...]:
    """The nodes of each of its workloads' bounds, and of ``narrowed`` ones."""
    there = set(map(BOUNDS, picture.workloads)) - {""} | narrowed
    sets = found.of(there, picture.nodes, picture.volumes) if there else {}
    tainted = any(node.kept_for for node in picture.nodes)
    return tuple(
        m.NodeSet(
            set_name(text),
            _left_by_pods(text, names, picture),
            bounds.in_words(text, is_tainted=tainted),
        )
        for text, names in sets.items()
    )


def with_draft(snapshot: m.Snapshot, picture: Picture, draft: Sighting) -> m.Snapshot:
    """``snapshot`` of ``picture`` with what nodes must say for ``draft``, which nobody has submitted: what it
    takes beside GPUs, and which of them it may use."""
    seen, known = replace(picture, workloads=(*picture.workloads, draft)), len(picture.nodes)
    sets = node_sets(replace(picture, workloads=(draft,)), NodeSets(), set())
    there = {one.name for one in snapshot.node_sets}
    return replace(
        snapshot,
        nodes=(*beside_gpus(seen, snapshot.nodes[:known]), *snapshot.nodes[known:]),
        node_sets=(*snapshot.node_sets, *(one for one in sets if one.name not in there)),
    )


@lru_cache(maxsize=4096)
def set_name(text: str) -> str:
    """The same for the same bounds, whatever nodes there are: what waits is read once."""
    return f"bounds-{sha256(text.encode()).hexdigest()[:12]}"


def _left_by_pods(text: str, names: frozenset[str], picture: Picture) -> frozenset[str]:
    """Of the nodes that bounds allow, those that pods which are there leave open. Where they leave none the
    work waits for them (``neighbourhood.shut_out``), and is not told that it never fits."""
    left = picture.nearby.get(bounds.plain(text))
    return names if left is None else (names & left or names)
