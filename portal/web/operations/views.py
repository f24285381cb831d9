"""How Weir stands to the cluster: its mode, and the guardrails it keeps there. For operators."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.teams.access import is_operator
from portal.web.requests import PersonRequest
from portal.web.shell import get_cluster
from scheduling.models import Cluster, ClusterMode, Guardrail, Standing

MOST = 200
"""Rows of a table; drift that long has one cause."""
MEANING = {
    ClusterMode.OBSERVE: "Weir plans and shows what it would do, and writes nothing to the cluster.",
    ClusterMode.ENFORCE: "Weir admits and evicts work, and keeps the guardrails in step.",
    ClusterMode.PAUSED: "Weir leaves the cluster alone. Nothing is planned or compared.",
}
TONES = {
    Standing.IN_STEP: ("ok", "finished"),
    Standing.MISSING: ("warn", "pending"),
    Standing.DRIFTED: ("warn", "pending"),
    Standing.UNWANTED: ("neutral", "pending"),
    Standing.REFUSED: ("err", "error"),
}
"""Colour and glyph of a badge."""


@dataclass(frozen=True)
class Row:
    rail: Guardrail
    tone: str
    glyph: str


@dataclass(frozen=True)
class Kind:
    """Objects of a kind: how many of how many stand as they should."""

    name: str
    in_step: int
    total: int


@login_required
@require_safe
def cluster(request: PersonRequest, cluster: str) -> HttpResponse:
    found = get_cluster(request, cluster)
    if not is_operator(request.user):
        raise Http404
    rails = list(found.guardrails.all())
    out = [rail for rail in rails if rail.standing != Standing.IN_STEP]
    context = {
        "cluster": found,
        "meaning": MEANING[ClusterMode(found.mode)],
        "where": _where(found),
        "kinds": _kinds(rails),
        "rows": [Row(rail, *TONES[Standing(rail.standing)]) for rail in out[:MOST]],
        "out": len(out),
        "now": timezone.now(),
    }
    return render(request, "web/operations/cluster.html", context)


def _kinds(rails: list[Guardrail]) -> list[Kind]:
    total = Counter(rail.kind for rail in rails)
    in_step = Counter(rail.kind for rail in rails if rail.standing == Standing.IN_STEP)
    return [Kind(name, in_step[name], total[name]) for name in sorted(total)]


def _where(cluster: Cluster) -> str:
    """How the cluster is reached, without anything that opens it."""
    if cluster.api_url:
        return cluster.api_url
    if cluster.kubeconfig:
        return f"{cluster.context or 'the current context'} of {cluster.kubeconfig}"
    return "the service account of Weir's pod"
