"""A queue's future: its runs, its pending work and its capacity on one axis of time."""

from __future__ import annotations

from django.db.models import F, Sum
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render

from portal.display.units import unit
from portal.teams.access import is_operator, visible_queues
from portal.web.frame.requests import PersonRequest, page_view
from portal.web.frame.shell import get_cluster
from portal.web.future.figures import future
from portal.web.overview.views import class_of_queue
from scheduling.models import Cluster, GpuClass, Node


@page_view
def queue_future(request: PersonRequest, cluster: str, queue: str) -> HttpResponse:
    found = get_cluster(request, cluster)
    of = get_object_or_404(visible_queues(request.user), cluster=found, name=queue)
    classes = list(found.gpu_classes.all())
    chosen = class_of_queue(request, of, classes)
    context = {
        "cluster": found,
        "queue": of,
        "classes": classes,
        "chosen": chosen,
        "is_operator": is_operator(request.user),
    }
    if chosen is not None:
        shown = future(found, of, request.user, chosen, _ready(found, chosen))
        context |= {
            "future": shown,
            "unit": unit(chosen),
            "ticks": shown.axis.ticks(found.display_time_zone),
        }
    return render(request, "web/future/future.html", context)


def _ready(cluster: Cluster, gpu_class: GpuClass) -> float:
    ready = Node.objects.filter(cluster=cluster, gpu_class=gpu_class, ready=True)
    return float(ready.aggregate(gpus=Sum(F("gpus") - F("foreign_gpus")))["gpus"] or 0)
