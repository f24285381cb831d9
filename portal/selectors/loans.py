"""What loans between queues moved, as bars and divisions show it. Milli-GPU."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from scheduling.models import Cluster, Quota, Share
from scheduling.services.queues.lending import Key, guarantees_at, nominal_of


def loans_in(shares: Iterable[Share], cluster: Cluster) -> dict[Key, int]:
    """(queue id, class id) -> how much more (negative: less) the division guaranteed than was granted.

    A loan that began since it was made is not in it yet, and shows with the next.
    """
    guarantees = guarantees_at(cluster, cluster.now())
    found: dict[Key, int] = {}
    for share in shares if guarantees else ():
        granted, by = guarantees.get((share.queue_id, share.gpu_class_id), (0, 0))
        if by and share.nominal == granted + by:
            found[share.queue_id, share.gpu_class_id] = by
    return found


def guarantees_now(cluster: Cluster, queues: Collection[int]) -> dict[Key, tuple[int, int]]:
    """(queue id, class id) -> (granted, moved by loans), as the next cycle divides it. Two queries, and two
    more where something is lent."""
    now = cluster.now()
    granted = nominal_of(Quota.objects.filter(queue__in=queues).in_force(now))
    return {key: (nominal, 0) for key, nominal in granted.items()} | guarantees_at(cluster, now)
