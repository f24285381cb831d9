"""What would start a waiting workload sooner: each change computed by planning again."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from portal.selectors import sooner as selectors
from portal.selectors.ends import elsewhere
from portal.web.frame.requests import PersonRequest
from portal.web.frame.shell import get_cluster
from portal.web.workloads.detail import seen
from scheduling.models import Workload
from scheduling.services.errors import ServiceError


@login_required
@require_safe
def sooner(request: PersonRequest, cluster: str, uid: str) -> HttpResponse:
    """The fragment that the workload page loads once it stands."""
    found = get_cluster(request, cluster)
    rows = seen(request.user, found).select_related("start_forecast__gpu_class")
    work = rows.filter(uid=uid).first()
    if work is None or not work.is_waiting:
        raise Http404
    shown = {"cluster": found, "work": work, **_answer(request, work)}
    return render(request, "web/workloads/_sooner_found.html", shown)


def _answer(request: PersonRequest, work: Workload) -> dict[str, object]:
    try:
        told = selectors.sooner(request.user, work)
    except ServiceError as error:
        return {"fault": str(error)}
    names = [one["value"] for one in told if one["change"] == "gpu_class"]
    ends = elsewhere(work, names, work.cluster.now())
    return {"found": [(one, ends.get(one["value"])) for one in told]}
