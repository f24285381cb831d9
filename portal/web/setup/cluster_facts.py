"""Step 2: what stands and runs on the cluster, and what it lacks; nothing of it is changed."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect

from portal.display.units import gpus_each
from portal.web.frame.requests import PersonRequest
from scheduling.models import MILLI, Cluster, Guardrail
from scheduling.services.clusters import discovery
from scheduling.services.clusters.add import find_classes
from scheduling.services.clusters.checkup import check
from scheduling.services.clusters.gaps import Grade, Item
from scheduling.services.errors import ServiceError


def context_of(request: PersonRequest, cluster: Cluster) -> HttpResponse | dict[str, Any]:
    if request.method == "POST":
        # Nodes that came since bring classes with them.
        find_classes(cluster)
        return redirect("web:set_up_step", "classes")
    items = check(cluster)
    wanting = [item for item in items if item.grade is not Grade.GOOD]
    found = look(cluster)
    return {
        "seen": found,
        "whole": _whole(found) if found else None,
        "checks": [*wanting, *(item for item in items if item.grade is Grade.GOOD)],
        "wanting": len(wanting),
        "good": len(items) - len(wanting),
        "written": Guardrail.objects.filter(cluster=cluster, standing="in_step").count(),
    }


def _whole(seen: discovery.Discovery) -> dict[str, float]:
    """Milli-GPU over all classes, as every page sums them: seven slices are one GPU."""
    each = [(one, MILLI * float(gpus_each(one.gpu_class))) for one in seen.classes]
    names = ("gpus", "usage", "down")
    return {name: sum(getattr(one, name) * part for one, part in each) for name in names}


def look(cluster: Cluster) -> discovery.Discovery | None:
    """None where the cluster does not answer: the checks above say why."""
    try:
        return discovery.look(cluster)
    except ServiceError:
        return None


def lacks(items: list[Item]) -> list[Item]:
    return [item for item in items if item.grade is Grade.MISSING]
