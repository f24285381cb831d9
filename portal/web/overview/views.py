"""Overview and the list of queues."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.utils.functional import SimpleLazyObject

from portal.accounts.models import User
from portal.display.bar_labels import WIDTHS_PX, labels
from portal.display.division import draw, parts
from portal.display.entitlement import Figures, axis, bar
from portal.display.units import unit
from portal.selectors import overview as figures
from portal.selectors import queue as queue_figures
from portal.selectors.default_class import class_waited_for
from portal.teams.access import sees_everything, visible_queues
from portal.teams.rights import rights_of
from portal.web.frame.division import shares_of, tree_of
from portal.web.frame.own import sight_in
from portal.web.frame.requests import PersonRequest, page_view
from portal.web.frame.revision_cache import remembered
from portal.web.frame.shell import get_cluster
from portal.web.future.steps_ahead import steps_ahead
from portal.web.overview.queue_table import COLUMNS, TREE, queue_table
from portal.web.sorting import PARAMETER, Sort, heads
from scheduling.models import Cluster, GpuClass, Queue, Workload


def chosen_class(request: PersonRequest, classes: list[GpuClass]) -> GpuClass | None:
    """The class of ``?class=``, by default the first; None where the cluster has none yet.

    Raises:
        Http404: there is none of that name.
    """
    wanted = request.GET.get("class")
    chosen = next((c for c in classes if wanted in (None, "", c.name)), None)
    if chosen is None and wanted:
        raise Http404
    return chosen


def class_of_queue(
    request: PersonRequest, queue: Queue, classes: list[GpuClass]
) -> GpuClass | None:
    """The class of ``?class=``, by default the one that work below ``queue`` waits for, else the first."""
    if request.GET.get("class"):
        return chosen_class(request, classes)
    work = Workload.objects.filter(cluster=queue.cluster)
    below = work.filter(queue__in=Queue.objects.below(queue))
    waited = class_waited_for(work if queue.is_root else below, classes)
    return waited or chosen_class(request, classes)


@page_view
def overview(request: PersonRequest, cluster: str) -> HttpResponse:
    found = get_cluster(request, cluster)
    whose = sight_in(request.user, found), request.user.display_time_zone
    key = ("overview", request.get_full_path(), whose)
    parts = remembered.of(found, key, lambda: _overview(request, found))
    return render(request, "web/overview/overview.html", parts)


def _overview(request: PersonRequest, cluster: Cluster) -> dict[str, str]:
    """The lead and the cards, as whoever sees the same work gets them."""
    classes = list(cluster.gpu_classes.all())
    chosen = chosen_class(request, classes)
    capacity = remembered.of(cluster, "capacity", lambda: figures.capacity(cluster, classes))
    context = {
        "capacity": capacity,
        "sums": figures.sums(capacity),
        "waiting": remembered.of(cluster, "waiting", lambda: figures.waiting(cluster, classes)),
        "trees": [
            _tree(request, cluster, classes, one) for one in capacity if one.gpu_class == chosen
        ],
        "sees_all": sees_everything(request.user),
        "waits": figures.longest_waits(cluster, request.user),
        "evictions": figures.last_evictions(cluster, request.user),
    }
    return {
        part: render_to_string(f"web/overview/_{part}.html", context, request)
        for part in ("lead", "cards")
    }


def _tree(
    request: PersonRequest, cluster: Cluster, classes: list[GpuClass], of: figures.Capacity
) -> str:
    """The card of one class, the same for all who may see the same queues."""

    def draw_it() -> str:
        shares = shares_of(cluster).get(of.gpu_class.pk, {})
        tree = figures.tree(cluster, request.user, of, tree_of(cluster), shares)
        context = {"tree": tree, "classes": classes, "chosen": of.gpu_class}
        return render_to_string("web/overview/_tree.html", context, request)

    key = ("tree", of.gpu_class.pk, request.get_full_path(), rights_of(request.user).sight)
    return remembered.of(cluster, key, draw_it)


@page_view
def queues(request: PersonRequest, cluster: str) -> HttpResponse:
    """Every queue one may see as one table, of all classes together or of one."""
    found = get_cluster(request, cluster)
    classes = list(found.gpu_classes.all())
    chosen = chosen_class(request, classes) if request.GET.get("class") else None
    by = Sort.of(request.GET.get(PARAMETER, ""), COLUMNS, TREE)
    by = TREE if by.key == TREE.key else by
    context = {
        "table": queue_table(found, request.user, classes, chosen, by),
        "heads": heads(COLUMNS, by, request.GET),
        "classes": [(None, "All classes", _with_class(request, ""))]
        + [(one, one.name, _with_class(request, one.name)) for one in classes],
    }
    return render(request, "web/overview/queues.html", context)


def _with_class(request: PersonRequest, name: str) -> str:
    """The address's query with another class; empty for all of them."""
    query = request.GET.copy()
    query.pop("class", None)
    if name:
        query["class"] = name
    return query.urlencode()


@page_view
def queue(request: PersonRequest, cluster: str, queue: str) -> HttpResponse:
    found = get_cluster(request, cluster)
    of = get_object_or_404(visible_queues(request.user), cluster=found, name=queue)
    of.cluster = found
    classes = list(found.gpu_classes.all())
    chosen = class_of_queue(request, of, classes)
    context: dict[str, Any] = {"queue": of, "classes": classes, "chosen": chosen}
    if chosen is not None:
        context |= _entitlement(found, request.user, of, chosen)
    return render(request, "web/overview/queue.html", context)


def _entitlement(cluster: Cluster, user: User, queue: Queue, chosen: GpuClass) -> dict[str, Any]:
    """Figures, bar, division and lists of one queue and class."""
    now = cluster.now()
    tree, shares = tree_of(cluster), shares_of(cluster).get(chosen.pk, {}).values()
    division = queue_figures.division(cluster, user, chosen, shares, tree)
    share = division.share(queue)
    figures_ = figures.figures_of(share, potential=True, loan=division.loans.get(queue.pk, 0))
    on = axis([figures_])
    sums = queue_figures.sums(queue, user, chosen)
    steps = division.steps(queue)
    reach = Figures(
        share.fair_share, share.fair_share, 0, share.fair_share, 0, potential=share.potential
    )
    waterfall = axis([reach])
    zone_name = user.display_time_zone or cluster.display_time_zone
    pending = queue_figures.pending(queue, user, chosen, sums)
    running = queue_figures.running(queue, user, chosen, sums, division, now)
    return {
        "unit": unit(chosen),
        "share": share,
        "figures": figures_,
        "axis": on,
        "bar": bar(queue.name, figures_, on),
        "labels": {width: labels(figures_, on, width=width) for width in WIDTHS_PX},
        "chain": division.chain(queue)[1:-1],
        "levels": division.levels(queue),
        "parts": parts(share),
        "waterfall": waterfall,
        "steps": draw(steps, waterfall),
        "waterfall_fair": waterfall.percent(share.fair_share),
        "waterfall_potential": waterfall.percent(share.potential),
        "pending": pending,
        "planned": steps_ahead(pending.rows, running.rows, share, now, zone_name),
        "running": running,
        # Weeks of rows: read for the page, not for each of its refreshes.
        "waits": SimpleLazyObject(partial(queue_figures.waits, queue, chosen, now)),
        "lead": SimpleLazyObject(partial(queue_figures.lead, cluster, queue, now)),
        "history": SimpleLazyObject(
            partial(queue_figures.history, queue, chosen, now, cluster.display_time_zone)
        ),
        "evictions": queue_figures.evictions(cluster, queue, user, chosen, tree),
    }
