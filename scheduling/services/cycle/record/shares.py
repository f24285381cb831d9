"""The newest division as rows: what it gives each queue of each class, and its decayed usage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from scheduling.engine import Outline
from scheduling.engine import model as m
from scheduling.models import Cluster, Share
from scheduling.services.queues.rows import Key, PolicyRows
from scheduling.services.tables.bulk import write_columns

COLUMNS = [
    "fair_share",
    "potential",
    "allocated",
    "nominal",
    "limit",
    "demand",
    "pending",
    "guaranteed",
    "lent",
    "kept_back",
    "oversubscribed",
    "steps",
    "usage",
]
FEW = 200
"""Rows that are written with every cycle where usage alone has moved."""
WRITTEN_EVERY_S = 5.0
"""Wall seconds between two writes of more than that; usage moves by little in so short a time."""


class ShareRows:
    """The rows of one cluster, kept in memory by their only writer."""

    def __init__(self, cluster: Cluster) -> None:
        found = Share.objects.filter(queue__cluster=cluster)
        self._rows: dict[Key, Share] = {(s.queue_id, s.gpu_class_id): s for s in found}
        self._moved: dict[Key, Share] = {}
        """Rows of which usage alone is not written yet."""
        self._written_at = float("-inf")

    @property
    def rows(self) -> list[Share]:
        return list(self._rows.values())

    def save(self, *, plan: Outline, snapshot: m.Snapshot, rows: PolicyRows) -> int:
        """Bring the rows into line with ``plan`` in the caller's transaction.

        Returns how many a page shows differently: usage alone decays unseen.
        """
        new: list[Share] = []
        changed: list[Share] = []
        for key, share in _divided(plan, snapshot, rows):
            usage, row = rows.usage.get(key, 0.0), self._rows.get(key)
            if row is None:
                row = self._rows[key] = Share(queue_id=key[0], gpu_class_id=key[1])
                new.append(row)
            if _set(row, share) and row.pk:
                changed.append(row)
            elif row.pk and abs(row.usage - usage) > 1e-6:
                self._moved[key] = row
            row.usage = usage
        Share.objects.bulk_create(new, batch_size=200)
        for row in changed:
            self._moved.pop((row.queue_id, row.gpu_class_id), None)
        write_columns([*changed, *self._unwritten()], COLUMNS)
        return len(new) + len(changed)

    def _unwritten(self) -> list[Share]:
        tick = time.monotonic()
        if len(self._moved) > FEW and tick - self._written_at < WRITTEN_EVERY_S:
            return []
        shares = list(self._moved.values())
        self._moved, self._written_at = {}, tick
        return shares


def _divided(
    plan: Outline, snapshot: m.Snapshot, rows: PolicyRows
) -> Iterator[tuple[Key, m.Share]]:
    """The plan's division by row; the root's says what the cluster has, not what is asked of it."""
    capacity = _capacity(snapshot)
    for queue_name, by_class in plan.fair_share.items():
        queue = rows.queue_by_name.get(queue_name) if queue_name else rows.root
        for class_name, share in by_class.items():
            gpu_class = rows.class_by_name.get(class_name)
            if queue is None or gpu_class is None:
                continue
            installed, ready = capacity.get(class_name, (0, 0))
            whole = replace(share, fair_share=float(ready), nominal=installed)
            yield (queue.pk, gpu_class.pk), share if queue_name else whole


def _capacity(snapshot: m.Snapshot) -> dict[str, tuple[int, int]]:
    """(installed, ready) milli-GPU by class."""
    total: dict[str, tuple[int, int]] = {}
    for node in snapshot.nodes:
        installed, ready = total.get(node.gpu_class, (0, 0))
        ready += node.gpus if node.ready else 0
        total[node.gpu_class] = (installed + node.gpus, ready)
    return total


def _set(row: Share, share: m.Share) -> bool:
    differs = False
    for name in COLUMNS[:-1]:
        value = _steps(share) if name == "steps" else getattr(share, name)
        if getattr(row, name) != value:
            setattr(row, name, value)
            differs = True
    return differs


def _steps(share: m.Share) -> list[dict[str, float | str]]:
    """As people read them; n, u and w are the same where nothing a page shows has changed."""
    return [
        {
            "kind": step.kind.value,
            "gpus": round(step.amount / m.MILLI, 3),
            "n": round(step.n, 3),
            "u": round(step.u, 3),
            "w": round(step.w, 3),
            "tier": step.tier,
        }
        for step in share.steps
    ]
