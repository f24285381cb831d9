"""Whether a gang fits a queue's quota of each GPU class, said from the newest division alone.

Nothing here predicts: a fit is a statement about limits, nominal and potential shares and free GPUs of
this moment. All figures are milli-GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from portal.web.entitlement import Axis, Bar, axis, bar
from portal.web.entitlement import Span as BarSpan
from portal.web.format import duration, gpus, money
from portal.web.overview.figures import figures_of
from scheduling.models import Cluster, GpuClass, Node, PriorityClass, Queue, Share


@dataclass(frozen=True, slots=True)
class Gang:
    """``gpus`` per pod, between ``pods_min`` and ``pods_max`` pods."""

    gpus: int
    pods_min: int
    pods_max: int
    preemptible: bool = True

    @property
    def least(self) -> int:
        return self.gpus * self.pods_min

    @property
    def most(self) -> int:
        return self.gpus * self.pods_max


@dataclass(frozen=True, slots=True)
class Verdict:
    tone: str
    icon: str
    head: str
    text: str


@dataclass(frozen=True, slots=True)
class Fit:
    """One row: a class, its place in the order of preference (0: not chosen), and what holds."""

    gpu_class: GpuClass
    choice: int
    verdict: Verdict
    bar: Bar | None
    free: str
    cost: str
    cost_note: str

    @property
    def choice_text(self) -> str:
        names = {0: "not chosen", 1: "1st choice", 2: "2nd choice", 3: "3rd choice"}
        return names.get(self.choice, f"{self.choice}th choice")


@dataclass(frozen=True, slots=True)
class Room:
    """What stands above a class's division on the way to the queue: its rows, leaf last."""

    rows: Sequence[Share]

    @property
    def leaf(self) -> Share:
        return self.rows[-1]

    def limits(self) -> Iterator[tuple[int, Share]]:
        """(limit, row) of every queue on the way that has one."""
        yield from ((row.limit, row) for row in self.rows if row.limit is not None)

    def tightest(self) -> tuple[int, Share] | None:
        """(what its limit leaves, row) of the queue that leaves least."""
        left = [(limit - row.allocated - row.pending, row) for limit, row in self.limits()]
        return min(left, key=lambda pair: pair[0], default=None)

    def lowest(self) -> tuple[int, Share] | None:
        return min(self.limits(), key=lambda pair: pair[0], default=None)


def fits(
    cluster: Cluster,
    queue: Queue,
    gang: Gang,
    chosen: Sequence[str],
    run_time_limit_s: int | None,
) -> tuple[list[Fit], Axis | None]:
    """A row for each class of ``cluster``, chosen ones first in their order, and their one axis."""
    classes = list(cluster.gpu_classes.all())
    rooms = _rooms(queue)
    nodes = _nodes(cluster)
    on = _axis(rooms.values(), gang)
    rank = {name: i + 1 for i, name in enumerate(chosen)}
    rows = [
        Fit(
            gpu_class=c,
            choice=rank.get(c.name, 0),
            verdict=judge(gang, rooms.get(c.pk), nodes.get(c.pk, ())),
            bar=_bar(queue, gang, rooms.get(c.pk), on),
            free=_free(gang, nodes.get(c.pk, ())),
            cost=_cost(cluster, c, gang.least, 3600) + " an hour",
            cost_note=_cost_note(cluster, c, gang, run_time_limit_s),
        )
        for c in classes
    ]
    return sorted(rows, key=lambda row: row.choice or len(classes) + 1), on


def judge(gang: Gang, room: Room | None, nodes: Sequence[Node]) -> Verdict:
    """What the quota says to ``gang``: never, not now, in part, or yes."""
    never = _never(gang, room, nodes)
    if never:
        return Verdict("err", "error", "Never fits", never)
    if room is None:
        return Verdict("neutral", "clock", "Not planned yet", "The next cycle divides this class.")
    tight = room.tightest()
    entitled = _entitled(gang, room.leaf)
    if tight is None or tight[0] >= gang.most:
        return Verdict("ok", "finished", f"{gpus(gang.most)} fit{_s(gang.most)}", entitled)
    left, row = max(0, tight[0]), tight[1]
    whole = left // gang.gpus * gang.gpus
    text = (
        f"Limit {gpus(row.limit)} of {row.queue.name}: {gpus(row.allocated)} held and "
        f"{gpus(row.pending)} pending leave {gpus(left)}."
    )
    if whole >= gang.least:
        head = f"{gpus(whole)} fit{_s(whole)} now, {gpus(gang.most)} do{_es(gang.most)} not"
        return Verdict("warn", "error", head, f"{text} {entitled}")
    return Verdict("warn", "error", "Waits for room below the limit", text)


def _never(gang: Gang, room: Room | None, nodes: Sequence[Node]) -> str:
    largest = max((node.gpus for node in nodes), default=0)
    if largest < gang.gpus:
        return f"No node has more than {gpus(largest)} of them; a pod asks for {gpus(gang.gpus)}."
    lowest = room.lowest() if room else None
    if lowest is not None and lowest[0] < gang.least:
        return (
            f"The limit of {lowest[1].queue.name} is {gpus(lowest[0])}; "
            f"the gang needs {gpus(gang.least)}."
        )
    if room and not gang.preemptible and room.leaf.nominal < gang.least:
        return (
            "This priority class isn't preemptible, so it runs only inside nominal: "
            f"{gpus(room.leaf.nominal)}."
        )
    return ""


def _entitled(gang: Gang, leaf: Share) -> str:
    """How safe the GPUs would be once held, with everything that waits before it."""
    after = leaf.allocated + leaf.pending + gang.least
    if after <= leaf.nominal:
        return f"Makes {gpus(after)} of a nominal {gpus(leaf.nominal)}: guaranteed."
    if not gang.preemptible:
        return f"Makes {gpus(after)}; it starts only inside the nominal {gpus(leaf.nominal)}."
    if after <= leaf.potential:
        return f"Makes {gpus(after)}, inside the potential share of {gpus(leaf.potential)}."
    return (
        f"Makes {gpus(after)}, above the potential share of {gpus(leaf.potential)}: "
        "it may wait, and may be reclaimed."
    )


def _free(gang: Gang, nodes: Sequence[Node]) -> str:
    """Free GPUs of ready nodes, and how many of the gang's pods have a place on them now."""
    free = [max(0, n.gpus - n.allocated_gpus - n.foreign_gpus) for n in nodes if n.ready]
    places = sum(left // gang.gpus for left in free)
    if places >= gang.pods_max:
        whole = "the pod" if gang.pods_max == 1 else f"all {gang.pods_max} pods"
        return f"{gpus(sum(free))} free: room for {whole}"
    least = "" if places >= gang.pods_min else f", and it needs {gang.pods_min}"
    return f"{gpus(sum(free))} free: room for {places} of {gang.pods_max} pods{least}"


def _rooms(queue: Queue) -> Mapping[int, Room]:
    """By class: the division on the way from below the root down to ``queue``."""
    paths = queue.path.split("/")
    names = ["/".join(paths[: i + 1]) for i in range(len(paths))]
    rows = Share.objects.filter(
        queue__cluster_id=queue.cluster_id, queue__path__in=names
    ).select_related("queue", "gpu_class")
    found: dict[int, list[Share]] = {}
    for row in sorted(rows, key=lambda r: len(r.queue.path)):
        found.setdefault(row.gpu_class_id, []).append(row)
    return {pk: Room(rows) for pk, rows in found.items() if rows[-1].queue_id == queue.pk}


def _nodes(cluster: Cluster) -> Mapping[int, list[Node]]:
    found: dict[int, list[Node]] = {}
    for node in Node.objects.filter(cluster=cluster):
        found.setdefault(node.gpu_class_id, []).append(node)
    return found


def _axis(rooms: Iterable[Room], gang: Gang) -> Axis | None:
    drawn = [figures_of(room.leaf) for room in rooms]
    return axis(drawn, least=gang.least) if drawn else None


def _bar(queue: Queue, gang: Gang, room: Room | None, on: Axis | None) -> Bar | None:
    """The leaf's bar with this gang at the end of the hatch, framed as far as the limit allows."""
    if room is None or on is None:
        return None
    now = figures_of(room.leaf)
    held = now.allocated + now.pending
    wished = replace(now, demand=held + gang.most, pending=now.pending + gang.most)
    drawn = bar(str(queue), wished, on)
    end = min(held + gang.most, on.end if now.limit is None else now.limit)
    if end <= held:
        return drawn
    left, right = on.at(held), on.at(end)
    frame = BarSpan(f"{left:.3f}%", f"{right - left:.3f}%", f"{right:.3f}%")
    return replace(drawn, framed=frame)


def _cost(cluster: Cluster, gpu_class: GpuClass, held: int, seconds: float) -> str:
    hours = Decimal(held) / 1000 * Decimal(seconds) / 3600
    return money(gpu_class.price_per_gpu_hour * hours, cluster.currency)


def _cost_note(cluster: Cluster, gpu_class: GpuClass, gang: Gang, limit_s: int | None) -> str:
    on = f"on {gpus(gang.least)} GPUs" if gang.least != 1000 else "on 1 GPU"
    if not limit_s:
        return on
    most = _cost(cluster, gpu_class, gang.most, limit_s)
    return f"{on}; at most {most} in {duration(limit_s)}"


def _s(milli: int) -> str:
    return "s" if milli == 1000 else ""


def _es(milli: int) -> str:
    return "es" if milli == 1000 else ""


def is_preemptible(name: str) -> bool:
    """Of the priority class ``name``; what names none is."""
    found = PriorityClass.objects.filter(name=name).first()
    return found is None or found.preemptible
