"""The ways to give out what is above nominal, and what each would have meant for the last weeks."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from portal.web.frame.requests import PersonRequest
from portal.web.studies.compared import told
from scheduling.models import Cluster
from scheduling.services.errors import ServiceError
from scheduling.services.policy.sharing import SAID, called
from scheduling.services.studies import doors
from scheduling.services.studies.experiments.results import FigureRow
from scheduling.services.studies.experiments.sharing import (
    JUDGED,
    KEYS,
    ask_of_sharing,
    meant,
)

Json = dict[str, Any]
HEADS = dict(
    zip(KEYS, ("Average wait", "P90 wait", "Later than on own quota", "Evictions"), strict=True)
)
"""Of the figures by which the ways are told apart."""


def each_way(cluster: Cluster) -> Json:
    """Names for the page: each way with its sentence, and its figures as far as it was lived."""
    asked = meant(cluster)
    ways = [
        {
            "name": called(way),
            "said": said,
            "is_in_force": way.value == cluster.sharing,
            "figures": _figures(asked.rows[way]) if asked else [],
        }
        for way, said in SAID.items()
    ]
    return {"ways": ways, "meant": asked, "days": JUDGED.days, "heads": HEADS.values()}


def _figures(row: FigureRow) -> list[tuple[str, str]]:
    """Heads and figures, in the order of ``HEADS``; none where nothing is lived yet."""
    cells = [(head, row.cell(key)) for key, head in HEADS.items()]
    return [(head, told(one.figure, one.mean)) for head, one in cells if one.mean is not None]


def live_each_way(request: PersonRequest, cluster: Cluster) -> HttpResponse:
    """Have the last weeks lived in each way; on to that experiment."""
    try:
        study = ask_of_sharing(cluster, request.user.get_username())
    except ServiceError as error:
        messages.error(request, str(error))
        return redirect("web:policy", cluster.name)
    doors.start(study)
    return redirect("web:study", cluster=cluster.name, pk=study.pk)
