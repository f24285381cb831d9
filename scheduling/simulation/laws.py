"""The engine's laws, held against one plan: tests switch this on for every cycle of a simulation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from scheduling.engine.model import Action, Decision, Phase, Plan, Quota, Snapshot, Workload

Held = dict[tuple[str, str], int]
"""(queue or node, GPU class) -> milli-GPU."""


class LawError(AssertionError):
    """A plan that breaks a law; the message tells which and with what numbers."""


def check(snapshot: Snapshot, plan: Plan) -> None:
    """Raises LawError with every law that carrying out ``plan`` would break."""
    broken = list(broken_laws(snapshot, plan))
    if broken:
        raise LawError(f"{snapshot.now.isoformat()}: " + "; ".join(broken))


def broken_laws(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Capacity of nodes, gangs whole, limits of every ancestor, protected work, a word to everyone."""
    yield from over_nodes(snapshot, plan)
    yield from torn_gangs(snapshot, plan)
    yield from over_limits(snapshot, plan)
    yield from protected_victims(snapshot, plan)
    yield from unexplained(snapshot, plan)


def admitted(snapshot: Snapshot, plan: Plan) -> Iterator[tuple[Workload, Decision]]:
    by_name = {workload.name: workload for workload in snapshot.workloads}
    for decision in plan.decisions:
        if decision.action is Action.ADMIT:
            yield by_name[decision.workload], decision


def over_nodes(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Victims still hold their GPUs: whoever is admitted in the same plan must fit beside them."""
    held: defaultdict[str, int] = defaultdict(int)
    for workload in snapshot.workloads:
        if workload.phase is Phase.RUNNING:
            for name, members in workload.placement.items():
                held[name] += members * workload.gpus
    for workload, decision in admitted(snapshot, plan):
        for name, members in decision.placement.items():
            held[name] += members * workload.gpus
    for node in snapshot.nodes:
        room = node.gpus - node.foreign_gpus if node.ready else held_before(snapshot, node.name)
        if held[node.name] > room:
            yield f"node {node.name} holds {held[node.name]} of {room} milli-GPU"


def held_before(snapshot: Snapshot, node: str) -> int:
    """What sits on a node that is no longer ready may stay there, no more may come."""
    running = (w for w in snapshot.workloads if w.phase is Phase.RUNNING)
    return sum(w.gpus * w.placement.get(node, 0) for w in running)


def torn_gangs(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    for workload, decision in admitted(snapshot, plan):
        placed = sum(decision.placement.values())
        least, most = workload.members.min, workload.members.max
        if placed != decision.members or not least <= placed <= most:
            yield f"{workload.name} got {placed} members, its gang is {least} to {most}"
        if workload.phase is not Phase.PENDING:
            yield f"{workload.name} is admitted while it runs"


def over_limits(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Only queues that the plan adds to: a limit lowered under running work is no fault of the plan."""
    gone = {d.workload for d in plan.decisions if d.action is Action.EVICT}
    held: Held = defaultdict(int)
    touched: set[tuple[str, str]] = set()
    above = {queue.name: queue.parent for queue in snapshot.queues}

    def charge(queue: str | None, gpu_class: str, gpus: int, new: bool) -> None:
        while queue is not None:
            held[queue, gpu_class] += gpus
            if new:
                touched.add((queue, gpu_class))
            queue = above.get(queue)

    for workload in snapshot.workloads:
        runs = workload.phase is Phase.RUNNING and not workload.leaving
        if runs and workload.gpu_class and workload.name not in gone:
            gpus = workload.gpus * sum(workload.placement.values())
            charge(workload.queue, workload.gpu_class, gpus, False)
    for workload, decision in admitted(snapshot, plan):
        charge(workload.queue, decision.gpu_class or "", workload.gpus * decision.members, True)
    quotas = {queue.name: queue.quotas for queue in snapshot.queues}
    for queue, gpu_class in sorted(touched):
        quota = quotas[queue].get(gpu_class, Quota())
        if quota.borrowing_limit is None:
            continue
        limit = quota.nominal + quota.borrowing_limit
        if held[queue, gpu_class] > limit:
            yield f"queue {queue} holds {held[queue, gpu_class]} of {limit} milli-GPU of {gpu_class}"


def protected_victims(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    by_name = {workload.name: workload for workload in snapshot.workloads}
    classes = {c.name: c for c in snapshot.priority_classes}
    for decision in plan.decisions:
        if decision.action is not Action.EVICT or decision.for_workload is None:
            continue
        victim = by_name[decision.workload]
        rank = classes[victim.priority_class]
        if not rank.preemptible:
            yield f"{victim.name} is evicted though {rank.name} is not preemptible"
        if victim.started is None:
            continue
        ran_s = (snapshot.now - victim.started).total_seconds()
        if ran_s < rank.min_run_time_s:
            yield f"{victim.name} is evicted after {ran_s:.0f} of {rank.min_run_time_s} s"


def unexplained(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    told = {decision.workload for decision in plan.decisions}
    for workload in snapshot.workloads:
        if workload.phase is Phase.PENDING and workload.name not in told:
            yield f"{workload.name} waits without a reason"
