"""The cluster as one cycle sees it, and what is to be done about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from scheduling.cluster.picture.compose import Picture
from scheduling.engine import Outline, Snapshot
from scheduling.models import Cluster, Workload
from scheduling.services.clusters.consolidation_orders import OpenOrder
from scheduling.services.cycle.changes import Changes
from scheduling.services.queues.rows import PolicyRows
from scheduling.services.snapshot.obstacles import Obstacle
from scheduling.services.snapshot.situations import WorkloadFacts
from scheduling.services.snapshot.starts_under_way import SupposedCluster


class Call(Protocol):
    """Asks for another cycle, and tells whether one is asked for already."""

    def __call__(self) -> None: ...

    def is_due(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class View:
    """The cluster as one cycle sees it."""

    cluster: Cluster
    picture: Picture
    rows: PolicyRows
    known: Mapping[str, WorkloadFacts]
    now: datetime
    changes: Changes
    supposed: SupposedCluster
    """The same as the plan counts it."""
    blocked: Mapping[str, Obstacle]
    """Engine name -> what keeps it from being started."""
    lag_s: float
    """How long the picture had been out of touch with the cluster."""
    left_out: Mapping[str, str]
    """Engine name -> what is said of nodes that are left out for it."""
    unsent: Sequence[Workload] = ()
    """Those that an earlier plan evicts for a claim, and the cluster does not show so yet."""


@dataclass(frozen=True, slots=True)
class CyclePlan:
    """What is to be done about it; ``is_whole`` unless some starts are left to the next cycle."""

    snapshot: Snapshot
    plan: Outline
    is_whole: bool
    took_ms: float
    began: list[Workload]
    """Those that begin on the nominal quota of their queue alone."""
    ordered: OpenOrder | None = None
    """The consolidation whose moves are in it."""
    put_off: frozenset[str] = frozenset()
    """Names of those whose start, or room that was to be made for them, is left to the next cycle."""
