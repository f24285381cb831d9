"""What a workload is doing in the cluster, whatever its row says: the one judgement of a cycle."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from scheduling.cluster.adapters import Observed
from scheduling.models import State


class Situation(StrEnum):
    WAITING = "waiting"
    """Suspended, and nothing of it is left on a node."""
    BYPASSING = "bypassing"
    """Unsuspended, but not by Weir: it jumped the queue and is to be suspended again."""
    HOLDING = "holding"
    """Admitted: it holds GPUs or is about to."""
    LEAVING = "leaving"
    """Suspended or deleted, and its pods are still going."""
    MOVING = "moving"
    """Suspended to start again on other nodes, which are kept for it."""
    DONE = "done"


def judge(observed: Observed, state: str | None, *, enforce: bool, newcomer: bool) -> Situation:
    """The situation of ``observed`` whose row is in ``state`` (None: no row yet).

    Outside enforce mode somebody else decides what runs, and it is taken as it is. In enforce mode an
    unsuspended Job without Weir's mark has jumped the queue, unless it was known to run before
    enforcing began (its row holds GPUs) or Weir is a ``newcomer`` to the cluster: then it is adopted.
    """
    if observed.outcome:
        return Situation.DONE
    if observed.run_by:
        return Situation.WAITING  # Whatever it says of itself, nothing of it is here.
    if observed.suspended and observed.is_moving and not (observed.held or observed.deleting):
        return Situation.MOVING
    if observed.suspended or observed.deleting:
        return Situation.LEAVING if observed.pods_left else Situation.WAITING
    known = state in (State.ADMITTED, State.RUNNING) or (state is None and newcomer)
    if observed.marked or known or not enforce:
        return Situation.HOLDING
    return Situation.BYPASSING


def is_as_it_should_be(observed: Observed) -> bool:
    """Whether it waits without a trace of an admission or a move that would have to be corrected."""
    traced = observed.marked or observed.altered or observed.moves_to is not None
    return observed.suspended and not traced


def placement_of(observed: Observed) -> dict[str, int]:
    """Members by node: where their pods are, and where the plan sent those that are not bound yet."""
    placed = dict(observed.placement)
    missing = observed.members_wanted - sum(placed.values())
    for node, planned in sorted(observed.planned.items()):
        add = min(missing, planned - placed.get(node, 0))
        if add > 0:
            placed[node] = placed.get(node, 0) + add
            missing -= add
    return dict(sorted(placed.items()))


def class_of(observed: Observed, class_by_node: Mapping[str, str]) -> str | None:
    """The class it runs on: the mark of its admission, else that of the nodes its pods are on."""
    if observed.gpu_class:
        return observed.gpu_class
    if not observed.gpus:
        return next(iter(class_by_node.values()), None)  # Any will do: it holds nothing of it.
    return next(
        (
            class_by_node[node]
            for node in observed.placement
            if class_by_node.get(node) in observed.gpu_classes
        ),
        None,
    )
