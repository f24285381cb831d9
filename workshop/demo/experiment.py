"""An experiment and a kept what-if of the example organisation, so that the policy lab is not empty: written
down once the portal serves, lived by its worker in the background."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, time, timedelta

from portal.display.format import zone
from scheduling.models import Cluster, Study, StudyKind
from scheduling.services.errors import ServiceError
from scheduling.services.studies import doors, what_if
from scheduling.services.studies.experiments.asking import Question, ask
from workshop.demo.organisation import H100

DAYS, WARM_UP, REPLAYS = 2, timedelta(days=1), 8
"""About a second of one core for each replay of a variant."""
VARIANTS = (
    {
        "name": "Reclaim at once",
        "changes": [{"kind": "policy", "setting": "preemption_delay_s", "value": 0}],
    },
    {"name": "4 nodes more", "changes": [{"kind": "capacity", "gpu_class": H100, "nodes": 4}]},
)
WONDERED = [{"kind": "capacity", "gpu_class": H100, "nodes": 2}]


def begin() -> None:
    """Of every cluster that has none; nothing where its past is too short."""
    for cluster in Cluster.objects.all():
        studies = Study.objects.filter(cluster=cluster)
        if not studies.filter(kind=StudyKind.REPLAY).exists():
            _wonder(cluster)
        if not studies.filter(kind=StudyKind.EXPERIMENT).exists():
            _begin(cluster)


def _wonder(cluster: Cluster) -> None:
    """What two nodes more would do, which the admin keeps."""
    with suppress(ServiceError):
        study = what_if.ask(cluster=cluster, document=WONDERED, author="admin", days=DAYS)
        doors.keep(study)
        doors.start(study)


def _begin(cluster: Cluster) -> None:
    tz = zone(cluster.display_time_zone)
    end = datetime.combine(cluster.now().astimezone(tz).date(), time(), tzinfo=tz)
    question = Question(
        name="Patience and h100 supply",
        begin=end - timedelta(days=DAYS),
        end=end,
        warm_up=WARM_UP,
        replays=REPLAYS,
        variants=VARIANTS,
    )
    try:
        ask(cluster=cluster, author="admin", question=question)
    except ServiceError:
        return
