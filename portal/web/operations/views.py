"""How Weir stands to the cluster: the guardrails it keeps there, and its mode. For operators."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from portal.audit.reading import may_audit
from portal.streams.standing import standings
from portal.teams.access import is_admin
from portal.web.frame.requests import PersonRequest, page_view
from portal.web.operations.drawing import last_hours
from portal.web.operations.health import changed_today, health_of
from portal.web.operations.hours import hours_of
from portal.web.operations.mode import MEANING, choices, last_set, operated
from portal.web.operations.models import models_of
from portal.web.operations.recent import recent
from scheduling.models import Cluster, ClusterMode, Guardrail, Standing
from scheduling.models.credentials import is_kept
from scheduling.services.worker.lanes import lanes_of

MOST = 200
"""Rows of a table; drift that long has one cause."""
TONES = {
    Standing.IN_STEP: ("ok", "finished"),
    Standing.MISSING: ("warn", "pending"),
    Standing.DRIFTED: ("warn", "pending"),
    Standing.UNWANTED: ("neutral", "pending"),
    Standing.REFUSED: ("err", "error"),
}
"""Colour and glyph of a badge."""


@dataclass(frozen=True)
class RailRow:
    rail: Guardrail
    tone: str
    glyph: str


@dataclass(frozen=True)
class RailsOfKind:
    """Objects of a kind: how many of how many stand as they should."""

    name: str
    in_step: int
    total: int


@page_view
def cluster(request: PersonRequest, cluster: str) -> HttpResponse:
    found = operated(request, cluster)
    rails = list(found.guardrails.all())
    lanes = lanes_of(found)
    hours = hours_of(found)
    out = [rail for rail in rails if rail.standing != Standing.IN_STEP]
    context = {
        "administers": is_admin(request.user),
        "cluster": found,
        "meaning": MEANING[ClusterMode(found.mode)],
        "where": _where(found),
        "modes": choices(found),
        "set": last_set(found),
        "health": health_of(found, lanes),
        "lanes": lanes,
        "streams": standings(),
        "hours": hours,
        "figure": None if hours.is_empty else last_hours(hours, found.display_time_zone),
        "cycles": recent(found, request.user),
        "models": models_of(found),
        "changed": changed_today(found, request.user),
        "may_audit": may_audit(request.user),
        "every_mode": ClusterMode.choices,
        "kinds": _kinds(rails),
        "rows": [RailRow(rail, *TONES[Standing(rail.standing)]) for rail in out[:MOST]],
        "out": len(out),
        "now": timezone.now(),
    }
    return render(request, "web/operations/cluster.html", context)


def _kinds(rails: list[Guardrail]) -> list[RailsOfKind]:
    total = Counter(rail.kind for rail in rails)
    in_step = Counter(rail.kind for rail in rails if rail.standing == Standing.IN_STEP)
    return [RailsOfKind(name, in_step[name], total[name]) for name in sorted(total)]


def _where(cluster: Cluster) -> str:
    """How the cluster is reached, without anything that opens it."""
    if cluster.api_url:
        return cluster.api_url
    if cluster.kubeconfig:
        place = "a kubeconfig that is kept" if is_kept(cluster.kubeconfig) else cluster.kubeconfig
        return f"{cluster.context or 'the current context'} of {place}"
    return "the service account of Weir's pod"
