"""What one projection of a cluster found different, and how it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from scheduling.cluster.adapters import key_of
from scheduling.models import CheckpointHabit, Eviction, State, Transition, Workload, WorkloadEdit
from scheduling.services.tables.bulk import insert_keyed, write_columns
from scheduling.services.workloads import checkpoints, edits, lifecycle

PROJECTED = [
    "queue",
    "queue_label",
    "user",
    "priority_class",
    "type",
    "gpus",
    "cpus",
    "memory_mib",
    "min_members",
    "max_members",
    "elastic",
    "shapes",
    "gpu_classes",
    "topology",
    "image",
    "run_time_limit_s",
    "checkpoint_interval_s",
    "predicted_p50_s",
    "predicted_p90_s",
    "held",
    "turn",
    "checkpointed_at",
    "members",
    "placement",
    "gpu_class",
    "short_since",
    *lifecycle.OF_ENDING,
]
"""Columns copied from the cluster; ``lifecycle.HELD_BY_STEP`` are the others."""
AUTHORED = frozenset(
    {
        "queue_label",
        "priority_class_id",
        "gpus",
        "min_members",
        "max_members",
        "shapes",
        "gpu_classes",
        "topology",
        "run_time_limit_s",
        "held",
        "turn",
    }
)
"""Those that people set, as ``assign`` calls them."""


@dataclass(slots=True)
class Changes:
    """What one projection found different."""

    new: list[Workload] = field(default_factory=list)
    edited: dict[str, Workload] = field(default_factory=dict)
    authored: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Of the edited, those that people asked something else for: column -> its value before."""
    stepped: dict[str, Workload] = field(default_factory=dict)
    transitions: list[Transition] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    habits: list[CheckpointHabit] = field(default_factory=list)
    edits: list[WorkloadEdit] = field(default_factory=list)
    """Of what waits, by whatever way it was edited."""

    def ended(self) -> dict[str, Workload]:
        """Engine name -> row of what this projection found ended."""
        over = (row for row in self.stepped.values() if row.state == State.FINISHED)
        return {key_of(row.kind, row.namespace, row.name): row for row in over}

    def resize(self, row: Workload, members: int, now: datetime) -> None:
        """So many of its members hold GPUs from ``now`` on."""
        if row.members != members:
            self.transitions.append(lifecycle.resize(row, members, at=now))
            self.stepped[row.uid] = row

    def __bool__(self) -> bool:
        return bool(self.new or self.edited or self.stepped)


def save(changes: Changes) -> None:
    """Write ``changes``; the caller opens the transaction."""
    insert_keyed(changes.new)
    created = {row.uid for row in changes.new}
    edited = [row for uid, row in changes.edited.items() if uid not in created]
    if edited:
        write_columns(edited, PROJECTED)
    stepped = [row for uid, row in changes.stepped.items() if uid not in created]
    lifecycle.save(stepped, changes.transitions)
    if changes.evictions:
        Eviction.objects.bulk_create(changes.evictions)
    if changes.habits:
        checkpoints.save(changes.habits)
    edits.save(changes.edits)


def assign(row: Workload, values: Mapping[str, Any], changes: Changes) -> None:
    """Set columns of ``row``, and note in ``changes`` if one of them had another value."""
    old = {n: getattr(row, n) for n, value in values.items() if getattr(row, n) != value}
    for name in old:
        setattr(row, name, values[name])
    if old:
        changes.edited[row.uid] = row
    if authored := AUTHORED.intersection(old):
        changes.authored[row.uid] = {name: old[name] for name in sorted(authored)}
