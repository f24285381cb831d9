"""What may be asked of the engine, and how each is planned. A question is plain JSON; its answer too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import cache
from itertools import compress, repeat
from typing import Any

from portal.accounts.models import User
from portal.approvals import edits, wish_plans
from portal.approvals.loans import previews as loans
from portal.approvals.models import QuotaLoan, QuotaRequest
from portal.approvals.plan_faults import or_fault
from portal.approvals.states import Figure, Kind
from portal.approvals.wishes import Wish
from portal.plans import starts
from portal.teams.reach import reach_of
from scheduling.models import Cluster, Queue, QuotaChange, Workload
from scheduling.services import run_times
from scheduling.services.clusters.consolidation import ConsolidationEffect, Move
from scheduling.services.errors import ServiceError
from scheduling.services.explain import asking
from scheduling.services.explain.sooner import plan_now
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


def _request(cluster: Cluster, question: Json) -> Json:
    request = QuotaRequest.objects.select_related("queue__cluster").get(pk=question["request"])
    request.giver = _queue(question["giver"])

    def plan() -> Json:
        return wish_plans.of_wish(Wish.of(request), cluster.now(), gpus=question["gpus"])

    return or_fault(plan)


def of_wish(wish: Wish) -> Json:
    """The question what it would do, as it is typed."""
    columns = wish.columns()
    ends: dict[str, datetime | None] = {name: columns[name] for name in ("starts_at", "ends_at")}
    return {
        **{name: columns[name] for name in ("gpu_class", "priority_class", "gpus", "name")},
        **{name: at.isoformat() if at else None for name, at in ends.items()},
        "kind": str(columns["kind"]),
        "figure": str(columns["figure"]),
        "queue": wish.queue.pk,
        "giver": columns["giver"] and columns["giver"].pk,
    }


def _wish(cluster: Cluster, question: Json) -> Json:
    fields: dict[str, Any] = {
        name: question[name] for name in ("gpu_class", "priority_class", "gpus", "name")
    }
    for name in ("starts_at", "ends_at"):
        fields[name] = datetime.fromisoformat(question[name]) if question[name] else None
    wish = Wish(
        kind=Kind(question["kind"]), figure=Figure(question["figure"]), giver=_queue(question["giver"]),
        queue=Queue.objects.select_related("cluster").get(pk=question["queue"]), **fields,
    )  # fmt: skip
    return or_fault(lambda: wish_plans.of_wish(wish, cluster.now()))


def _queue(key: int | None) -> Queue | None:
    return None if key is None else Queue.objects.select_related("cluster").get(pk=key)


def of_loan(loan: QuotaLoan, gpus: int) -> Json:
    """The question what lending so many (milli; negative: their return) would do now."""
    return {"loan": loan.pk, "since": str(loan.since), "gpus": gpus}


def _loan(cluster: Cluster, question: Json) -> Json:
    rows = QuotaLoan.objects.select_related("cluster", "lender", "borrower", "gpu_class")
    return loans.planned(rows.get(pk=question["loan"]), question["gpus"])


def _revert(cluster: Cluster, question: Json) -> Json:
    return edits.planned(cluster, cells_back(QuotaChange.objects.get(pk=question["change"])))


def _changes(cluster: Cluster, question: Json) -> Json:
    return or_fault(lambda: preview(cluster, question["changes"]))


def _nodes(cluster: Cluster, question: Json) -> Json:
    try:
        found = asking.freed(cluster, question["gpu_class"], question["nodes"])
    except ServiceError as refused:
        return {"fault": str(refused)}
    return {"at": cluster.now().isoformat(), **asdict(found)}


def freed_of(answer: Json) -> ConsolidationEffect:
    """What a consolidation would do, of an answer without a fault."""
    names = ("whole", "becomes_whole", "starts")
    moves = tuple(Move(**move) for move in answer["moves"])
    values = {**answer, **{name: tuple(answer[name]) for name in names}, "moves": moves}
    del values["at"]
    return ConsolidationEffect(**values)


def _sooner(cluster: Cluster, questions: Sequence[Json]) -> Iterator[Json | None]:
    """The changes are kept with the workload, for all who may choose among the same."""
    works = Workload.objects.select_related("cluster", "queue").in_bulk(
        {one["work"] for one in questions}
    )
    people = User.objects.in_bulk({one["person"] for one in questions})
    reach = cache(lambda person: reach_of(people[person], cluster))
    known = [one["work"] in works and one["person"] in people for one in questions]
    planned = plan_now(
        cluster, [(works[one["work"]], reach(one["person"])) for one in compress(questions, known)]
    )
    try:
        for is_known in known:
            if is_known:
                next(planned)
            yield {} if is_known else None
    except ServiceError as refused:
        yield from repeat({"fault": str(refused)})


KINDS: Mapping[str, Callable[[Cluster, Json], Json]] = {
    REQUEST: _request, WISH: _wish, LOAN: _loan, REVERT: _revert, CHANGES: _changes, NODES: _nodes,
    RUN_TIME: run_times.answer, starts.DRAFT: starts.of_draft, starts.CHANGED: starts.of_change,
}  # fmt: skip
TOGETHER: Mapping[str, Callable[[Cluster, Sequence[Json]], Iterator[Json | None]]] = {
    SOONER: _sooner
}
"""Those that many look at in the same minute, planned on one reading of the cluster: an answer for each
question in its place, None about what is gone."""
