"""What may be asked of the engine, and how each is planned. A question is plain JSON; its answer too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from portal.accounts.models import User
from portal.approvals import edits, previews
from portal.approvals.loans import previews as loans
from portal.approvals.models import QuotaLoan, QuotaRequest
from portal.approvals.states import Figure, Kind
from portal.approvals.unplanned import or_fault
from portal.approvals.wishes import Wish
from portal.plans import starts
from portal.selectors import sooner as changes
from scheduling.models import Cluster, Queue, QuotaChange, Workload
from scheduling.services import run_times
from scheduling.services.clusters.consolidation import Freed, Move
from scheduling.services.errors import ServiceError
from scheduling.services.explain import asking
from scheduling.services.queues.save import cells_back
from scheduling.services.studies.whatif.preview import preview

Json = dict[str, Any]
REQUEST, WISH, LOAN, REVERT, CHANGES, NODES, SOONER, RUN_TIME = (
    "request", "wish", "loan", "revert", "changes", "nodes", "sooner", "run_time",
)  # fmt: skip
IN_PLACE: Mapping[str, tuple[str, ...]] = {starts.DRAFT: ("person",), starts.CHANGED: ("person",)}
"""By kind, what of a question stays: the next one of that takes the place of the one before."""


def of_request(request: QuotaRequest, gpus: int | None = None, giver: Queue | None = None) -> Json:
    """The question what it would do, of so many GPUs (milli) and taken from ``giver``."""
    own = giver or request.giver
    gpus = request.gpus if gpus is None else gpus
    return {
        "request": request.pk,
        "since": str(request.since),
        "gpus": gpus,
        "giver": own and own.pk,
    }


def _request(cluster: Cluster, asked: Json) -> Json:
    request = QuotaRequest.objects.select_related("queue__cluster").get(pk=asked["request"])
    request.giver = _queue(asked["giver"])

    def plan() -> Json:
        return previews.of_wish(Wish.of(request), cluster.now(), gpus=asked["gpus"])

    return or_fault(plan)


def of_wish(wish: Wish) -> Json:
    """The question what it would do, as it is typed."""
    told = wish.columns()
    ends: dict[str, datetime | None] = {name: told[name] for name in ("starts_at", "ends_at")}
    return {
        **{name: told[name] for name in ("gpu_class", "priority_class", "gpus", "name")},
        **{name: at.isoformat() if at else None for name, at in ends.items()},
        "kind": str(told["kind"]),
        "figure": str(told["figure"]),
        "queue": wish.queue.pk,
        "giver": told["giver"] and told["giver"].pk,
    }


def _wish(cluster: Cluster, asked: Json) -> Json:
    told: dict[str, Any] = {
        name: asked[name] for name in ("gpu_class", "priority_class", "gpus", "name")
    }
    for name in ("starts_at", "ends_at"):
        told[name] = datetime.fromisoformat(asked[name]) if asked[name] else None
    wish = Wish(
        kind=Kind(asked["kind"]), figure=Figure(asked["figure"]), giver=_queue(asked["giver"]),
        queue=Queue.objects.select_related("cluster").get(pk=asked["queue"]), **told,
    )  # fmt: skip
    return or_fault(lambda: previews.of_wish(wish, cluster.now()))


def _queue(key: int | None) -> Queue | None:
    return None if key is None else Queue.objects.select_related("cluster").get(pk=key)


def of_loan(loan: QuotaLoan, gpus: int) -> Json:
    """The question what lending so many (milli; negative: their return) would do now."""
    return {"loan": loan.pk, "since": str(loan.since), "gpus": gpus}


def _loan(cluster: Cluster, asked: Json) -> Json:
    rows = QuotaLoan.objects.select_related("cluster", "lender", "borrower", "gpu_class")
    return loans.planned(rows.get(pk=asked["loan"]), asked["gpus"])


def _revert(cluster: Cluster, asked: Json) -> Json:
    return edits.planned(cluster, cells_back(QuotaChange.objects.get(pk=asked["change"])))


def _changes(cluster: Cluster, asked: Json) -> Json:
    return or_fault(lambda: preview(cluster, asked["changes"]))


def _nodes(cluster: Cluster, asked: Json) -> Json:
    try:
        found = asking.freed(cluster, asked["gpu_class"], asked["nodes"])
    except ServiceError as refused:
        return {"fault": str(refused)}
    return {"at": cluster.now().isoformat(), **asdict(found)}


def freed_of(answer: Json) -> Freed:
    """What a consolidation would do, of an answer without a fault."""
    names = ("whole", "becomes_whole", "starts")
    moves = tuple(Move(**move) for move in answer["moves"])
    told = {**answer, **{name: tuple(answer[name]) for name in names}, "moves": moves}
    del told["at"]
    return Freed(**told)


def _sooner(cluster: Cluster, asked: Json) -> Json:
    """The changes are kept with the workload, for all who may choose among the same."""
    work = Workload.objects.select_related("cluster", "queue").get(pk=asked["work"])
    try:
        changes.sooner(User.objects.get(pk=asked["person"]), work)
    except ServiceError as refused:
        return {"fault": str(refused)}
    return {}


KINDS: Mapping[str, Callable[[Cluster, Json], Json]] = {
    REQUEST: _request, WISH: _wish, LOAN: _loan, REVERT: _revert, CHANGES: _changes, NODES: _nodes,
    SOONER: _sooner, RUN_TIME: run_times.answer,
    starts.DRAFT: starts.of_draft, starts.CHANGED: starts.of_change,
}  # fmt: skip
