"""Consolidations that are ordered, taken by a cycle, and what came of them.

1. ``order`` writes down what somebody confirmed; ``cancel`` takes it back while it waits.
2. ``due`` plans the one that waits anew, on the cycle's own snapshot.
3. ``claim`` takes it in the transaction that commits its moves, by a conditional update: whoever finds it
   taken commits nothing.
4. ``settle`` writes what came of it, from what was written to the cluster. Where a kill came between, the
   next ``claim`` reads the ledger: if nobody was stopped it waits again, else it is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import IntegrityError, transaction

from scheduling.cluster.enforcement.enforcer import Write
from scheduling.engine import model as m
from scheduling.models import (
    Cluster,
    ClusterMode,
    Consolidation,
    ConsolidationState,
    Cycle,
    Eviction,
    EvictionRule,
    GpuClass,
    Workload,
)
from scheduling.models.consolidation import OPEN
from scheduling.services.clusters import consolidation
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce

Json = dict[str, Any]
Of = ConsolidationState

NOTHING_FITS = "Nothing was moved: planned anew, no {} of at most {} make{} {} more node{} whole."
NOT_WRITTEN = "it had ended, was suspended or edited before it could be moved"
CUT_OFF = "Weir was stopped before it could be moved"


class TakenError(Exception):
    """Somebody else took, or cancelled, the consolidation that this cycle planned with."""


@dataclass(frozen=True, slots=True)
class OpenOrder:
    """One that is open, its moves on the cycle's snapshot, and ``after``: that snapshot with them under way.

    One that an earlier cycle took has no moves any more: what came of them is to be found out.
    """

    order: Consolidation
    moves: tuple[m.Decision, ...]
    origins: Mapping[str, Mapping[str, int]]
    """Engine name -> members by node before the move."""
    after: m.Snapshot


def order(
    *, cluster: Cluster, gpu_class: GpuClass, nodes: int, most_moves: int, author: Any
) -> Consolidation:
    """Have the next cycle do it. Raises ServiceError where nothing is enforced, or one is open already."""
    if cluster.mode != ClusterMode.ENFORCE:
        raise ServiceError(
            "not_enforcing",
            f"Weir moves nothing on {cluster.name}, which it does not enforce.",
            "Set its mode to enforce first.",
        )
    try:
        with transaction.atomic():
            made = Consolidation.objects.create(
                cluster=cluster,
                gpu_class=gpu_class,
                nodes=nodes,
                most_moves=most_moves,
                author=author.get_username(),
                asked_at=cluster.now(),
            )
            announce(
                "consolidation.ordered",
                actor=author,
                cluster=cluster,
                subject=str(made),
                after={"gpu_class": gpu_class.name, "nodes": nodes, "most_moves": most_moves},
            )
    except IntegrityError as error:
        raise ServiceError(
            "one_open",
            "A consolidation of this cluster waits already.",
            "Wait until it is done, or cancel it.",
        ) from error
    cluster.touch()
    return made


@transaction.atomic
def cancel(order: Consolidation, *, author: Any) -> bool:
    """Whether it still waited."""
    waiting = Consolidation.objects.filter(pk=order.pk, state=Of.WAITING)
    now = order.cluster.now()
    said = f"Cancelled by {author.get_username()}."
    if not waiting.update(state=Of.CANCELLED, outcome=said, done_at=now):
        return False
    announce("consolidation.cancelled", actor=author, cluster=order.cluster, subject=str(order))
    order.cluster.touch()
    return True


def open_order(cluster: Cluster, snapshot: m.Snapshot) -> OpenOrder | None:
    """The one that is open, planned anew if it waits; None where none is. One query."""
    open_ = Consolidation.objects.filter(cluster=cluster, state__in=OPEN)
    order = open_.select_related("gpu_class", "cluster").first()
    if order is None:
        return None
    if order.state == Of.MOVING:
        return OpenOrder(order, (), {}, snapshot)
    found = consolidation.decided(
        snapshot, order.gpu_class.name, order.nodes, most=order.most_moves
    )
    moves = tuple(_reworded(decision, len(found), order.nodes) for decision in found)
    names = {decision.workload for decision in moves}
    origins = {work.name: work.placement for work in snapshot.workloads if work.name in names}
    return OpenOrder(order, moves, origins, consolidation.under_way(snapshot, moves))


def _reworded(decision: m.Decision, many: int, nodes: int) -> m.Decision:
    """It is for nobody who waits: the engine's sentence names the ask, this one says who wanted it."""
    others = f", with {many - 1} more," if many > 1 else ""
    whole = "a node becomes" if nodes == 1 else f"{nodes} nodes become"
    hours = decision.lost_gpu_s / 3600
    lost = f"{hours:.1f} GPU-hours of work since its last checkpoint are done again."
    sentence = f"It moves{others} so that {whole} free as a whole, as an operator ordered. {lost}"
    numbers = {"moves": decision.numbers.get("moves"), "workloads": many}
    return replace(decision, for_workload=None, sentence=sentence, sealed="", numbers=numbers)


def claim(pending: OpenOrder, cycle: Cycle, by_name: Mapping[str, Workload]) -> None:
    """Take it for ``cycle``, in the caller's transaction; without a move it is over at once.

    Raises TakenError, which has to undo what was decided, when it waits no more.
    """
    if pending.order.state == Of.MOVING:
        _settle_interrupted(pending.order)
        return
    rows = [
        _row(decision, by_name[decision.workload], pending.origins) for decision in pending.moves
    ]
    waiting = Consolidation.objects.filter(pk=pending.order.pk, state=Of.WAITING)
    if not waiting.update(state=Of.MOVING, cycle=cycle, moves=rows):
        raise TakenError
    pending.order.moves = rows
    if not rows:
        few, many = pending.order.most_moves, pending.order.nodes
        what = "moves" if few != 1 else "move"
        said = NOTHING_FITS.format(what, few, "" if few != 1 else "s", many, "s" * (many != 1))
        _end(pending.order, [], Of.NOT_DONE, said)


def _row(decision: m.Decision, work: Workload, origins: Mapping[str, Mapping[str, int]]) -> Json:
    return {
        "workload": work.pk,
        "uid": work.uid,
        "name": work.name,
        "origin": sorted(origins[decision.workload]),
        "target": sorted(decision.placement),
        "gpus": work.gpus * sum(decision.placement.values()),
        "lost_gpu_s": decision.lost_gpu_s,
        "moved": None,
        "why": "",
    }


def settle(pending: OpenOrder, writes: Iterable[Write]) -> None:
    """What came of its moves, as the API server answered; nothing is known where nothing was tried."""
    came = {write.workload_uid: write for write in writes if write.purpose == "suspend"}
    if pending.moves and not came.keys().isdisjoint(row["uid"] for row in pending.order.moves):
        _conclude(
            pending.order, [row | _outcome(came.get(row["uid"])) for row in pending.order.moves]
        )


def _outcome(write: Write | None) -> Json:
    if write is None or (not write.code and not write.method):
        return {"moved": False, "why": NOT_WRITTEN}
    if write.code:
        return {"moved": False, "why": f"the API server refused: {write.message}"[:200]}
    return {"moved": True}


def _settle_interrupted(order: Consolidation) -> None:
    """What a kill left between the commit and the outcome; the cluster was looked at anew since."""
    evicted = Eviction.objects.filter(cycle=order.cycle, rule=EvictionRule.CONSOLIDATE)
    stopped = set(evicted.values_list("workload_id", flat=True))
    if stopped.isdisjoint(row["workload"] for row in order.moves):
        moving = Consolidation.objects.filter(pk=order.pk, state=Of.MOVING)
        moving.update(state=Of.WAITING, cycle=None, moves=[])
        return
    came = {True: {"moved": True}, False: {"moved": False, "why": CUT_OFF}}
    _conclude(order, [row | came[row["workload"] in stopped] for row in order.moves])


def _conclude(order: Consolidation, rows: Sequence[Json]) -> None:
    moved = [row for row in rows if row["moved"]]
    state = Of.DONE if moved else Of.NOT_DONE
    _end(order, rows, state, _outcome_in_words(rows, moved))


def _outcome_in_words(rows: Sequence[Json], moved: Sequence[Json]) -> str:
    hours = sum(row["lost_gpu_s"] for row in moved) / 3600
    left = [row for row in rows if not row["moved"]]
    said = f"Moved {len(moved)} of {len(rows)}; {hours:.1f} GPU-hours are done again."
    because = f" {left[0]['name']} was not: {left[0]['why']}." if left else ""
    return f"{said}{because}"[:300]


@transaction.atomic
def _end(order: Consolidation, rows: Sequence[Json], state: Of, said: str) -> None:
    """Over, once: of two who settle it at once the second finds it so."""
    moving = Consolidation.objects.filter(pk=order.pk, state=Of.MOVING)
    now = order.cluster.now()
    if moving.update(state=state, moves=rows, outcome=said, done_at=now):
        announce(
            "consolidation.ended",
            cluster=order.cluster,
            subject=str(order),
            after={"outcome": said, "moved": sum(bool(row["moved"]) for row in rows)},
        )


def latest(cluster: Cluster, count: int = 5) -> list[Consolidation]:
    """The newest, whatever became of them."""
    rows = Consolidation.objects.filter(cluster=cluster)
    return list(rows.select_related("gpu_class", "cycle", "cluster")[:count])
