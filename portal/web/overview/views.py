"""Overview and the list of queues."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from portal.teams.access import visible_queues
from portal.web.overview import figures
from portal.web.shell import get_cluster
from scheduling.models import Cluster, GpuClass


def classes_and_chosen(request: HttpRequest, cluster: Cluster) -> tuple[list[GpuClass], GpuClass]:
    """The cluster's GPU classes and the one of ``?class=``, by default the first.

    Raises:
        Http404: the cluster has none of that name, or none at all.
    """
    classes = list(cluster.gpu_classes.all())
    wanted = request.GET.get("class")
    chosen = next((c for c in classes if wanted in (None, "", c.name)), None)
    if chosen is None:
        raise Http404
    return classes, chosen


@login_required
@require_safe
def overview(request: HttpRequest, cluster: str) -> HttpResponse:
    found = get_cluster(request, cluster)
    classes, chosen = classes_and_chosen(request, found)
    capacity = figures.capacity(found, classes)
    of_chosen = next(one for one in capacity if one.gpu_class == chosen)
    context = {
        "capacity": capacity,
        "sums": figures.sums(capacity),
        "waiting": figures.waiting(found),
        "tree": figures.tree(found, request.user, chosen, of_chosen),
        "classes": classes,
        "chosen": chosen,
        "waits": figures.longest_waits(found, request.user),
        "evictions": figures.last_evictions(found, request.user),
    }
    return render(request, "web/overview/overview.html", context)


@login_required
@require_safe
def queues(request: HttpRequest, cluster: str) -> HttpResponse:
    """The tree of every class, one card each."""
    found = get_cluster(request, cluster)
    classes = list(found.gpu_classes.all())
    capacity = figures.capacity(found, classes)
    trees = [figures.tree(found, request.user, one.gpu_class, one) for one in capacity]
    return render(request, "web/overview/queues.html", {"trees": trees, "classes": classes})


@login_required
@require_safe
def queue(request: HttpRequest, cluster: str, queue: str) -> HttpResponse:
    found = get_cluster(request, cluster)
    of = get_object_or_404(visible_queues(request.user), cluster=found, name=queue)
    classes, chosen = classes_and_chosen(request, found)
    context = {"queue": of, "classes": classes, "chosen": chosen}
    return render(request, "web/overview/queue.html", context)
