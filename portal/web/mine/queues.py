"""The person's own queues of one class with the person's part in them; all others are one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from portal.accounts.models import User
from portal.display.entitlement import Axis, Bar, Figures, axis, bar
from portal.display.sentences import and_list
from portal.display.sums import NumericLine
from portal.display.units import unit
from portal.selectors.overview import figures_of
from portal.teams.access import team_queues
from portal.teams.rights import rights_of
from portal.web.frame.division import last_cycle, shares_of, tree_of
from portal.web.mine.active import Active, as_planned
from scheduling.models import Cluster, GpuClass, Queue


@dataclass(frozen=True, slots=True)
class OwnAmounts(NumericLine):
    """Milli-GPU of one line of the table. Those of all lines add up to the last."""

    allocated: float = 0
    mine: float = 0
    fair_share: float = 0
    nominal: float = 0
    pending: float = 0
    mine_pending: float = 0

    @property
    def excess(self) -> float:
        return self.allocated - self.fair_share


@dataclass(frozen=True, slots=True)
class OwnQueueRow:
    queue: Queue
    figures: Figures
    amounts: OwnAmounts
    bar: Bar


@dataclass(frozen=True, slots=True)
class OwnQueues:
    gpu_class: GpuClass
    axis: Axis
    lines: Sequence[OwnQueueRow]
    others: OwnAmounts
    others_count: int
    """Queues that hold workloads and are not the person's."""
    total: OwnAmounts

    @property
    def unit(self) -> str:
        return unit(self.gpu_class)


def own_share(
    cluster: Cluster, user: User, active: Sequence[Active], gpu_class: GpuClass
) -> OwnQueues:
    """Lines are the highest of the person's queues, so none is counted twice; ``active`` is the person's
    work that waits and runs. Two queries, and three more once a revision."""
    every = tree_of(cluster)
    mine = _highest(
        set(team_queues(user).filter(cluster=cluster).values_list("pk", flat=True)), every
    )
    shares = shares_of(cluster).get(gpu_class.pk, {})
    last = last_cycle(cluster)
    planned = last.at if last else cluster.now()
    found = as_planned(planned, active, cluster, user)
    usage, wanted = _of_person(found, planned, gpu_class)
    figures = {q.pk: figures_of(shares.get(q.pk)) for q in mine}
    on = axis(figures.values())
    lines = [_line(q, figures[q.pk], every, usage, wanted, on) for q in mine]
    first = [q for q in every if q.parent_id is not None and _depth(q) == 0]
    own_sum = sum((line.amounts for line in lines), OwnAmounts())
    total = sum((_amounts(figures_of(shares.get(q.pk))) for q in first), OwnAmounts())
    total += OwnAmounts(mine=own_sum.mine, mine_pending=own_sum.mine_pending)
    total += _elsewhere(
        usage, wanted, {q.pk for q in every if any(q.is_within(one) for one in mine)}
    )
    return OwnQueues(gpu_class, on, lines, total - own_sum, _others(every, mine), total)


def _depth(queue: Queue) -> int:
    return queue.path.count("/")


def _highest(seen: set[int], every: Iterable[Queue]) -> list[Queue]:
    """Of the queues one sees the work of, those below none of them; of the whole tree its first queues."""
    return [
        queue
        for queue in every
        if queue.pk in seen
        and not queue.is_root
        and (queue.parent_id not in seen or _depth(queue) == 0)
    ]


def _of_person(
    found: Iterable[Active], planned: datetime, gpu_class: GpuClass
) -> tuple[Mapping[int | None, int], Mapping[int | None, int]]:
    """Milli-GPU of the class that the person's work held and asked for, by queue, as the newest division
    counts them: of what was there when it was planned, all members of what waited and is not on hold, in each
    class that it accepts.
    """
    usage: Counter[int | None] = Counter()
    wanted: Counter[int | None] = Counter()
    for one in found:
        if one.submitted_at > planned or (one.is_waiting and one.held):
            continue
        if one.members:
            if one.gpu_class_id == gpu_class.pk:
                usage[one.queue_id] += one.gpus * one.members
        elif not one.gpu_classes or gpu_class.name in one.gpu_classes:
            wanted[one.queue_id] += one.gpus * one.max_members
    return usage, wanted


def _line(
    queue: Queue,
    figures: Figures,
    every: Iterable[Queue],
    usage: Mapping[int | None, int],
    wanted: Mapping[int | None, int],
    on: Axis,
) -> OwnQueueRow:
    below = [q.pk for q in every if q.is_within(queue)]
    mine = sum(usage.get(pk, 0) for pk in below)
    mine_pending = sum(wanted.get(pk, 0) for pk in below)
    drawn = bar(queue.name, figures, on, framed_gpus=mine_pending, framed_held=mine)
    return OwnQueueRow(queue, figures, _amounts(figures, mine, mine_pending), drawn)


def _elsewhere(
    usage: Mapping[int | None, int], wanted: Mapping[int | None, int], inside: set[int]
) -> OwnAmounts:
    """What the person holds and asks for outside the queues of the lines."""
    mine, pending = (
        sum(gpus for pk, gpus in by.items() if pk not in inside) for by in (usage, wanted)
    )
    return OwnAmounts(mine=mine, mine_pending=pending)


def _amounts(figures: Figures, mine: float = 0, mine_pending: float = 0) -> OwnAmounts:
    return OwnAmounts(
        figures.allocated, mine, figures.fair_share, figures.nominal, figures.pending, mine_pending
    )


def _others(every: Sequence[Queue], mine: Sequence[Queue]) -> int:
    inner = {queue.parent_id for queue in every}
    return sum(
        1
        for leaf in every
        if leaf.pk not in inner and not leaf.is_root and not any(leaf.is_within(q) for q in mine)
    )


def teams_of(user: User, cluster: Cluster) -> str:
    """As whom the person is in which teams of the cluster: 'researcher in alignment and pretraining'."""
    names: dict[str, list[str]] = {}
    for grant in rights_of(user).grants:
        if grant.cluster_id == cluster.pk:
            names.setdefault(grant.persona, []).append(grant.team)
    return and_list(
        f"{persona} in {and_list(sorted(in_))}" for persona, in_ in sorted(names.items())
    )
