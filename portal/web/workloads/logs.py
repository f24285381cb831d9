"""Log and events of a workload: fragments that its page loads once it stands, asked of the cluster."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import render

from portal.selectors.logs import reads_as
from portal.web.frame.requests import PersonRequest, page_view
from portal.web.frame.shell import get_cluster
from portal.web.workloads.detail import visible
from scheduling.models import Workload
from scheduling.services.errors import ServiceError
from scheduling.services.workloads import logs as service


@page_view
def log(request: PersonRequest, cluster: str, uid: str) -> HttpResponse:
    """The last lines of one container."""
    work = _work(request, cluster, uid)
    query = request.GET
    shown: dict[str, object] = {"cluster": work.cluster, "work": work}
    try:
        shown["log"] = service.log(
            work,
            user=reads_as(request.user, work),
            pod=query.get("pod", ""),
            container=query.get("container", ""),
            previous=query.get("previous") == "1",
        )
    except ServiceError as error:
        shown["fault"] = error
    return render(request, "web/workloads/_log_read.html", shown)


@page_view
def events(request: PersonRequest, cluster: str, uid: str) -> HttpResponse:
    """What the cluster says happened to the workload and to its first pod that failed, or else runs."""
    work = _work(request, cluster, uid)
    shown: dict[str, object] = {"cluster": work.cluster, "work": work}
    try:
        shown["events"] = service.events(work, user=reads_as(request.user, work))
    except ServiceError as error:
        shown["fault"] = error
    return render(request, "web/workloads/_events_read.html", shown)


def _work(request: PersonRequest, cluster: str, uid: str) -> Workload:
    """Raises Http404 for what the person may not see."""
    found = get_cluster(request, cluster)
    work = visible(request.user, found).select_related("queue__parent").filter(uid=uid).first()
    if work is None:
        raise Http404
    return work
