"""Pending workloads as rows of a frame's tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduling.engine import Frame
from scheduling.engine.model import Workload
from scheduling.engine.snapshot.workload_columns import shapes_of
from scheduling.engine.state.roles import segment_of
from scheduling.engine.state.units import ANYWHERE


class Scribe:
    """What a frame's tables say of a pending workload: numbers for names."""

    def __init__(self, frame: Frame) -> None:
        self._leaves, self._quantile = leaves(frame), frame.backfill_quantile
        self._classes = {name: i for i, name in enumerate(frame.class_names)}
        self._priorities = {name: i for i, name in enumerate(frame.priority_names)}
        self._levels: dict[str | None, int] = {n: i for i, n in enumerate(frame.level_names)}
        self._levels[None] = ANYWHERE
        rate = frame.nodes.rate
        self._cheapest_first = sorted(self._classes.values(), key=lambda c: (rate[c], c))

    def columns(self, work: Workload) -> dict[str, Any]:
        """The arguments of ``Frame.describe``."""
        wish = [self._classes[name] for name in work.gpu_classes if name in self._classes]
        return {
            "queue": self._leaves.get(work.queue, -1),
            "user": work.user,
            "priority": self._priorities[work.priority_class],
            "submitted": work.submitted.timestamp(),
            "gpus": work.gpus,
            "cpus": work.cpus,
            "memory_mib": work.memory_mib,
            "members": (work.members.min, work.members.max),
            "classes": wish if work.gpu_classes else self._cheapest_first,
            "elastic": work.elastic,
            "required": self._levels[work.topology.required],
            "preferred": self._levels[work.topology.preferred],
            "segment": segment_of(work.topology, self._levels),
            "predicted": work.predicted.p50 if work.predicted else np.inf,
            "ends_within": work.predicted.within(self._quantile) if work.predicted else np.inf,
            "held": work.held,
            "restart": work.restart_cost_s,
            "roles": shapes_of(work, ()),
        }


def leaves(frame: Frame) -> dict[str, int]:
    """Name -> number of the queues that hold workloads."""
    start = frame.tree.kid_start
    return {
        name: number
        for number, name in enumerate(frame.queue_names)
        if number and start[number] == start[number + 1]
    }
