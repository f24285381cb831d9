"""SLOs of waits of the example organisation, and the studies of capacity that its worker makes at first.

Together they take at most ``MOST_CPU_S`` of one core: a week instead of a month, and few rungs, so that each
has the replays that a figure rests on.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from portal.accounts.models import User
from scheduling.models import Cluster, Study, StudyKind
from scheduling.services.clusters.classes import save_gpu_class
from scheduling.services.errors import ServiceError
from scheduling.services.studies.capacity.asking import ask
from workshop.demo.organisation import A100, H100, L4, MIG

SLO_MIN = {H100: 80, A100: 120, MIG: 60, L4: 45}
DAYS = 7
STEPS = (2, 4)
"""Up alone: the question is how much is missing."""
EARLIER_CPU_S, NEWEST_CPU_S = 25, 95
MOST_CPU_S = EARLIER_CPU_S + NEWEST_CPU_S


def promise(cluster: Cluster) -> None:
    """How long work of each class may wait."""
    admin = User.objects.get(username="admin")
    for gpu_class in cluster.gpu_classes.all():
        values = {"wait_slo_s": 60 * SLO_MIN[gpu_class.name]}
        save_gpu_class(cluster=cluster, values=values, author=admin, gpu_class=gpu_class)


def study(cluster: Cluster) -> None:
    """One of the week before the last, to be held against that, and one of the last week; none where there
    is one, or too little is known."""
    if Study.objects.filter(cluster=cluster, kind=StudyKind.CAPACITY).exists():
        return
    now = cluster.now()
    with suppress(ServiceError):
        ask(
            cluster=cluster, author="", days=DAYS, steps=(), most_cpu_s=EARLIER_CPU_S,
            end=now - timedelta(days=DAYS),
        )  # fmt: skip
        ask(cluster=cluster, author="", days=DAYS, steps=STEPS, most_cpu_s=NEWEST_CPU_S, end=now)
