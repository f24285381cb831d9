"""What acts are made of.

Evictions that were committed and have not reached the cluster: the worker was killed, or the write failed.

Somebody was promised what they free, so they are written again until the cluster shows them or the claim
lapses.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from scheduling.cluster.adapters import ClassSpec, Sighting, key_of
from scheduling.cluster.picture.compose import Picture
from scheduling.cluster.picture.nodes import ObservedNode
from scheduling.cluster.vocabulary.topology import Levels
from scheduling.engine import Action, Outline, Reason
from scheduling.engine import model as m
from scheduling.models import Decision, Workload
from scheduling.services.snapshot.situations import WorkloadFacts


@dataclass(frozen=True, slots=True)
class Scene:
    """All that acts are made of."""

    plan: Outline
    picture: Picture
    known: Mapping[str, WorkloadFacts]
    classes: Mapping[str, ClassSpec]
    cycle: int
    now: datetime
    nodes: Mapping[str, ObservedNode]
    rows: Mapping[str, Workload]
    """By the engine's name."""
    restless: Sequence[Sighting]
    """The workloads but those that wait, as they should, and did not change."""
    levels: Levels
    under_way: Container[str] = frozenset()
    """uids of those whose start is on its way: nothing else is written of them before it is."""
    etas: Mapping[str, str] = field(default_factory=dict)
    """Predicted starts by the engine's name, as they are said on objects."""

    def find(self, name: str) -> Sighting | None:
        """The workload by the engine's name."""
        row = self.rows.get(name)
        return self.picture.by_uid.get(row.uid) if row else None

    def find_idle(self, name: str) -> Sighting | None:
        """The same, unless its start is on its way."""
        found = self.find(name)
        return None if found is None or found.uid in self.under_way else found

    @property
    def resource_names(self) -> tuple[str, ...]:
        return tuple(spec.resource_name for spec in self.classes.values())


def unsent(rows: Sequence[Workload]) -> list[m.Decision]:
    """The newest eviction of each of ``rows`` as it was decided. One query, and none for nobody."""
    if not rows:
        return []
    decisions = Decision.objects.filter(workload__in=rows, action=Action.EVICT)
    newest = {row.workload_id: row for row in decisions.order_by("cycle__number", "id")}
    return [_decided(row, newest[row.pk]) for row in rows if row.pk in newest]


def _decided(row: Workload, decision: Decision) -> m.Decision:
    return m.Decision(
        workload=key_of(row.kind, row.namespace, row.name),
        action=Action.EVICT,
        reason=Reason(decision.reason),
        sentence=decision.sentence,
        sealed=(decision.sealed or {}).get("sentence", ""),
        numbers=decision.numbers,
        members=decision.members,
    )
