"""What acts are made of."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from scheduling.cluster.adapters import ClassSpec, Observed
from scheduling.cluster.picture.compose import Picture
from scheduling.cluster.picture.nodes import ObservedNode
from scheduling.cluster.vocabulary.topology import Levels
from scheduling.engine import Outline
from scheduling.models import Workload
from scheduling.services.snapshot.situations import Known


@dataclass(frozen=True, slots=True)
class Scene:
    """All that acts are made of."""

    plan: Outline
    picture: Picture
    known: Mapping[str, Known]
    classes: Mapping[str, ClassSpec]
    cycle: int
    now: datetime
    nodes: Mapping[str, ObservedNode]
    rows: Mapping[str, Workload]
    """By the engine's name."""
    restless: Sequence[Observed]
    """The workloads but those that wait, as they should, and did not change."""
    levels: Levels
    under_way: Container[str] = frozenset()
    """uids of those whose start is on its way: nothing else is written of them before it is."""
    etas: Mapping[str, str] = field(default_factory=dict)
    """Predicted starts by the engine's name, as they are said on objects."""

    def find(self, name: str) -> Observed | None:
        """The workload by the engine's name."""
        row = self.rows.get(name)
        return self.picture.by_uid.get(row.uid) if row else None

    def find_idle(self, name: str) -> Observed | None:
        """The same, unless its start is on its way."""
        found = self.find(name)
        return None if found is None or found.uid in self.under_way else found

    @property
    def resource_names(self) -> tuple[str, ...]:
        return tuple(spec.resource_name for spec in self.classes.values())
