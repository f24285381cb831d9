"""What its lead and its admin do in a demo beside requests: edits of quotas, of which time shows what came,
and an alert that somebody looks after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from portal.accounts.models import User
from portal.alerts import watching
from portal.alerts.models import Figure, Firing
from portal.alerts.rules import acknowledge
from portal.approvals.edits import save
from scheduling.models import Cluster, QuotaChange
from scheduling.services.queues.faults import QuotaCell
from scheduling.services.queues.values import Field
from workshop.demo.organisation import H100


@dataclass(frozen=True, slots=True)
class Edit:
    by: str
    queue: str
    reason: str
    cells: Sequence[QuotaCell]
    lasts: timedelta | None = None


EDITS = (
    Edit(
        "lead", "language", "alignment waits for two gangs of 16: its limit holds one and a half.",
        (QuotaCell("alignment", H100, Field.BORROWING_LIMIT, Decimal(20)),),
    ),
    Edit(
        "admin", "platform", "Two more for the chat service until the new rack stands.",
        (
            QuotaCell("inference", H100, Field.NOMINAL, Decimal(18)),
            QuotaCell("ci", H100, Field.NOMINAL, Decimal(6)),
        ),
        lasts=timedelta(days=14),
    ),
)  # fmt: skip


def edit_quotas(cluster: Cluster) -> None:
    """Those that are not made yet."""
    known = set(QuotaChange.objects.filter(cluster=cluster).values_list("reason", flat=True))
    for one in EDITS:
        if one.reason not in known:
            save(
                queue=cluster.queues.select_related("cluster").get(name=one.queue),
                cells=one.cells,
                author=User.objects.get(username=one.by),
                reason=one.reason,
                effective_until=cluster.now() + one.lasts if one.lasts else None,
            )


def look_after(cluster: Cluster) -> None:
    """The admin acknowledges the longest wait, where it fires."""
    watching.look(cluster)
    rows = Firing.objects.filter(rule__cluster=cluster, until=None)
    if not rows.exclude(acknowledged_at=None).exists():
        firing = rows.filter(rule__figure=Figure.LONGEST_WAIT).first() or rows.first()
        if firing is not None:
            acknowledge(firing, by=User.objects.get(username="admin"), now=cluster.now())
