"""What the world does with a plan, and what must hold in any world."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

from scheduling.engine import (
    MILLI,
    Action,
    Decision,
    Phase,
    Plan,
    Queue,
    Reason,
    Snapshot,
    Workload,
    plan,
)
from scheduling.simulation.run.carrying import after as carried_out
from scheduling.simulation.run.carrying import gone, lines, room_due, settled, taken_by, with_taken

RESEATS = {Action.GROW, Action.SHRINK, Action.MOVE}
ACTS = {Action.ADMIT, Action.EVICT} | RESEATS


def apply(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """``snapshot`` once ``plan`` is carried out, at the same time: admitted work runs, evicted work is
    leaving, promised work waits for its victims.

    GPUs of members that were given up, or moved away from, are held until ``gone``.
    """
    taken = taken_by(snapshot.workloads, plan.decisions)
    works = tuple(
        work if line is None else carried_out(work, line, snapshot.now)
        for work, line in lines(with_taken(snapshot.workloads, taken), plan.decisions)
    )
    return replace(snapshot, workloads=works, queues=_with_budgets_spent(snapshot, plan))


def _with_budgets_spent(snapshot: Snapshot, plan: Plan) -> tuple[Queue, ...]:
    """What was evicted from a queue and all below it is gone from its budget."""
    parents = {queue.name: queue.parent for queue in snapshot.queues}
    works = {work.name: work for work in snapshot.workloads}
    spent: Counter[str] = Counter()
    for one in plan.decisions:
        victim = works[one.workload]
        queue = victim.queue if one.action in (Action.EVICT, Action.MOVE) else None
        while queue is not None:
            spent[queue] += victim.gpus * one.members
            queue = parents[queue]
    return tuple(
        queue
        if queue.eviction_budget_gpus is None
        else replace(
            queue, eviction_budget_gpus=max(0, queue.eviction_budget_gpus - spent[queue.name])
        )
        for queue in snapshot.queues
    )


def without_prompt_starts(before: Snapshot, decisions: list[Decision]) -> list[Decision]:
    """Less the starts of those with a claim in ``before``, on GPUs that nobody else claims."""
    claims = {w.name for w in before.workloads if w.awaits_victims}
    return [d for d in decisions if d.action is not Action.ADMIT or d.workload not in claims]


def acts(plan: Plan) -> list[Decision]:
    """The decisions that change something."""
    return [d for d in plan.decisions if d.action in ACTS]


def acts_and_promises(plan: Plan) -> list[Decision]:
    """The decisions that change who holds what, now or once victims are gone."""
    promised = (d for d in plan.decisions if d.reason is Reason.AWAITS_VICTIMS)
    names = {d.workload for d in promised}
    return [d for d in plan.decisions if d.action in ACTS or d.workload in names]


def claims_what_was_lent(made: Plan, again: Plan) -> bool:
    """Whether all that ``again`` does is a claim that ``made`` gave rise to: it lifted a queue past its
    share, which entitles who waited for quota to what another of it holds (docs/design/no-ping-pong.md).
    """
    lent = any(d.reason is Reason.BORROWS for d in made.decisions)
    waited = {d.workload for d in made.decisions if d.reason is Reason.WAITS_FOR_QUOTA}
    done = acts(again)
    return lent and bool(done) and all((d.for_workload or d.workload) in waited for d in done)


def plan_again(snapshot: Snapshot, made: Plan) -> tuple[Snapshot, Plan]:
    """What ``made`` leaves and the next plan on it; the one after that where the next only claims what was
    lent."""
    after = apply(snapshot, made)
    again = plan(after)
    if claims_what_was_lent(made, again):
        after = apply(after, again)
        again = plan(after)
    return after, again


def with_room_due(snapshot: Snapshot) -> Snapshot:
    """Room of claims for which nobody leaves any more is due."""
    going = {w.name for w in snapshot.workloads if w.leaving or w.leaving_members}
    works = (
        replace(work, room_due=room_due((), work.room_due, snapshot.now))
        if work.awaits_victims and going.isdisjoint(work.victims)
        else work
        for work in snapshot.workloads
    )
    return replace(snapshot, workloads=tuple(works))


def let_leave(snapshot: Snapshot, *, requeue: bool = True) -> Snapshot:
    """Pods of leaving work are gone; it is pending again, or ended."""
    kept = []
    for work in snapshot.workloads:
        if not work.leaving:
            kept.append(settled(work))
        elif requeue:
            kept.append(gone(work))
    names = {work.name for work in kept}
    still = (replace(w, victims=tuple(n for n in w.victims if n in names)) for w in kept)
    return with_room_due(replace(snapshot, workloads=tuple(still)))


def led_to(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """What ``plan`` leads to once what leaves is gone: claims run."""
    met = (
        replace(settled(w), phase=Phase.RUNNING if w.awaits_victims else w.phase)
        for w in apply(snapshot, plan).workloads
        if not w.leaving
    )
    return replace(snapshot, workloads=tuple(met))


def wait(snapshot: Snapshot, seconds: float) -> Snapshot:
    return replace(snapshot, now=snapshot.now + timedelta(seconds=seconds))


def held(snapshot: Snapshot, *, with_leaving: bool = True) -> Counter[tuple[str, str]]:
    """Milli-GPU that each queue and all above it hold, by (queue, class)."""
    parents = {q.name: q.parent for q in snapshot.queues}
    found: Counter[tuple[str, str]] = Counter()
    for work in snapshot.workloads:
        if work.phase is not Phase.RUNNING or (work.leaving and not with_leaving):
            continue
        queue: str | None = work.queue if work.queue in parents else None
        members = sum(work.placement.values())
        members += sum(work.leaving_members.values()) if with_leaving else 0
        while queue is not None:
            found[queue, work.gpu_class or ""] += work.gpus * members
            queue = parents[queue]
    return found


def check_nodes(snapshot: Snapshot, before: Snapshot | None = None) -> None:
    """No node holds more GPUs, CPUs or memory than it has, or held ``before``; no GPU is shared past one."""
    used, had = _used(snapshot), _used(before) if before else Counter()
    for node in snapshot.nodes:
        key = (node.name, node.gpu_class, "gpus")
        most = max(node.gpus - node.foreign_gpus, had[key])
        assert used[key] <= most, f"{node.name} is overfull"
        assert node.cpus is None or used[node.name, "", "cpus"] <= node.cpus
        assert node.memory_mib is None or used[node.name, "", "memory"] <= node.memory_mib


def _used(snapshot: Snapshot) -> Counter[tuple[str, str, str]]:
    """What runs on each node, by class and resource."""
    used: Counter[tuple[str, str, str]] = Counter()
    shared: Counter[tuple[str, str, int]] = Counter()
    for work in snapshot.workloads:
        if work.phase is not Phase.RUNNING:
            continue
        kind = work.gpu_class or ""
        there = Counter(work.placement) + Counter(work.leaving_members)
        for role in work.roles:
            for node, members in (*role.placement.items(), *role.leaving.items()):
                used[node, "", "cpus"] += members * role.cpus
                used[node, "", "memory"] += members * role.memory_mib
        for node, members in there.items():
            used[node, "", "cpus"] += members * work.cpus
            used[node, "", "memory"] += members * work.memory_mib
            if work.gpus >= MILLI:
                used[node, kind, "gpus"] += members * work.gpus
            for device in (*work.devices.get(node, ()), *work.leaving_devices.get(node, ())):
                shared[node, kind, device] += work.gpus
    for (node, kind, _), gpus in shared.items():
        assert gpus <= MILLI, f"a GPU of {node} is shared past one"
        used[node, kind, "gpus"] += MILLI
    return used


def check_plan(snapshot: Snapshot, plan: Plan) -> None:
    """What is true of every plan, whatever the snapshot."""
    _check_lines(snapshot, plan)
    after = apply(snapshot, plan)
    check_nodes(after, snapshot)
    _check_limits(snapshot, after, plan)
    _check_shares(snapshot, plan)


def _check_lines(snapshot: Snapshot, plan: Plan) -> None:
    """Law 10: one line for each that does not run, with a reason and a sentence; none for the rest."""
    lines = Counter(d.workload for d in plan.decisions if d.action is not Action.LAPSE)
    assert not lines or max(lines.values()) == 1
    for work in snapshot.workloads:
        if work.phase is Phase.PENDING:
            assert work.name in lines, f"{work.name} has no decision"
    for decision in plan.decisions:
        assert decision.sentence.endswith("."), decision
        assert "-1" not in decision.sentence, decision.sentence


def _check_limits(before: Snapshot, after: Snapshot, plan: Plan) -> None:
    """Law 1 on limits, law 3 on gangs: a plan lifts no queue past its limit and starts no part gang."""
    had, has = held(before), held(after)
    for queue in after.queues:
        for kind, quota in queue.quotas.items():
            key = (queue.name, kind)
            if quota.borrowing_limit is not None and has[key] > had[key]:
                assert has[key] <= quota.nominal + quota.borrowing_limit, key
            if quota.weight == 0 and has[key] > had[key]:
                assert has[key] <= quota.nominal, key
    started = {w.name for w in before.workloads if w.phase is Phase.PENDING}
    reseated = {d.workload for d in plan.decisions if d.action in RESEATS}
    for work in after.workloads:
        if work.name in started and work.phase is Phase.RUNNING:
            assert work.members.min <= sum(work.placement.values()) <= work.members.max
            assert work.gpu_class in work.gpu_classes or not work.gpu_classes
            _check_roles(work)
        if work.name in reseated:
            _check_roles(work)


def _check_roles(work: Workload) -> None:
    """All members of each role sit, whole, and hold by node the parts that the gang is counted by."""
    parts: Counter[str] = Counter()
    for role in work.roles:
        members = sum(role.placement.values())
        assert role.members <= members <= role.members + role.extra, work.name
        for node, members in role.placement.items():
            parts[node] += members * role.gpus // work.gpus
    assert not work.roles or parts == Counter(work.placement), work.name


def _check_shares(snapshot: Snapshot, plan: Plan) -> None:
    """Law 1 on shares: siblings never sum past what they divide."""
    for parent in ["", *(q.name for q in snapshot.queues)]:
        kids = [q.name for q in snapshot.queues if (q.parent or "") == parent]
        for kind, share in plan.fair_share[parent].items():
            if kids:
                total = sum(plan.fair_share[kid][kind].fair_share for kid in kids)
                assert total <= share.fair_share + share.kept_back + 1e-2, (parent, kind)
