"""What the overview and the queue list show, each figure from one place.

GPU figures are milli-GPU. Nodes say what is installed and free, the newest division (``Share``) who is
entitled to what. Totals are the whole cluster's; rows are only those the person may see.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict

from django.db.models import Case, Count, F, Min, OuterRef, Q, QuerySet, Subquery, Sum, When
from django.db.models.functions import Coalesce

from portal.accounts.models import User
from portal.display.entitlement import Axis, Bar, Figures, axis, bar
from portal.display.format import zone
from portal.display.units import gpus_each, unit
from portal.selectors.hidden_queues import Others, hidden_below, sum_of
from portal.selectors.loans import loans_in
from portal.selectors.losses import lost_in
from portal.teams.access import queues_of_own_work, visible_workloads
from portal.teams.reading import seen_of
from scheduling.models import (
    Cluster,
    Eviction,
    GpuClass,
    Node,
    Queue,
    Share,
    State,
    Transition,
    Workload,
)
from scheduling.models.workloads import WAITING
from scheduling.services.cycle.record.records import FIGURES
from scheduling.services.explain.fragmentation import Alike, MemberSizes, alike, left_over

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations


LEAST_SHOWN = 50
"""Milli-GPU below which a figure reads as 0."""


@dataclass(frozen=True)
class Capacity:
    """GPUs of one class now: the five parts add up to ``installed``.

    ``fragmented`` is free, but no whole member of what waits fits into it: the engine's definition.
    ``foreign`` is held by pods outside the queues.
    """

    gpu_class: GpuClass
    nodes: int
    nodes_down: int
    installed: int
    allocated: int
    free: int
    fragmented: int
    foreign: int
    down: int

    @property
    def unit(self) -> str:
        return unit(self.gpu_class)

    @property
    def parts(self) -> list[tuple[str, int]]:
        parts = [
            ("allocated", self.allocated),
            ("free", self.free),
            ("fragmented", self.fragmented),
            ("down", self.down),
        ]
        return parts + ([("outside queues", self.foreign)] if self.foreign else [])

    @property
    def spans(self) -> list[tuple[str, str, str]]:
        """(part, x, width) of the bar, in percent, in the order of drawing."""
        order = ("allocated", "outside queues", "free", "fragmented", "down")
        amounts, spans, x = dict(self.parts), [], 0
        for name in order:
            if width := amounts.get(name, 0):
                spans.append((name, _share(x, self.installed), _share(width, self.installed)))
                x += width
        return spans


@dataclass(frozen=True)
class QueueOnAxis:
    """One queue of the tree with its bar on the common axis."""

    queue: Queue
    depth: int
    is_inner: bool
    figures: Figures
    bar: Bar

    @property
    def excess(self) -> float:
        return self.figures.allocated - self.figures.fair_share


@dataclass(frozen=True)
class Total:
    """The row that closes the sum: fair shares + kept back + unclaimed = ready."""

    allocated: float
    fair_share: float
    nominal: float
    pending: float
    kept_back: float
    ready: float
    down: float
    keepers: list[str]
    """Names of those that keep back, for the sentence."""

    @property
    def excess(self) -> float:
        return self.allocated - self.fair_share

    @property
    def installed(self) -> float:
        return self.ready + self.down

    @property
    def unclaimed(self) -> float:
        """Ready, and no queue asks for it."""
        return max(0.0, self.ready - self.fair_share - self.kept_back)


@dataclass(frozen=True)
class Tree:
    gpu_class: GpuClass
    axis: Axis
    rows: list[QueueOnAxis]
    lines: list[QueueOnAxis | Others]
    """The rows, and after those below a queue what of it stays unseen."""
    total: Total

    @property
    def unit(self) -> str:
        return unit(self.gpu_class)

    @property
    def with_loans(self) -> bool:
        return any(row.figures.loan for row in self.rows)


def capacity(cluster: Cluster, classes: Iterable[GpuClass]) -> list[Capacity]:
    """Figures of each class in the given order. Two queries."""
    nodes: dict[int, list[Alike]] = defaultdict(list)
    for node, count in alike(Node.objects.filter(cluster=cluster)):
        nodes[node.gpu_class_id].append((node, count))
    sizes = MemberSizes(cluster)
    return [_capacity(c, nodes[c.pk], sizes.wanted(c)) for c in classes]


def _capacity(gpu_class: GpuClass, nodes: list[Alike], wanted: int) -> Capacity:
    ready = [(node, count) for node, count in nodes if node.ready]
    idle = sum(count * node.free_gpus for node, count in ready)
    fragmented = sum(count * left_over(node.free_gpus, wanted) for node, count in ready)
    foreign = sum(count * node.foreign_gpus for node, count in ready)
    down = [(node, count) for node, count in nodes if not node.ready]
    return Capacity(
        gpu_class=gpu_class,
        nodes=sum(count for _, count in nodes),
        nodes_down=sum(count for _, count in down),
        installed=sum(count * node.gpus for node, count in nodes),
        allocated=sum(count * node.gpus for node, count in ready) - foreign - idle,
        free=idle - fragmented,
        fragmented=fragmented,
        foreign=foreign,
        down=sum(count * node.gpus for node, count in down),
    )


def tree(
    cluster: Cluster, user: User, of: Capacity, every: Sequence[Queue], shares: Mapping[int, Share]
) -> Tree:
    """Of ``every`` queue those the person may see, depth first, on one axis; ``shares`` are of the class, by
    queue. One query, and more where something is lent."""
    gpu_class, loans = of.gpu_class, loans_in(shares.values(), cluster)
    seen = seen_of(user, every)
    visible = [queue for queue in every if queue.pk in seen]
    figures = {
        q.pk: figures_of(shares.get(q.pk), loan=loans.get((q.pk, gpu_class.pk), 0)) for q in visible
    }
    on = axis(f for q, f in ((q, figures[q.pk]) for q in visible) if not q.is_root)
    inner = {queue.parent_id for queue in visible}
    rows = [
        QueueOnAxis(q, depth, q.pk in inner, figures[q.pk], bar(q.name, figures[q.pk], on))
        for q, depth in depth_first(visible)
    ]
    lines = list(_with_others(rows, hidden_below(every, visible), shares))
    return Tree(gpu_class, on, rows, lines, _total(every, shares, visible, of))


def _with_others(
    rows: list[QueueOnAxis], hidden: Mapping[int | None, list[int]], shares: Mapping[int, Share]
) -> Iterator[QueueOnAxis | Others]:
    open_: list[QueueOnAxis] = []
    for row in rows:
        while open_ and open_[-1].depth >= row.depth:
            yield from _others(open_.pop(), hidden, shares)
        yield row
        open_.append(row)
    while open_:
        yield from _others(open_.pop(), hidden, shares)
    root = next((row.queue.parent_id for row in rows if row.depth == 0), None)
    if pks := hidden.get(root):
        yield sum_of("", 0, pks, shares)


def _others(
    row: QueueOnAxis, hidden: Mapping[int | None, list[int]], shares: Mapping[int, Share]
) -> Iterator[Others]:
    if pks := hidden.get(row.queue.pk):
        yield sum_of(row.queue.path, row.depth + 1, pks, shares)


def _total(
    every: Sequence[Queue], shares: Mapping[int, Share], visible: list[Queue], nodes: Capacity
) -> Total:
    root = next((queue.pk for queue in every if queue.parent_id is None), None)
    mine = [shares[q.pk] for q in every if q.parent_id == root and q.pk in shares]
    kept_back = sum(s.kept_back for s in mine)
    return Total(
        allocated=sum(s.allocated for s in mine),
        fair_share=sum(s.fair_share for s in mine),
        nominal=sum(s.nominal for s in mine),
        pending=sum(s.pending for s in mine),
        kept_back=kept_back,
        ready=nodes.installed - nodes.down - nodes.foreign,
        down=nodes.down,
        keepers=_keepers(visible, shares, kept_back),
    )


def _keepers(visible: list[Queue], shares: Mapping[int, Share], kept_back: float) -> list[str]:
    """The lowest queues that keep idle nominal back, and the others where those seen keep less than
    ``kept`` and some are out of sight."""
    seen = {queue.pk for queue in visible}
    keeping = [q for q in visible if not q.is_root and q.pk in shares and shares[q.pk].kept_back]
    above = {queue.parent_id for queue in keeping}
    lowest = [queue for queue in keeping if queue.pk not in above]
    lowest.sort(key=lambda queue: (queue.position, queue.name))
    hidden = kept_back - sum(shares[queue.pk].kept_back for queue in lowest)
    others = hidden >= LEAST_SHOWN and not shares.keys() <= seen
    return [*map(str, lowest), *(["other teams"] if others else [])]


def figures_of(share: Any, *, potential: bool = False, loan: int = 0) -> Figures:
    """The bar's figures of one row of the division, or of a share of a plan; all zero before the first.
    ``loan`` is what loans moved of its nominal."""
    if share is None:
        return Figures(0, 0, 0, 0, 0)
    named = {name: getattr(share, name) for name in FIGURES}
    return Figures(**named, potential=share.potential if potential else None, loan=loan)


def depth_first(queues: Iterable[Queue]) -> list[tuple[Queue, int]]:
    """(queue, depth) below the root, children after their parent, siblings by position then name."""
    children: dict[int | None, list[Queue]] = defaultdict(list)
    for queue in sorted(queues, key=lambda q: (q.position, q.name)):
        children[queue.parent_id].append(queue)
    placed: list[tuple[Queue, int]] = []

    def place(parent: int | None, depth: int) -> None:
        for queue in children[parent]:
            if not queue.is_root:
                placed.append((queue, depth))
            place(queue.pk, depth + (not queue.is_root))

    place(None, 0)
    return placed


class Since(TypedDict):
    since: datetime


def waiting_since(workloads: QuerySet[Workload]) -> QuerySet[WithAnnotations[Workload, Since]]:
    """With ``since``: the last eviction's requeue, else the submission. The time line is looked up for what
    was evicted alone."""
    requeued = Transition.objects.filter(workload=OuterRef("pk"), to_state=State.REQUEUED)
    last = Coalesce(Subquery(requeued.order_by("-at").values("at")[:1]), F("submitted_at"))
    since = Case(When(state=State.REQUEUED, then=last), default=F("submitted_at"))
    return workloads.filter(state__in=WAITING).annotate(since=since)


def first_of(
    ordered: QuerySet[WithAnnotations[Workload, Since]], count: int
) -> list[WithAnnotations[Workload, Since]]:
    """The first ``count``, read whole with what a table of them shows; the rest is sorted by keys alone."""
    rows = ordered.filter(pk__in=ordered.values("pk")[:count])
    return list(rows.select_related("queue", "cluster", "start_forecast__gpu_class"))


def longest_waits(
    cluster: Cluster, user: User, count: int = 5
) -> list[WithAnnotations[Workload, Since]]:
    """What the person may see and waits longest, each with ``since``."""
    mine = waiting_since(visible_workloads(user).filter(cluster=cluster))
    return first_of(mine.order_by("since", "id"), count)


@dataclass(frozen=True)
class Backlog:
    """All that waits in a cluster."""

    count: int
    gpus: float
    """Asked for, milli-GPU: seven slices are one GPU."""
    since: datetime | None


def waiting(cluster: Cluster, classes: Iterable[GpuClass]) -> Backlog:
    """One query, of everybody, whoever asks: a count tells nothing of anybody's work."""
    each = {c.name: float(gpus_each(c)) for c in classes}
    every = waiting_since(Workload.objects.filter(cluster=cluster)).order_by()
    rows = list(
        every.values("gpu_classes").annotate(
            n=Count("id"), asked=Sum(F("gpus") * F("min_members")), first=Min("since")
        )
    )
    return Backlog(
        sum(row["n"] for row in rows),
        sum(row["asked"] * each.get(next(iter(row["gpu_classes"]), ""), 1.0) for row in rows),
        min((row["first"] for row in rows), default=None),
    )


def visible_evictions(cluster: Cluster, user: User) -> QuerySet[Eviction]:
    """Evictions from or for queues whose workloads the person may see."""
    queues = queues_of_own_work(user)
    mine = Q(queue__in=queues) | Q(for_queue__in=queues) | Q(workload__user=user.get_username())
    return Eviction.objects.filter(mine, workload__cluster=cluster)


@dataclass(frozen=True)
class Evictions:
    rows: list[Eviction]
    today: int
    lost_gpu_s: float
    visible: set[int]
    """Of the workloads named, those the person may open."""


def last_evictions(cluster: Cluster, user: User, count: int = 5) -> Evictions:
    """The newest, and today's sum in the cluster's display zone."""
    mine = visible_evictions(cluster, user)
    now = cluster.now().astimezone(zone(cluster.display_time_zone))
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    today, lost = lost_in(mine.filter(at__gte=midnight))
    # Which they are is asked in narrow rows, as whole ones are long to sort: PostgreSQL does so first, while
    # it joins no more than eight tables.
    whole = Eviction.objects.filter(pk__in=mine.values("pk")[:count])
    rows = list(whole.select_related("workload__queue", "queue", "for_queue", "gpu_class", "cycle"))
    named = {pk for row in rows for pk in (row.workload_id, row.for_workload_id) if pk}
    visible = set(visible_workloads(user).filter(pk__in=named).values_list("pk", flat=True))
    return Evictions(rows, today, lost, visible)


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.3f}%" if whole else "0%"


@dataclass(frozen=True)
class GpuTotals:
    """Physical GPUs of all classes together, milli-GPU: seven slices are one GPU."""

    installed: float
    allocated: float
    down: float
    fragmented: float
    nodes_down: int

    @property
    def part(self) -> float:
        """Allocated of installed."""
        return self.allocated / self.installed if self.installed else 0.0


def sums(parts: Iterable[Capacity]) -> GpuTotals:
    rows = list(parts)
    return GpuTotals(
        installed=float(sum(one.installed * gpus_each(one.gpu_class) for one in rows)),
        allocated=float(sum(one.allocated * gpus_each(one.gpu_class) for one in rows)),
        down=float(sum(one.down * gpus_each(one.gpu_class) for one in rows)),
        fragmented=float(sum(one.fragmented * gpus_each(one.gpu_class) for one in rows)),
        nodes_down=sum(one.nodes_down for one in rows),
    )
