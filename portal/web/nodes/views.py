"""Nodes as racks of tiles, and a page for each node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.http import Http404, HttpResponse
from django.shortcuts import render

from portal.display.units import unit
from portal.selectors.overview import sums
from portal.teams.access import is_operator, visible_workloads
from portal.web.frame.requests import PersonRequest, page_view
from portal.web.frame.shell import get_cluster
from portal.web.nodes.ages import WORDS
from portal.web.nodes.rooms import Map, Room
from portal.web.nodes.states import STATES, NodeState, causes, state_of
from portal.web.overview.views import chosen_class
from scheduling.models import GpuClass, Node, Workload
from scheduling.models.workloads import HOLDING

COLOURS = {"": "By department", "workload": "By workload", "age": "By age"}


@page_view
def nodes(request: PersonRequest, cluster: str) -> HttpResponse:
    """Every node by class and topology domain; ``class``, ``domain`` and ``state`` narrow what is drawn,
    which ``colour`` colours by workload or by how long the work has run."""
    found = get_cluster(request, cluster)
    classes = list(found.gpu_classes.all())
    chosen = chosen_class(request, classes) if request.GET.get("class") else None
    domain = request.GET.get("domain", "")
    state = request.GET.get("state", "")
    colour = request.GET.get("colour", "")
    if (state and state not in STATES) or colour not in COLOURS:
        raise Http404
    drawn = Map(found, request.user, [chosen] if chosen else classes)
    rooms = drawn.rooms(domain=domain, state=state)
    context = {
        "rooms": rooms,
        "departments": drawn.departments(rooms),
        "sums": sums(room.capacity for room in rooms),
        "node_count": sum(room.capacity.nodes for room in rooms),
        "domain_count": drawn.domain_count,
        "drawn_count": sum(room.matching for room in rooms) if domain or state else None,
        "level": drawn.level,
        "classes": classes,
        "chosen": chosen,
        "domain": domain,
        "state": STATES.get(state),
        "states": [Choice(*each, _address(request, state=each[0].key)) for each in drawn.states()],
        "any_state": _address(request, state=""),
        "ages": tuple(enumerate(WORDS)) if colour == "age" else (),
        "colour": colour,
        "colours": [(one, words, _address(request, colour=one)) for one, words in COLOURS.items()],
        "most_fragmented": _most_fragmented(rooms),
        "operates": is_operator(request.user),
    }
    return render(request, "web/nodes/nodes.html", context)


def _most_fragmented(rooms: Sequence[Room]) -> GpuClass | None:
    """The class that gains most by consolidating."""
    room = max(rooms, key=lambda room: room.capacity.fragmented, default=None)
    return room.gpu_class if room else None


@dataclass(frozen=True, slots=True)
class Choice:
    """One entry of the filter: a state, the machines in it, and the address that shows them."""

    state: NodeState
    nodes: int
    address: str


def _address(request: PersonRequest, **changed: str) -> str:
    """This page with what is ``changed``, and the other filters as they are."""
    query = request.GET.copy()
    for name, value in changed.items():
        query.pop(name, None)
        if value:
            query[name] = value
    return f"?{query.urlencode()}"


@page_view
def node(request: PersonRequest, cluster: str, node: str) -> HttpResponse:
    """One machine: its state, what it offers of each class, and the work on it."""
    found = get_cluster(request, cluster)
    parts = list(
        Node.objects.filter(cluster=found, name=node).select_related("gpu_class", "node_pool")
    )
    if not parts:
        raise Http404
    drawn = Map(found, request.user, [part.gpu_class for part in parts])
    uids = {h.uid for part in parts for h in drawn.seats.get((part.name, part.gpu_class_id), ())}
    work = visible_workloads(request.user).filter(cluster=found, uid__in=uids, state__in=HOLDING)
    context = {
        "name": node,
        "parts": [(part, drawn.runs_of(part)) for part in parts],
        "around": [
            parts[0].topology[level] for level in drawn.levels[:-1] if level in parts[0].topology
        ],
        "domain": drawn.domain_of(parts[0]),
        "state": max((state_of(part) for part in parts), key=list(STATES.values()).index),
        "causes": causes(parts, tells_all=is_operator(request.user)),
        "end": _end(work) if any(not part.ready for part in parts) else None,
        "slices": [part for part in parts if unit(part.gpu_class) == "slices"],
        "work": [
            (one, one.gpus * one.placement.get(node, 0), one.pods_by_node.get(node, 0))
            for one in work.select_related("queue", "gpu_class").order_by("queue__path", "name")
        ],
    }
    return render(request, "web/nodes/node.html", context)


@dataclass(frozen=True, slots=True)
class DrainEnd:
    """When all ``work`` on a closed node has ended: at ``latest``, but for those ``without_limit``."""

    work: int
    latest: datetime | None
    without_limit: int


def _end(work: Iterable[Workload]) -> DrainEnd:
    """By the run-time limits of ``work``."""
    ends = [
        one.started_at + timedelta(seconds=one.run_time_limit_s)
        for one in work
        if one.started_at and one.run_time_limit_s
    ]
    total = len(list(work))
    return DrainEnd(total, max(ends, default=None), total - len(ends))
