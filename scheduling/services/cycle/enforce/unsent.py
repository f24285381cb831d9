"""Evictions that were committed and have not reached the cluster: the worker was killed, or the write failed.

Somebody was promised what they free, so they are written again until the cluster shows them or the claim
lapses.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduling.cluster.adapters import key_of
from scheduling.engine import Action, Reason
from scheduling.engine import model as m
from scheduling.models import Decision, Workload


def unsent(rows: Sequence[Workload]) -> list[m.Decision]:
    """The newest eviction of each of ``rows`` as it was decided. One query, and none for nobody."""
    if not rows:
        return []
    kept = Decision.objects.filter(workload__in=rows, action=Action.EVICT)
    newest = {row.workload_id: row for row in kept.order_by("cycle__number", "id")}
    return [_decided(row, newest[row.pk]) for row in rows if row.pk in newest]


def _decided(row: Workload, kept: Decision) -> m.Decision:
    return m.Decision(
        workload=key_of(row.kind, row.namespace, row.name),
        action=Action.EVICT,
        reason=Reason(kept.reason),
        sentence=kept.sentence,
        sealed=(kept.sealed or {}).get("sentence", ""),
        numbers=kept.numbers,
        members=kept.members,
    )
