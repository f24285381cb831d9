"""Edits as they are typed, as changes of a what-if: cells of the quotas' grid, fields of the policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from scheduling.engine import model as m
from scheduling.models import MILLI, Cluster, Queue
from scheduling.services.queues.faults import QuotaCell
from scheduling.services.queues.values import Field

COLUMNS: Mapping[Field, str] = {
    Field.NOMINAL: "nominal_gpus",
    Field.BORROWING_LIMIT: "borrowing_limit_gpus",
    Field.LENDING_LIMIT: "lending_limit_gpus",
    Field.WEIGHT: "weight",
}
"""A budget of GPU-hours starts and stops nobody at the moment it is set."""
QUEUE_SETTINGS = (
    "priority", "stop", "sharing", "max_running", "max_running_per_user", "max_gpus_per_user",
)  # fmt: skip


def changes_of(cells: Iterable[QuotaCell]) -> list[dict[str, Any]]:
    """One change for each queue and class; budgets are left out."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for cell in cells:
        column = COLUMNS.get(cell.field)
        if column is None:
            continue
        at = (cell.queue, cell.gpu_class)
        one = found.setdefault(at, {"kind": "quota", "queue": at[0], "gpu_class": at[1]})
        one[column] = None if cell.value is None else float(cell.value)
    return list(found.values())


def changes_of_queue(queue: Queue, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One of the settings of ``values`` (columns of a queue) that are others and that the engine plans by;
    its name and its place in the tree are none of them."""
    change = {
        name: values[name]
        for name in QUEUE_SETTINGS
        if name in values and values[name] != getattr(queue, name)
    }
    if change.get("max_gpus_per_user") is not None:
        change["max_gpus_per_user"] /= MILLI
    return [{"kind": "queue", "queue": queue.name, **change}] if change else []


def changes_of_policy(cluster: Cluster, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One for each field whose value is another and that the engine plans by; the rest, as how often a cycle
    runs, changes no plan of this moment."""
    planned_by = {field.name for field in fields(m.Policy)}
    return [
        {"kind": "policy", "setting": name, "value": value}
        for name, value in values.items()
        if name in planned_by and getattr(cluster, name) != value
    ]
