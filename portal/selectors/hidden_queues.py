"""What the person does not see of the queues, as lines that make the sums agree. Milli-GPU."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scheduling.models import Queue, Share


@dataclass(frozen=True)
class Others:
    """What the ``count`` queues below one have that the person may not see: with it the rows add up."""

    path: str
    """Folds with the queue above them."""
    depth: int
    count: int
    allocated: float
    fair_share: float
    nominal: float
    pending: float

    @property
    def excess(self) -> float:
        return self.allocated - self.fair_share


def hidden_below(every: Iterable[Queue], visible: Iterable[Queue]) -> dict[int | None, list[int]]:
    """Queue -> those right below it that are not seen."""
    seen, found = {queue.pk for queue in visible}, defaultdict(list)
    for queue in every:
        if queue.pk not in seen:
            found[queue.parent_id].append(queue.pk)
    return found


def sum_of(path: str, depth: int, pks: list[int], shares: Mapping[int, Share]) -> Others:
    mine = [shares[pk] for pk in pks if pk in shares]
    return Others(
        f"{path}/others".lstrip("/"),
        depth,
        len(pks),
        allocated=sum(s.allocated for s in mine),
        fair_share=sum(s.fair_share for s in mine),
        nominal=sum(s.nominal for s in mine),
        pending=sum(s.pending for s in mine),
    )
