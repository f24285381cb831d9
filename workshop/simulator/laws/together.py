"""Whether a plan keeps together what has to be: each segment of a gang inside one domain of its level, and
all of it inside one of the level that it requires.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from scheduling.engine.model import (
    NODE_LEVEL,
    Action,
    Decision,
    Node,
    Phase,
    Plan,
    Reason,
    Snapshot,
    Workload,
)

SEATED = (Action.ADMIT, Action.GROW, Action.SHRINK, Action.MOVE)


def torn_apart(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Only where all was together before: nodes that were labelled anew are no fault of the plan."""
    nodes = {node.name: node for node in snapshot.nodes}
    works = {work.name: work for work in snapshot.workloads}
    for decision in plan.decisions:
        work = works[decision.workload]
        if not _is_seated(decision):
            continue
        before = work.placement if work.phase is Phase.RUNNING else {}
        if next(_faults(snapshot, work, nodes, before), None) is None:
            yield from _faults(snapshot, work, nodes, decision.placement)


def _is_seated(decision: Decision) -> bool:
    return decision.action in SEATED or decision.reason is Reason.AWAITS_VICTIMS


def _faults(
    snapshot: Snapshot, work: Workload, nodes: Mapping[str, Node], placement: Mapping[str, int]
) -> Iterator[str]:
    wish = work.topology
    if wish.required and len(_by_domain(snapshot, wish.required, nodes, placement)) > 1:
        yield f"{work.name} sits on {dict(placement)}, not in one {wish.required}"
    segment = wish.segment
    if segment is None or not segment.required:
        return
    inside = _by_domain(snapshot, segment.required, nodes, placement)
    if any(many % segment.members for many in inside.values()):
        rule = f"not every {segment.members} in one {segment.required}"
        yield f"{work.name} sits on {dict(placement)}, {rule}"


def _by_domain(
    snapshot: Snapshot, level: str, nodes: Mapping[str, Node], placement: Mapping[str, int]
) -> Counter[object]:
    """Members by domain."""
    inside: Counter[object] = Counter()
    for name, many in placement.items():
        inside[_domain(snapshot, level, nodes[name])] += many
    return inside


def _domain(snapshot: Snapshot, level: str, node: Node) -> object:
    """By the names down to the level; where it names none of that level, by the first below; else itself."""
    levels = snapshot.topology_levels
    at = len(levels) if level == NODE_LEVEL else levels.index(level)
    end = next((k for k in range(at, len(levels)) if levels[k] in node.topology), None)
    if end is None:
        return node.name
    return tuple(node.topology.get(one, "") for one in levels[: end + 1])
