"""What stays outside when a cluster is enforced: whoever enforces has seen it, and the act keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from django.contrib import messages
from django.http import HttpRequest

from portal.display.format import counted
from scheduling.models import Cluster
from scheduling.services.clusters.outside import look
from scheduling.services.errors import ServiceError

UNREAD = "unread"


@dataclass(frozen=True, slots=True)
class Left:
    """What stays outside if the cluster is enforced now. ``digest`` is another one for other work, and
    ``UNREAD`` where the cluster does not answer."""

    work: int
    gpus: int
    digest: str

    @property
    def asks(self) -> bool:
        """Whether there is something that a person has to have seen."""
        return bool(self.work) or self.digest == UNREAD

    @property
    def words(self) -> str:
        if self.digest == UNREAD:
            return "the cluster did not answer"
        return f"{counted(self.work, 'workload')} with {counted(self.gpus, 'GPU')}"


def left_by(cluster: Cluster) -> Left:
    try:
        every = look(cluster)
    except ServiceError:
        return Left(0, 0, UNREAD)
    uids = "\n".join(sorted(one.uid for one in every))
    return Left(len(every), sum(one.gpus for one in every), sha256(uids.encode()).hexdigest()[:16])


def decided(request: HttpRequest, cluster: Cluster) -> Left | None:
    """What the person who enforces leaves outside; None where they have not seen just that."""
    left = left_by(cluster)
    if not left.asks or request.POST.get("left") == left.digest:
        return left
    messages.error(
        request,
        "Work that stays outside, and what is refused from then on, is to be read first: tick the box."
        if "left" not in request.POST
        else "Other work is outside than was shown. Read it again.",
    )
    return None
