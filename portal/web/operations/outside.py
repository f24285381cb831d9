"""Work that runs without a queue: who has it, what it holds, and the person's decision that brings it in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render

from portal.display.format import counted
from portal.teams.people import named_person
from portal.web.frame.requests import PersonRequest, acted, form_view
from portal.web.operations.mode import operated
from scheduling.models import Cluster, ClusterMode
from scheduling.services.clusters.adopting import adopt
from scheduling.services.clusters.outside import Outside, look
from scheduling.services.errors import ServiceError

MOST = 300
"""Rows of one page: what is adopted makes room for the rest."""


@dataclass(frozen=True, slots=True)
class OutsideGroup:
    """What one person has in one namespace; ``user`` is empty of what names nobody."""

    namespace: str
    user: str
    work: Sequence[Outside]

    @property
    def gpus(self) -> int:
        return sum(one.gpus for one in self.work)

    @property
    def label(self) -> str:
        """What is written to those that a label brings in; empty where it brings none."""
        return next((one.label for one in self.work if one.line), "")


@form_view
def outside(request: PersonRequest, cluster: str) -> HttpResponse:
    found = operated(request, cluster)
    if request.method == "POST":
        _adopt(request, found)
        return redirect("web:outside", found.name)
    try:
        every, fault = look(found), ""
    except ServiceError as refused:
        every, fault = [], str(refused)
    shown = {
        "cluster": found,
        "groups": list(grouped(every[:MOST])),
        "every": len(every),
        "gpus": sum(one.gpus for one in every),
        "more": max(0, len(every) - MOST),
        "fault": fault,
        "may_adopt": found.mode != ClusterMode.ENFORCE,
        "accounts": settings.WEIR_ACCOUNTS_NAMESPACE,
    }
    return render(request, "web/operations/outside.html", shown)


def grouped(work: Sequence[Outside]) -> Iterator[OutsideGroup]:
    """By namespace and person; within them what holds most first."""
    ordered = sorted(work, key=lambda one: (one.namespace, one.user))
    for (space, user), rows in groupby(ordered, key=lambda one: (one.namespace, one.user)):
        yield OutsideGroup(space, user, list(rows))


def _adopt(request: PersonRequest, cluster: Cluster) -> None:
    uids = set(request.POST.getlist("work"))
    if not uids:
        messages.error(request, "Nothing is chosen. Tick what is to come into its queue.")
        return
    typed = request.POST.get("owner", "").strip()
    acted(
        request,
        lambda: adopt(cluster, uids, owner=named_person(typed, field="owner"), author=request.user),
        lambda made: (
            f"{counted(len(made), 'workload')} labelled. The next cycle counts "
            f"{'it' if len(made) == 1 else 'them'} in the queue."
        ),
    )
