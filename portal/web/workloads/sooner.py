"""What would start a waiting workload sooner: each change computed by planning again."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from portal.selectors.ends import elsewhere
from portal.teams.access import submittable_queues
from portal.teams.reading import reader_of
from portal.teams.submission import usable_priority_classes
from portal.web.frame.requests import PersonRequest
from portal.web.frame.shell import get_cluster
from portal.web.workloads.detail import seen
from scheduling.models import Cluster, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.explain.why import what_would_start
from scheduling.services.words.told import answers


@login_required
@require_safe
def sooner(request: PersonRequest, cluster: str, uid: str) -> HttpResponse:
    """The fragment that the workload page loads once it stands."""
    found = get_cluster(request, cluster)
    rows = seen(request.user, found).select_related("start_forecast__gpu_class")
    work = rows.filter(uid=uid).first()
    if work is None or not work.is_waiting:
        raise Http404
    shown = {"cluster": found, "work": work, **_answer(request, found, work)}
    return render(request, "web/workloads/_sooner_found.html", shown)


def _answer(request: PersonRequest, cluster: Cluster, work: Workload) -> dict[str, object]:
    user = request.user
    queues = list(submittable_queues(user).filter(cluster=cluster))
    classes = {
        priority.name for queue in queues for priority in usable_priority_classes(user, queue)
    }
    try:
        found = what_would_start(
            work, queues=[queue.name for queue in queues], priority_classes=sorted(classes)
        )
    except ServiceError as error:
        return {"fault": str(error)}
    told = answers(found, work, reader_of(request))
    names = [one["value"] for one in told if one["change"] == "gpu_class"]
    ends = elsewhere(work, names, cluster.now())
    return {"found": [(one, ends.get(one["value"])) for one in told]}
