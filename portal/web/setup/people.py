"""Step 5: a team for each queue, and the first people."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect

from portal.accounts.models import Persona, User
from portal.teams import people as doors
from portal.teams.forms import MemberForm
from portal.teams.models import Team
from portal.web.frame.requests import PersonRequest
from portal.web.people.teams import give
from scheduling.models import Cluster, Queue


def people(request: PersonRequest, cluster: Cluster) -> HttpResponse | dict[str, Any]:
    act = request.POST.get("act", "")
    if act == "teams":
        _make_teams(request, cluster)
        return redirect("web:set_up_step", "people")
    form = MemberForm(
        request.POST if act == "give" else None,
        personas=list(Persona.objects.all()),
        zone=cluster.display_time_zone,
    )
    teams = Team.objects.filter(queue__cluster=cluster).select_related("queue")
    if act == "give" and form.is_valid():
        team = teams.filter(name=request.POST.get("team", "")).first()
        if team is None:
            form.add_error(None, "Choose one of the listed teams.")
        elif give(request, team, form):
            return redirect("web:set_up_step", "people")
    return {
        "teams": teams.prefetch_related("memberships__user", "memberships__persona"),
        "bare": Queue.objects.filter(cluster=cluster, team=None).count(),
        "form": form,
        "team_typed": request.POST.get("team", ""),
        "everybody": User.objects.count(),
        "faulty": bool(form.errors),
    }


@transaction.atomic
def _make_teams(request: PersonRequest, cluster: Cluster) -> None:
    """One of each queue's name; the root's are called operations."""
    for queue in Queue.objects.filter(cluster=cluster, team=None).order_by("path"):
        name = "operations" if queue.is_root else queue.name
        if Team.objects.filter(name=name).exists():
            name = f"{name} of {cluster}"
        doors.save_team(by=request.user, name=name, queue=queue)
