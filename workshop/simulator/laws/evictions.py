"""Least disruptive first (DESIGN 3.3), held against one plan: who moves is seated again for somebody who
gets the room, and nobody is evicted where members that elastic gangs can do without would have done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from scheduling.engine.model import (
    MILLI,
    Action,
    Decision,
    Phase,
    Plan,
    Quota,
    Reason,
    Snapshot,
    Workload,
)
from workshop.simulator.laws.protection import Case, fair_share

Held = Counter[tuple[str, str]]


def ungentle(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    case = Case(snapshot, plan)
    yield from late_victims(case)
    yield from wrongful_moves(case)
    if plan.fair_share:
        yield from needless_evictions(case)


def late_victims(case: Case) -> Iterator[str]:
    """Decisions stand in the order in which they are carried out: victims before whom they make room for. Not
    members given up for a gang that has its least, and grows by them later.
    """
    place = {decision.workload: i for i, decision in enumerate(case.plan.decisions)}
    starts = {d.workload for d in case.plan.decisions if d.action is Action.ADMIT}
    for victim, winner, decision in case.victims((Action.EVICT, Action.SHRINK, Action.MOVE)):
        sits = winner.phase is Phase.RUNNING or winner.name in starts
        if decision.action is Action.SHRINK and winner.elastic and sits:
            continue
        if winner.name not in place or place[winner.name] < place[victim.name]:
            yield f"{victim.name} is to {decision.action} after {winner.name}, for whom it does"


def wrongful_moves(case: Case) -> Iterator[str]:
    """Nobody moves for a lower priority, for one that gets no room, or with more than the policy allows."""
    lines = {decision.workload: decision for decision in case.plan.decisions}
    moved: Counter[str] = Counter()
    for victim, winner, _ in case.victims((Action.MOVE,)):
        moved[winner.name] += 1
        line = lines.get(winner.name)
        if line is None or not (line.action is Action.ADMIT or _awaits(line)):
            yield f"{victim.name} moves for {winner.name}, which gets no room"
        if case.ranks[victim.priority_class].value > case.ranks[winner.priority_class].value:
            yield f"{victim.name} moves for {winner.name}, which has a lower priority"
    for name, count in moved.items():
        if count > case.snapshot.policy.max_moves:
            yield f"{count} workloads move for {name}, {case.snapshot.policy.max_moves} may"


def _awaits(decision: Decision) -> bool:
    return decision.reason is Reason.AWAITS_VICTIMS


def needless_evictions(case: Case) -> Iterator[str]:
    """A victim is spared if on each of its nodes an elastic gang of its own queue can still do without as
    much: what allowed the one to go would have allowed the others, but for a workload that would get what
    the gang gives up: it keeps nodes of the class, or, where the victim had only a share of a GPU, waits for
    whole ones inside its queues' shares and may have kept nodes when the victim was chosen.
    """
    usage, gone = held_before(case), list[tuple[Workload, Workload, Decision]]()
    victims = {
        victim.name: found for found in case.victims((Action.EVICT,)) for victim in found[:1]
    }
    for decision in case.plan.decisions:
        if decision.action is not Action.SHRINK:
            _book(case, usage, decision)
        if decision.workload in victims:
            gone.append(victims[decision.workload])
            continue
        for victim, winner, eviction in gone:
            if winner.name == decision.workload:
                yield from _spared(case, usage, victim, winner, eviction)


def _spared(
    case: Case, usage: Held, victim: Workload, winner: Workload, eviction: Decision
) -> Iterator[str]:
    lines = {decision.workload: decision for decision in case.plan.decisions}
    kept_for = (d.workload for d in lines.values() if _keeps_nodes(d, victim.gpu_class))
    if any(name != winner.name for name in kept_for):
        return
    others = (work for work in case.snapshot.workloads if work.name != winner.name)
    if victim.gpus < MILLI and any(
        _waits_inside(case, usage, work, lines, victim.gpu_class or "") for work in others
    ):
        return
    for gang in case.snapshot.workloads:
        if gang.queue != victim.queue or gang.gpu_class != victim.gpu_class:
            continue
        members = _could_give(case, gang, victim, lines.get(gang.name))
        # What it had given up for others before is none of what goes for this one.
        more = gang.gpus * members - victim.gpus * eviction.members
        if members and _may_be_asked(case, gang, winner, eviction, more, usage):
            yield f"{victim.name} is evicted though {gang.name} can do without as many members"


def _keeps_nodes(decision: Decision, gpu_class: str | None) -> bool:
    reserves = decision.action is Action.RESERVE and not _awaits(decision)
    return reserves and decision.gpu_class == gpu_class


def _waits_inside(
    case: Case, usage: Held, work: Workload, lines: dict[str, Decision], kind: str
) -> bool:
    """It waits for whole GPUs of the class and its queues' shares have room for all of its least members."""
    line, need = lines.get(work.name), work.gpus * work.members.min
    if line is None or line.action is not Action.WAIT or work.gpus < MILLI:
        return False
    if work.gpu_classes and kind not in work.gpu_classes:
        return False
    return all(
        usage[name, kind] + need <= fair_share(case, name, kind) for name in case.path(work.queue)
    )


def _could_give(case: Case, gang: Workload, victim: Workload, line: Decision | None) -> int:
    """How many members beyond its least cover what the victim holds on each of its nodes, after the plan;
    0 if they do not.
    """
    runs = gang.phase is Phase.RUNNING and not gang.leaving and gang.elastic
    if not runs or gang.gpus < MILLI or not case.ranks[gang.priority_class].preemptible:
        return 0
    if line is not None and line.action is not Action.SHRINK:
        return 0
    sits = gang.placement if line is None else line.placement
    wanted = {
        node: _members_for(gang, victim, members) for node, members in victim.placement.items()
    }
    enough = all(count <= sits.get(node, 0) for node, count in wanted.items())
    spare = sum(sits.values()) - gang.members.min
    return sum(wanted.values()) if enough and sum(wanted.values()) <= spare else 0


def _members_for(gang: Workload, victim: Workload, members: int) -> int:
    """How many members of the gang hold as much as ``members`` of the victim."""
    pairs = (
        (victim.gpus, gang.gpus), (victim.cpus, gang.cpus), (victim.memory_mib, gang.memory_mib)
    )  # fmt: skip
    many = 1
    for need, one in pairs:
        if need:
            many = max(many, -(-need * members // one) if one else 1 << 40)
    return many


def _may_be_asked(
    case: Case, gang: Workload, winner: Workload, eviction: Decision, more: int, usage: Held
) -> bool:
    """By the rule that took the victim; ``more`` milli-GPU beyond what the victim held leave its queues
    inside nothing that is theirs.
    """
    if eviction.reason is Reason.PREEMPTED:
        value = case.ranks[gang.priority_class].value
        return value < case.ranks[winner.priority_class].value
    kind = gang.gpu_class or ""
    queues = case.below_meeting(gang, winner)
    return all(usage[name, kind] - more >= keeps(case, name, kind) for name in queues)


def keeps(case: Case, queue: str, gpu_class: str) -> float:
    """What evictions leave it: its fair share, or without end while the grace of any lowering runs."""
    for other in case.snapshot.queues:
        lowered = other.quotas.get(gpu_class, Quota()).lowered
        if lowered is not None and lowered.until > case.snapshot.now:
            return float("inf")
    return fair_share(case, queue, gpu_class)


def held_before(case: Case) -> Held:
    """(queue, class) -> milli-GPU that it and all below it hold, but for what is leaving and for members
    that are given up: a gang may give some to several, and its one line stands where the last of them does.
    """
    usage = Held()
    for decision in case.plan.decisions:
        if decision.action is Action.SHRINK:
            _book(case, usage, decision)
    for workload in case.snapshot.workloads:
        if workload.phase is Phase.RUNNING and not workload.leaving:
            gpus = workload.gpus * sum(workload.placement.values())
            for name in case.path(workload.queue):
                usage[name, workload.gpu_class or ""] += gpus
    return usage


def _book(case: Case, usage: Held, decision: Decision) -> None:
    """What the decision makes of it. Decisions stand in the order in which they fell."""
    workload = case.work[decision.workload]
    before = sum(workload.placement.values()) if workload.phase is Phase.RUNNING else 0
    if decision.action in (Action.EVICT, Action.SHRINK, Action.GROW):
        after = 0 if decision.action is Action.EVICT else decision.members
    elif decision.action is Action.ADMIT or _awaits(decision):
        before, after = 0, decision.members
    else:
        return
    for name in case.path(workload.queue):
        usage[name, decision.gpu_class or ""] += workload.gpus * (after - before)
