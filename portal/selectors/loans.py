"""What loans between queues moved, as bars and divisions show it. Milli-GPU."""

from __future__ import annotations

from collections.abc import Iterable

from scheduling.models import Cluster, Share
from scheduling.services.queues.lending import Key, guarantees_at


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
