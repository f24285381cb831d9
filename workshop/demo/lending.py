"""Loans of the example organisation: one runs, one is offered to all and asked for."""

from __future__ import annotations

from datetime import timedelta

from portal.accounts.models import User
from portal.approvals.loans import doors
from scheduling.models import MILLI, Cluster
from workshop.demo.organisation import H100, L4

FOR = timedelta(days=30)
NOTICE_H = 24
LENT = 3 * MILLI
"""What robotics has left of its four h100 once it gives one to R-4 (``asked``): its lead can consent."""


def lend(cluster: Cluster) -> None:
    """Speech lends robotics slices of its l4, and search asks for what robotics offers of its h100."""
    lead, admin = (User.objects.get(username=name) for name in ("lead", "admin"))
    queues = {queue.name: queue for queue in cluster.queues.select_related("cluster")}
    classes = {one.name: one for one in cluster.gpu_classes.all()}
    until = cluster.now() + FOR
    running = doors.propose(
        by=lead, lender=queues["speech"], borrower=queues["robotics"], gpu_class=classes[L4],
        gpus=2 * MILLI, until=until, notice_h=NOTICE_H, reason="Arm simulation until the trade fair",
        asks=False,
    )  # fmt: skip
    doors.consent(by=lead, loan=running)
    offer = doors.offer_to_all(
        by=lead, lender=queues["robotics"], gpu_class=classes[H100], gpus=LENT, until=until,
        notice_h=NOTICE_H,
    )  # fmt: skip
    doors.propose(
        by=admin, lender=queues["robotics"], borrower=queues["search"], gpu_class=classes[H100],
        gpus=LENT, until=until, notice_h=NOTICE_H, reason="Distillation of the new ranker",
        asks=True, offer=offer,
    )  # fmt: skip
