"""What consolidating would free: the nodes that change, now and after, and what it costs. For operators,
who may have it done."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render

from portal.display.adding_up import hours_column
from portal.plans import asking as plans
from portal.plans.kinds import NODES, freed_of
from portal.web.frame.requests import PersonRequest, form_view
from portal.web.nodes import ordering
from portal.web.nodes.rooms import NOWHERE, Map
from portal.web.nodes.tiles import Run, Seat, runs
from portal.web.operations.mode import operated
from portal.web.overview.views import chosen_class
from scheduling.models import MILLI, Cluster, GpuClass, Node, Workload
from scheduling.services.clusters.consolidation import MOST_NODES, ConsolidationEffect, Move
from scheduling.services.explain import asking

NOT_A_NUMBER = f"Ask for 1 to {MOST_NODES} nodes, as a whole number."


@dataclass(frozen=True, slots=True)
class NodeMove:
    """One workload on its way; nodes by name."""

    work: Workload
    move: Move
    lost_hours: str
    """As shown: those of all add up."""

    @property
    def origin(self) -> str:
        return ", ".join(sorted(self.move.origin))

    @property
    def target(self) -> str:
        return ", ".join(sorted(self.move.target))


@dataclass(frozen=True, slots=True)
class Before:
    """One node that changes: its tiles now, and after the moves."""

    node: Node
    now: list[Run]
    after: list[Run]


@form_view
def consolidation(request: PersonRequest, cluster: str) -> HttpResponse:
    """The moves that free ``nodes`` more whole nodes of ``class``. Looking moves nothing; what is confirmed
    is left to the next cycle."""
    found = operated(request, cluster)
    ordered = ordering.listed(found)
    if request.headers.get("X-Weir-Live"):  # What came of orders is live; the plan is asked for.
        return render(request, "web/nodes/_ordered.html", {"ordered": ordered})
    classes = list(found.gpu_classes.all())
    chosen = chosen_class(request, classes)
    nodes = _nodes(request.GET.get("nodes", "1"))
    context: dict[str, object] = {"classes": classes, "chosen": chosen}
    context |= {"nodes": request.GET.get("nodes", "1"), "ordered": ordered}
    context["beside"] = "beside" in request.GET  # Only what is planned is taken, beside the map.
    if nodes is None:
        context |= {"fault": NOT_A_NUMBER}
    elif chosen is not None:
        context |= _answer(request, found, chosen, nodes)
        answer = context.get("answer")
        if request.method == "POST" and isinstance(answer, ConsolidationEffect):
            refused = ordering.order(request, found, chosen, answer)
            if refused is None:
                return redirect("web:consolidation", cluster=found.name)
            context |= {"refused": refused}
    bad = nodes is None or "refused" in context
    return render(request, "web/nodes/consolidation.html", context, status=400 if bad else 200)


def _nodes(text: str) -> int | None:
    """None for what is no number of nodes."""
    fits = text.isascii() and text.isdigit() and len(text) < 4
    return int(text) if fits and 1 <= int(text) <= MOST_NODES else None


def _answer(
    request: PersonRequest, cluster: Cluster, gpu_class: GpuClass, nodes: int
) -> dict[str, object]:
    question = {"gpu_class": gpu_class.name, "nodes": nodes}
    document: dict[str, Any] | None
    if request.method == "POST":
        document, waits = plans.plan_now(cluster, NODES, question), {}
    else:
        plan_state = plans.ask(cluster, NODES, question)
        document, waits = plan_state.answer, plans.context_of(plan_state)
    if document is None or "fault" in document:
        return {"fault": document and document["fault"], **waits}
    answer = freed_of(document)
    names = [*(move.workload for move in answer.moves), *answer.starts]
    rows = {asking.name_in_plan(work): work for work in asking.rows_of(cluster, names)}
    hours = hours_column([m.lost_gpu_s / 3600 for m in answer.moves], answer.lost_gpu_s / 3600)
    moving = [
        NodeMove(rows[m.workload], m, text)
        for m, text in zip(answer.moves, hours.parts, strict=True)
        if m.workload in rows
    ]
    return {
        **waits,
        "answer": answer,
        "planned_at": datetime.fromisoformat(document["at"]),
        "moving": moving,
        "lost_hours": hours.total,
        "moved": {one.work.uid for one in moving},
        "starting": [rows[name] for name in answer.starts if name in rows],
        "changed": _changed(Map(cluster, request.user, [gpu_class]), moving, answer),
        "whole_after": len(answer.whole) + len(answer.becomes_whole),
    }


def _changed(drawn: Map, moving: Sequence[NodeMove], answer: ConsolidationEffect) -> list[Before]:
    """The nodes that somebody leaves or comes to, by name."""
    names = {name for move in answer.moves for name in (*move.origin, *move.target)}
    return [
        Before(node, drawn.runs_of(node), _runs_after(drawn, node, moving))
        for node in sorted(drawn.nodes, key=lambda node: node.name)
        if node.name in names
    ]


def _runs_after(drawn: Map, node: Node, moving: Sequence[NodeMove]) -> list[Run]:
    """The tiles of ``node`` once all of ``moving`` sit where they go."""
    seats = list(drawn.seats.get((node.name, node.gpu_class_id), ()))
    owners = {h.uid: h.owner for there in drawn.seats.values() for h in there}
    after = copy.copy(node)
    for one in moving:
        uid, gpus = one.work.uid, one.work.gpus
        seats = [h for h in seats if h.uid != uid]
        change = _members(one.move.target, node) - _members(one.move.origin, node)
        after.allocated_gpus = max(0, after.allocated_gpus + change * gpus)
        if members := _members(one.move.target, node):
            owner = owners.get(uid, NOWHERE)
            seats.append(Seat(uid, one.work.name, gpus * members, bool(gpus % MILLI), owner))
    return runs(after, seats, drawn.sizes.wanted(node.gpu_class))


def _members(placement: Mapping[str, int], node: Node) -> int:
    return placement.get(node.name, 0)
