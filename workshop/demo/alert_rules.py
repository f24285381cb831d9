"""Alert rules of the example organisation, beside those that every cluster begins with."""

from __future__ import annotations

from portal.accounts.models import User
from portal.alerts.models import Figure, Tell
from portal.alerts.rules import HOUR, Wish, save
from scheduling.models import Cluster
from workshop.demo.organisation import A100, H100


def watch(cluster: Cluster) -> None:
    admin = User.objects.get(username="admin")
    queues = {queue.name: queue for queue in cluster.queues.all()}
    classes = {one.name: one for one in cluster.gpu_classes.all()}
    for wish in (
        Wish(
            Figure.LONGEST_WAIT, 12 * HOUR, queue=queues["assistant"], tell=Tell.LEADS, escalate_s=4 * HOUR,
        ),
        Wish(Figure.WAIT_P90, 2 * HOUR, queue=queues["vision"], gpu_class=classes[A100], tell=Tell.LEADS),
        Wish(Figure.WAIT_P90, 8 * HOUR, queue=queues["alignment"], gpu_class=classes[H100], tell=Tell.LEADS),
    ):  # fmt: skip
        save(by=admin, cluster=cluster, wish=wish)
