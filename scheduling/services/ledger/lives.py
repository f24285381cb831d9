"""What single workloads held in their lives, from the one ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter

from django.db.models import QuerySet

from scheduling.models import Transition
from scheduling.services.ledger.holds import OF_STEP, Hold, holds_between

EVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Life:
    """Of one workload, with what it held of some classes."""

    workload: int
    queue: int
    user: str
    type: str
    finished: datetime | None
    outcome: str
    holds: Sequence[Hold]

    def by_class(self, start: datetime, end: datetime) -> dict[int, float]:
        """GPU-seconds held in [start, end)."""
        found: dict[int, float] = defaultdict(float)
        for hold in self.holds:
            span_s = (min(hold.end, end) - max(hold.begin, start)).total_seconds()
            if span_s > 0:
                found[hold.gpu_class] += hold.gpus * span_s
        return found


OF_LIFE = ("queue_id", "user", "type", "finished_at", "outcome")


def lives_of(
    steps: QuerySet[Transition], gpu_classes: Iterable[int], until: datetime
) -> list[Life]:
    """Of the workloads of ``steps``, all of theirs up to ``until``. One query."""
    wanted, found = frozenset(gpu_classes), []
    rows = steps.annotate(held_class=OF_STEP).order_by("workload_id", "at", "id")
    columns = ("workload_id", "at", "gpus", "held_class", *(f"workload__{n}" for n in OF_LIFE))
    for pk, mine in groupby(
        rows.values_list(*columns).iterator(chunk_size=5000), key=itemgetter(0)
    ):
        lived = list(mine)
        queue, user, type_, finished, outcome = lived[0][4:]
        held = holds_between([row[1:4] for row in lived], finished, until)
        holds = [hold for hold in held if hold.gpu_class in wanted]
        found.append(Life(pk, queue, user, type_, finished, outcome, holds))
    return found
