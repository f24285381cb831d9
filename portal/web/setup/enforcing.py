"""Steps 6 and 7: what Weir would have done so far, and the switch."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Sum
from django.http import HttpResponse
from django.shortcuts import redirect

from portal.web.frame.requests import PersonRequest
from portal.web.operations.mode import effects, outside_gpus
from portal.web.setup.looking import lacks
from scheduling.models import Cluster, ClusterMode, Cycle, Decision
from scheduling.services.clusters import add as clusters
from scheduling.services.clusters.checkup import check

MOST = 20


def would(request: PersonRequest, cluster: Cluster) -> HttpResponse | dict[str, Any]:
    if request.method == "POST":
        return redirect("web:set_up_step", "enforce")
    cycles = Cycle.objects.filter(cluster=cluster)
    decisions = Decision.objects.filter(cycle__cluster=cluster).select_related("workload__queue")
    return {
        "last": cycles.first(),
        "acts": cycles.aggregate(admitted=Sum("admitted"), evicted=Sum("evicted")),
        "decisions": decisions.order_by("-pk")[:MOST],
        "counts": {
            "waiting": cluster.workloads.filter(state__in=("pending", "requeued")).count(),
            "holding": cluster.workloads.filter(state__in=("admitted", "running")).count(),
            "outside_gpus": outside_gpus(cluster),
            "outside": cluster.workloads.filter(queue=None).exclude(state="finished").count(),
        },
    }


def enforce(request: PersonRequest, cluster: Cluster) -> HttpResponse | dict[str, Any]:
    if request.method == "POST":
        clusters.set_mode(cluster, ClusterMode.ENFORCE, author=request.user)
        messages.success(request, f"{cluster} is enforced from the next cycle on.")
        return redirect("web:overview", cluster.name)
    trial = Cluster(
        **{f.attname: getattr(cluster, f.attname) for f in cluster._meta.concrete_fields}
    )
    trial.mode = ClusterMode.ENFORCE  # asked as it would be enforced; not saved
    return {"lacking": lacks(check(trial)), "effects": list(effects(cluster, ClusterMode.ENFORCE))}
