"""What would start a waiting workload sooner: each change computed by planning again."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from portal.accounts.models import User
from portal.teams.access import submittable_queues
from portal.teams.submission import personas_at, priority_classes_of
from portal.web.requests import PersonRequest
from portal.web.shell import get_cluster
from portal.web.workloads.detail import seen
from scheduling.models import Cluster, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.explain import what_would_start


@login_required
@require_safe
def sooner(request: PersonRequest, cluster: str, uid: str) -> HttpResponse:
    """The fragment that the workload page loads once it stands."""
    found = get_cluster(request, cluster)
    work = seen(request.user, found).filter(uid=uid).first()
    if work is None or not work.is_waiting:
        raise Http404
    shown = {"cluster": found, "work": work, **_answer(request.user, found, work)}
    return render(request, "web/workloads/_sooner_found.html", shown)


def _answer(user: User, cluster: Cluster, work: Workload) -> dict[str, object]:
    queues = list(submittable_queues(user).filter(cluster=cluster))
    classes = {
        c.name
        for queue in queues
        for persona in personas_at(user, queue)
        for c in priority_classes_of(persona)
    }
    try:
        found = what_would_start(
            work, queues=[queue.name for queue in queues], priority_classes=sorted(classes)
        )
    except ServiceError as error:
        return {"fault": str(error)}
    return {"found": found}
