"""The door of a cycle: find what is held of the cluster, take the turn, run, forget after a fault."""

from __future__ import annotations

from collections.abc import Callable

from scheduling.models import Cluster, ClusterMode
from scheduling.services.cycle.run import CycleResult, run
from scheduling.services.worker.cluster_turns import held_of


def run_cycle(
    cluster_id: int, *, trigger: str = "timer", on_change: Callable[[], None] = lambda: None
) -> CycleResult:
    """One cycle of the cluster; ``on_change`` is what its mirror calls when another is due.

    A paused cluster is left alone. Never two at once in this process (``skipped='busy'``), and by the
    lease never two that write.
    Raises ApiError when the cluster does not answer and Cluster.DoesNotExist when the row is gone.
    """
    cluster = Cluster.objects.get(pk=cluster_id)
    if cluster.mode == ClusterMode.PAUSED:
        return CycleResult(skipped="paused")
    cluster_turn = held_of(cluster, on_change=on_change)
    if not cluster_turn.turn.take():
        # What called for this cycle may have come after the other one looked.
        cluster_turn.call()
        return CycleResult(skipped="busy")
    try:
        done = run(cluster, cluster_turn.link, cluster_turn.memory, cluster_turn.call, trigger)
        if done.skipped == "lease":
            # If its holder is dead, the next look is to be when that is sure, and no cycle's interval later.
            cluster_turn.call.later(cluster_turn.link.lease.free_in_s())
        return done
    except BaseException:
        cluster_turn.memory.forget()
        raise
    finally:
        cluster_turn.turn.give_back()
