"""The nodes of a cluster by class and narrowest topology domain, as one person may see them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.utils.functional import cached_property

from portal.accounts.models import User
from portal.display.format import MILLI
from portal.display.units import unit
from portal.selectors.overview import Capacity, capacity
from portal.teams.access import visible_queues, visible_workloads
from portal.web.nodes.ages import age_of
from portal.web.nodes.letters import letters
from portal.web.nodes.states import STATES, NodeState, short_of, state_of
from portal.web.nodes.tiles import TONES, Owner, Promise, Run, Seat, runs
from scheduling.models import Cluster, GpuClass, Node, Queue, State
from scheduling.models.workloads import HOLDING, WAITING
from scheduling.services.explain.asking import name_in_plan
from scheduling.services.explain.fragmentation import MemberSizes
from scheduling.services.ledger.claims import claim_of
from scheduling.services.queues.knobs import levels_of

MOST = 400
"""Nodes drawn at once; a domain or a class is chosen to see the others."""
SMALL_GPUS = 4
NOWHERE = Owner("··", 0, "no queue")
NOWHERE_NAMED = "no domain"


@dataclass(frozen=True, slots=True)
class NodePlace:
    """One node with its tiles; ``short`` is what tells it from its neighbours."""

    node: Node
    short: str
    runs: list[Run]

    @property
    def state(self) -> NodeState:
        return state_of(self.node)

    @property
    def why(self) -> str:
        """In two or three words why it does not stand as it should; empty where it does."""
        return short_of(self.node)

    @property
    def counts(self) -> list[tuple[str, int]]:
        """(letters or kind, tiles), for those who can't tell small tiles apart."""
        sums: Counter[str] = Counter()
        for run in self.runs:
            sums[run.owner.letters if run.owner else run.kind] += run.count
        return list(sums.items())


@dataclass(frozen=True, slots=True)
class Domain:
    name: str
    places: list[NodePlace]

    @property
    def usage(self) -> int:
        return sum(place.node.allocated_gpus for place in self.places)

    @property
    def installed(self) -> int:
        return sum(place.node.gpus for place in self.places)


@dataclass(frozen=True)
class Room:
    """All of one GPU class that is drawn. ``capacity`` counts the whole class."""

    capacity: Capacity
    domains: list[Domain]
    left_out: int
    """Nodes that are not drawn."""

    @property
    def gpu_class(self) -> GpuClass:
        return self.capacity.gpu_class

    @property
    def is_sliced(self) -> bool:
        return unit(self.gpu_class) == "slices"

    @property
    def is_small(self) -> bool:
        """Its nodes are short enough to stand beside each other in a domain."""
        largest = max((p.node.gpus for domain in self.domains for p in domain.places), default=0)
        return largest <= SMALL_GPUS * MILLI

    @property
    def matching(self) -> int:
        """Nodes of the domain and state that are asked for, drawn or not."""
        return sum(len(domain.places) for domain in self.domains) + self.left_out

    @property
    def unheld(self) -> int:
        """Free, of use to somebody or not."""
        return self.capacity.free + self.capacity.fragmented

    @property
    def parts(self) -> list[tuple[str, int]]:
        """What its GPUs are, but for what none of them is."""
        return [(name, gpus) for name, gpus in self.capacity.parts if gpus or name == "allocated"]


@dataclass(frozen=True)
class Department:
    """A queue of the first level and the queues in it that hold something: (owner, tiles drawn)."""

    name: str
    owners: list[tuple[Owner, int]]


class Map:
    """What the page of nodes shows ``user`` of ``cluster``; six queries."""

    def __init__(self, cluster: Cluster, user: User, classes: Sequence[GpuClass]) -> None:
        self.cluster, self.user, self.classes = cluster, user, classes
        self._owners = _owners(visible_queues(user).filter(cluster=cluster))
        self.seats = self._seats()

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """Of the cluster's topology, the widest first."""
        return levels_of(self.cluster).names

    @property
    def level(self) -> str:
        """The narrowest of them, by which nodes are drawn; "" where the cluster has none."""
        return self.levels[-1] if self.levels else ""

    def domain_of(self, node: Node) -> str:
        return str(node.topology.get(self.level) or NOWHERE_NAMED)

    @cached_property
    def nodes(self) -> list[Node]:
        """Rows of the classes, one a node and class."""
        return list(Node.objects.filter(cluster=self.cluster, gpu_class__in=self.classes))

    @property
    def domain_count(self) -> int:
        """Domains of all ``nodes``, whatever of them is drawn."""
        return len({self.domain_of(node) for node in self.nodes} - {NOWHERE_NAMED})

    def states(self) -> list[tuple[NodeState, int]]:
        """Each state with the machines in it; one in several classes counts by what is worst of it."""
        worst: dict[str, int] = {}
        keys = list(STATES)
        for node in self.nodes:
            worst[node.name] = max(worst.get(node.name, 0), keys.index(state_of(node).key))
        found = Counter(worst.values())
        return [(STATES[key], found[place]) for place, key in enumerate(keys)]

    def rooms(self, *, domain: str = "", state: str = "") -> list[Room]:
        """A room for each class, domains and nodes in order of their names; of one domain, or in one
        state."""
        nodes: dict[int, list[Node]] = defaultdict(list)
        for node in self.nodes:
            if domain in ("", self.domain_of(node)) and state in ("", state_of(node).key):
                nodes[node.gpu_class_id].append(node)
        sizes, left, rooms = self.sizes, MOST, []
        for one in capacity(self.cluster, self.classes):
            drawn = nodes[one.gpu_class.pk]
            shown, left_out = drawn[:left], max(0, len(drawn) - left)
            left -= len(shown)
            wanted = sizes.wanted(one.gpu_class)
            rooms.append(Room(one, self._domains(shown, wanted), left_out))
        return rooms

    @cached_property
    def sizes(self) -> MemberSizes:
        return MemberSizes(self.cluster)

    def departments(self, rooms: Iterable[Room]) -> list[Department]:
        """The legend: of what is drawn, by department."""
        tiles: Counter[tuple[str, Owner]] = Counter()
        for run in (r for room in rooms for k in room.domains for p in k.places for r in p.runs):
            for seat in run.seats[:1]:
                tiles[self._tops.get(seat.owner.queue, seat.owner.queue), seat.owner] += run.count
        names = sorted({name for name, _ in tiles})
        return [
            Department(
                name,
                [
                    (owner, n)
                    for (top, owner), n in sorted(tiles.items(), key=_by_letters)
                    if top == name
                ],
            )
            for name in names
        ]

    def runs_of(self, node: Node) -> list[Run]:
        wanted = self.sizes.wanted(node.gpu_class)
        return self._runs(node, wanted)

    @property
    def _tops(self) -> Mapping[str, str]:
        return self._owners[1]

    def _seats(self) -> dict[tuple[str, int], list[Seat]]:
        """(node name, class id) -> what the person may see of it."""
        rows = visible_workloads(self.user).filter(cluster=self.cluster, state__in=HOLDING)
        columns = (
            "uid", "name", "gpus", "gpu_class_id", "queue__name", "placement", "started_at", "state",
            "last_evicted_for",
        )  # fmt: skip
        found: dict[tuple[str, int], list[Seat]] = defaultdict(list)
        now = self.cluster.now()
        for uid, name, gpus, class_id, queue, placement, started, state, rival in rows.values_list(
            *columns
        ):
            owner, age = self._owners[0].get(queue, NOWHERE), age_of(started, now)
            leaves_for = rival if state == State.EVICTED else ""
            for node, members in placement.items():
                seat = Seat(uid, name, gpus * members, bool(gpus % MILLI), owner, age, leaves_for)
                found[node, class_id].append(seat)
        return found

    @cached_property
    def promises(self) -> dict[tuple[str, int], list[Promise]]:
        """(node name, class id) -> what of it is kept for work that waits and that the person sees."""
        rows = visible_workloads(self.user).filter(
            cluster=self.cluster, state__in=WAITING, claim__isnull=False
        )
        ids = {one.name: one.pk for one in self.classes}
        found: dict[tuple[str, int], list[Promise]] = defaultdict(list)
        for row in rows.select_related("queue").order_by("position", "id"):
            claim = claim_of(row)
            if claim is None or claim.gpu_class not in ids:
                continue
            owner = self._owners[0].get(row.queue.name if row.queue else "", NOWHERE)
            name = name_in_plan(row)
            for node, members in claim.placement.items():
                gpus = row.gpus * members
                seat = Seat(row.uid, row.name, gpus, bool(row.gpus % MILLI), owner)
                found[node, ids[claim.gpu_class]].append(Promise(seat, name))
        return found

    def _domains(self, nodes: Sequence[Node], wanted: int) -> list[Domain]:
        by_name: dict[str, list[Node]] = defaultdict(list)
        for node in nodes:
            by_name[self.domain_of(node)].append(node)
        return [
            Domain(name, [self._place(node, wanted) for node in sorted(found, key=_natural)])
            for name, found in sorted(by_name.items())
        ]

    def _place(self, node: Node, wanted: int) -> NodePlace:
        return NodePlace(node, _short(node.name), self._runs(node, wanted))

    def _runs(self, node: Node, wanted: int) -> list[Run]:
        place = node.name, node.gpu_class_id
        return runs(node, self.seats.get(place, ()), wanted, self.promises.get(place, ()))


def _owners(queues: Iterable[Queue]) -> tuple[dict[str, Owner], dict[str, str]]:
    """Of the queues that are seen: name -> owner, and name -> department."""
    inside = sorted((q for q in queues if not q.is_root), key=lambda q: (q.position, q.path))
    tops = {q.name: q.path.split("/")[0] for q in inside}
    # By its place among all departments, so that a colour means the same to everybody.
    places = {q.name: q.position for q in inside}
    pairs = letters(q.name for q in inside)
    owners = {
        q.name: Owner(pairs[q.name], places.get(tops[q.name], 0) % TONES + 1, q.name)
        for q in inside
    }
    return owners, tops


def _by_letters(entry: tuple[tuple[str, Owner], int]) -> tuple[str, str]:
    (top, owner), _ = entry
    return top, owner.queue


def _short(name: str) -> str:
    """The number at the end of a host's name, where it has one."""
    found = re.search(r"(\d+)(?:\.|$)", name)
    return found[1] if found else name


def _natural(node: Node) -> tuple[tuple[int, str], ...]:
    """n2 before n10."""
    parts = re.findall(r"\d+|\D+", node.name)
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)
