"""A planner simple enough to compute by hand: first come, first served, on whichever node has room."""

from __future__ import annotations

from scheduling.engine.model import (
    Action,
    Decision,
    GpuClass,
    Node,
    Phase,
    Plan,
    Policy,
    PriorityClass,
    Queue,
    Quota,
    Reason,
    Snapshot,
)

from .conftest import ORIGIN


def small_cluster() -> Snapshot:
    """Four nodes of each of two classes; queues a and b share three quarters of them below one parent."""
    return Snapshot(
        now=ORIGIN,
        gpu_classes=(GpuClass("big"), GpuClass("small", 0.5)),
        nodes=tuple(
            Node(f"{c}{i}", c, 8000, topology={"rack": f"r{i // 2}"})
            for c in ("big", "small")
            for i in range(4)
        ),
        queues=(
            Queue("top", quotas={c: Quota(24_000) for c in ("big", "small")}),
            Queue("a", "top", quotas={"big": Quota(8000), "small": Quota(12_000, 8000)}),
            Queue("b", "top", quotas={"big": Quota(16_000), "small": Quota(12_000, None, 4000)}),
        ),
        priority_classes=(
            PriorityClass("normal", 50, min_run_time_s=600),
            PriorityClass("high", 60, min_run_time_s=600),
        ),
        policy=Policy(preemption_delay_s=60),
    )


def first_come(snapshot: Snapshot) -> Plan:
    """Members go one by one to the first node with room; the head never blocks the rest."""
    free = {node.name: node.gpus for node in snapshot.nodes if node.ready}
    for work in snapshot.workloads:
        for node, members in work.placement.items():
            free[node] = free.get(node, 0) - members * work.gpus
    decisions = []
    for work in sorted(snapshot.workloads, key=lambda w: (w.submitted, w.name)):
        if work.phase is Phase.PENDING:
            decisions.append(decide(work, free))
    return Plan({}, tuple(decisions))


def decide(work, free: dict[str, int]) -> Decision:
    left, placement = work.members.min, {}
    for node in sorted(free):
        fits = min(left, free[node] // work.gpus)
        if fits:
            placement[node] = fits
            left -= fits
    if left:
        return Decision(work.name, Action.WAIT, Reason.NO_FREE_GPUS)
    for node, members in placement.items():
        free[node] -= members * work.gpus
    return Decision(
        work.name,
        Action.ADMIT,
        Reason.FITS_NOMINAL,
        gpu_class=work.gpu_classes[0],
        members=work.members.min,
        placement=placement,
    )


class Evicting:
    """Like ``first_come``, but at the given instants it evicts the named workload first."""

    def __init__(self, evictions: dict) -> None:
        self.evictions = dict(evictions)

    def __call__(self, snapshot: Snapshot) -> Plan:
        victim = self.evictions.pop(snapshot.now, None)
        if victim is None:
            return first_come(snapshot)
        evict = Decision(victim, Action.EVICT, Reason.RECLAIMED)
        waits = tuple(
            Decision(w.name, Action.RESERVE, Reason.AWAITS_VICTIMS)
            for w in snapshot.workloads
            if w.phase is Phase.PENDING
        )
        return Plan({}, (evict, *waits))
