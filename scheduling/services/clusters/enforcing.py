"""Enforcing a cluster: the one door of pages, API and command, which asks whether what stays outside was
read."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from django.contrib.auth.base_user import AbstractBaseUser

from scheduling.engine.reasons.wording import plural
from scheduling.models import Cluster, ClusterMode
from scheduling.services.clusters.add import set_mode
from scheduling.services.clusters.outside import look
from scheduling.services.errors import ServiceError

UNREAD = "unread"


@dataclass(frozen=True, slots=True)
class OutsideWork:
    """What stays outside if the cluster is enforced now. ``digest`` is another one for other work, and
    ``UNREAD`` where the cluster does not answer."""

    work: int
    gpus: int
    digest: str

    @property
    def asks(self) -> bool:
        """Whether there is something that a person has to have read."""
        return bool(self.work) or self.digest == UNREAD

    @property
    def words(self) -> str:
        if self.digest == UNREAD:
            return "the cluster did not answer"
        return f"{plural(self.work, 'workload')} with {plural(self.gpus, 'GPU')}"


def left_by(cluster: Cluster) -> OutsideWork:
    try:
        every = look(cluster)
    except ServiceError:
        return OutsideWork(0, 0, UNREAD)
    uids = "\n".join(sorted(one.uid for one in every))
    return OutsideWork(
        len(every), sum(one.gpus for one in every), sha256(uids.encode()).hexdigest()[:16]
    )


def enforce(cluster: Cluster, *, left: str, author: AbstractBaseUser | None = None) -> bool:
    """Enforce it from the next cycle on; whether it was not before. ``left`` is the digest of what was read.

    Raises ServiceError at ``left`` where something stays outside and just that was not read.
    """
    if cluster.mode == ClusterMode.ENFORCE:
        return False
    now = left_by(cluster)
    if not now.asks:
        return set_mode(cluster, ClusterMode.ENFORCE, author=author)
    if left != now.digest:
        raise _unread(now, left)
    return set_mode(cluster, ClusterMode.ENFORCE, author=author, left_outside=now.words)


def _unread(now: OutsideWork, left: str) -> ServiceError:
    if now.digest == UNREAD:
        sentence = "The cluster does not answer, so nobody knows what stays outside its queues."
    elif left:
        sentence = f"Other work is outside the queues than was read: {now.words} now."
    else:
        sentence = f"Outside the queues stay {now.words}, to be read first."
    return ServiceError(
        "left_outside",
        sentence,
        f"Read them, bring in what is to come in, and say so: left={now.digest}.",
        field="left",
    )
