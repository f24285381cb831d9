"""The engine's laws, held against one plan: tests switch this on for every cycle of a simulation.

Here is what a plan makes of the cluster (laws 1, 3, 5 and 10); ``mercy`` has who may be displaced, and
``gentle`` that nobody is displaced in vain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set

from scheduling.engine.model import (
    MILLI,
    PLACES,
    Action,
    Decision,
    Node,
    Phase,
    Plan,
    Quota,
    Reason,
    Snapshot,
    Workload,
)
from workshop.simulator.laws.evictions import ungentle
from workshop.simulator.laws.protection import unmerciful
from workshop.simulator.laws.together import torn_apart

Held = Counter[tuple[str, str]]
"""(queue, GPU class) -> milli-GPU."""
SEATED = (Action.ADMIT, Action.GROW, Action.SHRINK, Action.MOVE)
ROUNDING = 0.01
"""Shares are floats of milli-GPU."""


class LawError(AssertionError):
    """A plan that breaks a law; the message tells which and with what numbers."""


def check(snapshot: Snapshot, plan: Plan) -> None:
    """Raises LawError with every law that carrying out ``plan`` would break."""
    broken = list(broken_laws(snapshot, plan))
    if broken:
        raise LawError(f"{snapshot.now.isoformat()}: " + "; ".join(broken))


def broken_laws(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Capacity of nodes, now and once victims are gone, gangs whole, limits of every ancestor, shares that
    add up, firm work inside nominal, nobody displaced whom the rules protect or in vain, one word to
    everyone. A plan without shares is spared what needs them.
    """
    yield from list(over_nodes(snapshot, plan)) or over_nodes(snapshot, plan, later=True)
    yield from outside_sets(snapshot, plan)
    yield from torn_gangs(snapshot, plan)
    yield from torn_apart(snapshot, plan)
    yield from over_limits(snapshot, plan)
    yield from over_nominal(snapshot, plan)
    yield from unmerciful(snapshot, plan)
    yield from ungentle(snapshot, plan)
    yield from unexplained(snapshot, plan)
    if plan.fair_share:
        yield from over_shared(snapshot, plan)


def outcomes(snapshot: Snapshot, plan: Plan) -> Iterator[tuple[Workload, Decision | None]]:
    """Each workload with what the plan says of it."""
    lines = {decision.workload: decision for decision in plan.decisions}
    return ((workload, lines.get(workload.name)) for workload in snapshot.workloads)


def over_nodes(snapshot: Snapshot, plan: Plan, *, later: bool = False) -> Iterator[str]:
    """Victims still hold their GPUs: whoever is admitted in the same plan must fit beside them.

    ``later``: once they are gone, all who were promised room must have it.
    """
    gpus, cpus, memory = Counter[str](), Counter[str](), Counter[str]()
    beside = Counter[tuple[str, str]]()
    stated = {name for node in snapshot.nodes for name in node.beside}
    shared = Counter[tuple[str, int]]()
    seats, shares = (will_sit, will_share) if later else (sits, shares_of)
    for workload, decision in outcomes(snapshot, plan):
        for name, members in seats(workload, decision).items():
            gpus[name] += members * workload.gpus
            cpus[name] += members * workload.cpus
            memory[name] += members * workload.memory_mib
            for what in stated:
                beside[name, what] += members * amount_of(workload, what)
        for name, devices in shares(workload, decision):
            for device in devices:
                shared[name, device] += workload.gpus
    when = " once victims are gone" if later else ""
    for node in snapshot.nodes:
        yield from overfull(node, gpus[node.name], room(snapshot, node), f"milli-GPU{when}")
        if node.ready:
            yield from overfull(node, cpus[node.name], node.cpus, f"milli-CPU{when}")
            yield from overfull(node, memory[node.name], node.memory_mib, f"MiB{when}")
            for what in sorted(stated):
                left = node.beside.get(what, 0) - node.foreign_beside.get(what, 0)
                yield from overfull(node, beside[node.name, what], left, f"{what}{when}")
    for (name, device), used in shared.items():
        if used > MILLI:
            yield f"GPU {device} of node {name} holds {used} of {MILLI} milli-GPU{when}"


def amount_of(workload: Workload, what: str) -> int:
    """What a member takes of it."""
    return workload.beside.get(what, 1 if what == PLACES and workload.gpus else 0)


def outside_sets(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Nobody is newly seated where it may not run; who runs there already may stay."""
    sets: dict[str | None, Set[str]] = {s.name: s.nodes for s in snapshot.node_sets}
    sets[None] = {node.name for node in snapshot.nodes if not node.dedicated}
    for workload, decision in outcomes(snapshot, plan):
        if decision is not None and promised(decision):
            for name in (
                decision.placement.keys() - workload.placement.keys() - sets[workload.node_set]
            ):
                yield f"{workload.name} is sent to {name}, which it may not use"


def overfull(node: Node, usage: int, most: int | None, unit: str) -> Iterator[str]:
    if most is not None and usage > most:
        yield f"node {node.name} holds {usage} of {most} {unit}"


def sits(workload: Workload, decision: Decision | None) -> Counter[str]:
    """Members by node once the plan has begun: what grows or moves has both, what leaves is still there."""
    seats = Counter(workload.placement if workload.phase is Phase.RUNNING else {})
    if decision is not None and decision.action is Action.MOVE:
        seats += Counter(decision.placement)
    elif decision is not None and decision.action in SEATED:
        seats |= Counter(decision.placement)
    return seats + Counter(workload.leaving_members)


def will_sit(workload: Workload, decision: Decision | None) -> Counter[str]:
    """Members by node once all that leaves is gone and the promised ones have started."""
    if decision is not None and promised(decision):
        return Counter(decision.placement)
    goes = workload.leaving or (decision is not None and decision.action is Action.EVICT)
    return Counter() if goes or workload.phase is not Phase.RUNNING else Counter(workload.placement)


def promised(decision: Decision) -> bool:
    """It has seats, or gets them when its victims are gone."""
    return decision.action in SEATED or decision.reason is Reason.AWAITS_VICTIMS


def shares_of(
    workload: Workload, decision: Decision | None
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Devices by node on which it holds, or gets, a share of a GPU."""
    if workload.gpus >= MILLI:
        return
    yield from workload.leaving_devices.items()
    if decision is not None and decision.action is Action.MOVE:
        yield from decision.devices.items()
    if decision is not None and decision.action in (Action.ADMIT, Action.GROW):
        yield from decision.devices.items()
    elif workload.phase is Phase.RUNNING:
        yield from workload.devices.items()


def will_share(
    workload: Workload, decision: Decision | None
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The same once all that leaves is gone and the promised ones have started."""
    if workload.gpus >= MILLI or not will_sit(workload, decision):
        return
    seated = decision is not None and promised(decision)
    yield from (decision if decision is not None and seated else workload).devices.items()


def room(snapshot: Snapshot, node: Node) -> int:
    """What sits on a node that is no longer ready may stay there, no more may come."""
    if node.ready:
        return node.gpus - node.foreign_gpus
    return sum(w.gpus * sits(w, None)[node.name] for w in snapshot.workloads)


def torn_gangs(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    for workload, decision in outcomes(snapshot, plan):
        if decision is None or decision.action not in SEATED:
            continue
        placed = sum(decision.placement.values())
        least, most = workload.members.min, workload.members.max
        if placed != decision.members or not least <= placed <= most:
            yield f"{workload.name} got {placed} members, its gang is {least} to {most}"
        runs = workload.phase is Phase.RUNNING and not workload.leaving
        if runs and decision.action is Action.ADMIT:
            yield f"{workload.name} is admitted while it runs"
        if not runs and decision.action is not Action.ADMIT:
            yield f"{workload.name} is to {decision.action} but does not run"
        yield from wrong_way(workload, decision)
        yield from torn_members(workload, decision)


def torn_members(workload: Workload, decision: Decision) -> Iterator[str]:
    """Each role has the members that it may have, each of them whole on a node."""
    parts = Counter[str]()
    for role in workload.roles if decision.roles else ():
        seated = decision.roles.get(role.name, {})
        members, most = sum(seated.values()), role.members + role.extra
        if not role.members <= members <= most:
            least = role.members
            yield f"{workload.name} got {members} of {role.name}, which has {least} to {most}"
        for node, many in seated.items():
            parts[node] += many * role.gpus // workload.gpus
    if decision.roles and parts != Counter(decision.placement):
        yield f"{workload.name} got {dict(decision.placement)}, its members take {dict(parts)}"


def wrong_way(workload: Workload, decision: Decision) -> Iterator[str]:
    """Growing adds members to those that sit, shrinking only takes some away, moving keeps the number."""
    had, has = Counter(workload.placement), Counter(decision.placement)
    joins_another_gpu = workload.devices != decision.devices
    fine = {
        Action.GROW: had < has and workload.elastic,
        Action.SHRINK: has < had and workload.elastic,
        Action.MOVE: had.total() == has.total() and (had != has or joins_another_gpu),
    }.get(decision.action, True)
    if not fine:
        yield f"{workload.name} is to {decision.action} from {dict(had)} to {dict(has)}"


def held_after(snapshot: Snapshot, plan: Plan, *, firm: bool = False) -> tuple[Held, Held]:
    """What each queue and all above it hold once victims are gone, and what the plan adds to them.

    ``firm``: only of what cannot be preempted.
    """
    above = {queue.name: queue.parent for queue in snapshot.queues}
    fixed = {rank.name for rank in snapshot.priority_classes if not rank.preemptible}
    usage, added = Held(), Held()
    for workload, decision in outcomes(snapshot, plan):
        if firm and workload.priority_class not in fixed:
            continue
        gpu_class, before, after = workload.gpu_class or "", 0, 0
        if workload.phase is Phase.RUNNING and not workload.leaving:
            before = after = sum(workload.placement.values())
        if decision is not None and decision.action in SEATED:
            gpu_class, after = decision.gpu_class or gpu_class, decision.members
        elif decision is not None and decision.action is Action.EVICT:
            after = 0
        queue: str | None = workload.queue
        while after and queue is not None:
            usage[queue, gpu_class] += workload.gpus * after
            added[queue, gpu_class] += workload.gpus * max(0, after - before)
            queue = above.get(queue)
    return usage, added


def over_limits(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Only queues that the plan adds to: a limit lowered under running work is no fault of the plan."""
    usage, added = held_after(snapshot, plan)
    quotas = {queue.name: queue.quotas for queue in snapshot.queues}
    for queue, gpu_class in sorted(key for key, gpus in added.items() if gpus > 0):
        limit = limit_of(quotas.get(queue, {}).get(gpu_class, Quota()))
        if limit is not None and usage[queue, gpu_class] > limit:
            yield f"queue {queue} holds {usage[queue, gpu_class]} of {limit} milli-GPU of {gpu_class}"


def limit_of(quota: Quota) -> int | None:
    """Weight zero gets nothing above nominal."""
    if quota.weight == 0:
        return quota.nominal
    return None if quota.borrowing_limit is None else quota.nominal + quota.borrowing_limit


def over_nominal(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Work that cannot be preempted starts only inside nominal."""
    usage, added = held_after(snapshot, plan, firm=True)
    quotas = {queue.name: queue.quotas for queue in snapshot.queues}
    for queue, gpu_class in sorted(key for key, gpus in added.items() if gpus > 0):
        nominal = quotas.get(queue, {}).get(gpu_class, Quota()).nominal
        if usage[queue, gpu_class] > nominal:
            yield (
                f"queue {queue} holds {usage[queue, gpu_class]} milli-GPU of {gpu_class} that cannot be "
                f"preempted, its nominal is {nominal}"
            )


def over_shared(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Fair shares of siblings never sum past what their parent divides."""
    kids: dict[str, list[str]] = {}
    for queue in snapshot.queues:
        kids.setdefault(queue.parent or "", []).append(queue.name)
    for parent, names in kids.items():
        for gpu_class, share in plan.fair_share.get(parent, {}).items():
            total = sum(plan.fair_share[name][gpu_class].fair_share for name in names)
            if total > share.fair_share + share.kept_back + ROUNDING:
                yield f"shares of {gpu_class} below {parent!r} sum to {total} of {share.fair_share}"


def unexplained(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    lines = Counter(decision.workload for decision in plan.decisions)
    yield from (f"{name} is told {count} things" for name, count in lines.items() if count > 1)
    for workload, decision in outcomes(snapshot, plan):
        if workload.phase is Phase.PENDING and decision is None:
            yield f"{workload.name} waits without a reason"
