"""What a worker process holds of each cluster between cycles."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scheduling.models import Cluster
from scheduling.services.worker.turns import Debounce, Turn

if TYPE_CHECKING:
    # Every process knows this module, since Celery's signals lead here; only one that holds a cluster
    # loads the engine and the client of Kubernetes.
    from scheduling.services.clusters.connection import ClusterLink
    from scheduling.services.cycle.memory import Memory

COLLECTED = (50_000, 20, 20)
"""Allocations between two looks for garbage cycles, by generation. A mirror is millions of objects that
stay: Python's own thresholds look through all of them several times in a cycle of the engine."""


@dataclass(slots=True)
class ClusterTurn:
    """One cluster in this process. ``turn`` is taken for the length of a cycle; ``call`` asks for one."""

    name: str
    link: ClusterLink
    memory: Memory
    turn: Turn
    call: Debounce

    def close(self) -> None:
        self.call.close()
        self.link.close()


_turns: dict[int, ClusterTurn] = {}
_lock = threading.Lock()


def held_of(cluster: Cluster, *, on_change: Callable[[], None]) -> ClusterTurn:
    """What is held of ``cluster``, made and its mirror started when there is nothing.

    ``on_change`` is called, debounced, from a thread of the mirror after the cluster changed. A
    cluster that is reached otherwise than before is connected to anew.
    """
    from scheduling.services.clusters.connection import address_of

    with _lock:
        cluster_turn = _turns.get(cluster.pk)
        if cluster_turn is not None and cluster_turn.link.address != address_of(cluster):
            del _turns[cluster.pk]
            cluster_turn.close()
            cluster_turn = None
        if cluster_turn is None:
            cluster_turn = _turns[cluster.pk] = _start(cluster, on_change)
        return cluster_turn


def as_json() -> dict[str, Any]:
    """What this process holds of each cluster, by its name, as ``Process.held`` keeps it."""
    return {
        cluster_turn.name: {
            "lag_s": round(cluster_turn.link.mirror.lag_s(), 1),
            "objects": cluster_turn.link.mirror.size(),
            "leads": cluster_turn.link.lease.left_s() > 0,
            "lease_s": round(cluster_turn.link.lease.left_s(), 1),
        }
        for cluster_turn in list(_turns.values())
    }


def running_s() -> dict[str, float]:
    """Name of each cluster -> seconds since the cycle that runs began; 0 where none does."""
    return {
        cluster_turn.name: cluster_turn.turn.taken_s() for cluster_turn in list(_turns.values())
    }


def leave_all() -> None:
    """Let the cycles that run end soon, whether or not their API servers answer. Safe in a signal handler:
    nothing is waited for."""
    for one in list(_turns.values()):
        one.link.leave()


def close_all() -> None:
    """Let go of every cluster."""
    with _lock:
        turns = list(_turns.values())
        _turns.clear()
    for one in turns:
        one.close()


def close_others(pks: Collection[int]) -> None:
    """Let go of clusters that are not among ``pks``: their rows are gone."""
    with _lock:
        gone = [_turns.pop(pk) for pk in list(_turns) if pk not in pks]
    for one in gone:
        one.close()


def _start(cluster: Cluster, on_change: Callable[[], None]) -> ClusterTurn:
    from scheduling.services.clusters.connection import ClusterLink
    from scheduling.services.cycle.memory import Memory
    from scheduling.services.cycle.record.booking import Ledger

    gc.set_threshold(*COLLECTED)
    turn = Turn()
    call = Debounce(on_change, turn)
    return ClusterTurn(
        cluster.name, ClusterLink.open(cluster, call), Memory(Ledger(cluster)), turn, call
    )
