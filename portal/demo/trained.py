"""A learned order of the example organisation: begun before the portal serves, trained by its worker in the
background, on the two weeks that were lived and with a small budget."""

from __future__ import annotations

from scheduling.models import Cluster, LearnedOrder
from scheduling.services.errors import ServiceError
from scheduling.services.learned.training import Effort, begin

EFFORT = Effort(generations=3, population=6, replays=6, most_cpu_s=60, rivals=False)
"""Without rivals, whose loops would be compiled first."""


def train() -> None:
    """Of every cluster that has none; nothing where its past is too short, or nothing gives out by merit."""
    for cluster in Cluster.objects.all():
        if LearnedOrder.objects.filter(cluster=cluster).exists():
            continue
        try:
            begin(cluster=cluster, author="admin", effort=EFFORT)
        except ServiceError:
            continue
