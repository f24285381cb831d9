"""Work that may be displaced, moved or made smaller, and by whom: laws 4, 6, 7 and 11, held against one
plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

from scheduling.engine.model import (
    Action,
    Decision,
    Phase,
    Plan,
    PriorityClass,
    Queue,
    Reason,
    Snapshot,
    Workload,
)

TAKES = (Action.EVICT, Action.SHRINK)
INTERRUPTS = (Action.EVICT, Action.MOVE)


class Case:
    """A snapshot and a plan with what the laws look up in them by name."""

    def __init__(self, snapshot: Snapshot, plan: Plan) -> None:
        self.snapshot, self.plan = snapshot, plan
        self.work: Mapping[str, Workload] = {w.name: w for w in snapshot.workloads}
        self.ranks: Mapping[str, PriorityClass] = {p.name: p for p in snapshot.priority_classes}
        self.queues: Mapping[str, Queue] = {q.name: q for q in snapshot.queues}

    def victims(
        self, actions: Iterable[Action] = TAKES
    ) -> Iterator[tuple[Workload, Workload, Decision]]:
        """Each that gives something up for another, with that other."""
        for decision in self.plan.decisions:
            if decision.action in actions and decision.for_workload is not None:
                winner = self.work[decision.for_workload]
                yield self.work[decision.workload], winner, decision

    def path(self, name: str) -> list[str]:
        """The queue and all above it."""
        found = []
        while name in self.queues:
            found.append(name)
            name = self.queues[name].parent or ""
        return found

    def nominal(self, queue: str, gpu_class: str) -> int:
        """Milli-GPU."""
        quota = self.queues[queue].quotas.get(gpu_class)
        return 0 if quota is None else quota.nominal

    def below_meeting(self, victim: Workload, winner: Workload) -> list[str]:
        """The victim's queue and those above it up to where both paths meet, which is not among them."""
        other = set(self.path(winner.queue))
        return [queue for queue in self.path(victim.queue) if queue not in other]


def unmerciful(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    case = Case(snapshot, plan)
    yield from protected_victims(case)
    yield from impatient_winners(case)
    yield from over_budgets(case)
    yield from over_caps(case)
    yield from endless_protection(case)
    if plan.fair_share:
        yield from taken_from_the_poor(case)
        yield from taken_within_grace(case)


def protected_victims(case: Case) -> Iterator[str]:
    """Law 6: min run time, and work that cannot be preempted. Giving members up is no end of a run; a
    move is one, and nobody moves before the cooldown of its last start is over.
    """
    for victim, winner, decision in case.victims((*TAKES, Action.MOVE)):
        rank = case.ranks[victim.priority_class]
        if not rank.preemptible:
            yield f"{victim.name} is to {decision.action} though {rank.name} is not preemptible"
        if victim.started is None or decision.action not in INTERRUPTS:
            continue
        ran_s = (case.snapshot.now - victim.started).total_seconds()
        shield_s = min_run_time_s(case, victim, winner)
        if decision.action is Action.MOVE:
            shield_s = max(shield_s, case.snapshot.policy.cooldown_s)
        if ran_s < shield_s:
            yield f"{victim.name} is to {decision.action} after {ran_s:.0f} of {shield_s} s"


def min_run_time_s(case: Case, victim: Workload, winner: Workload) -> int:
    """As the queue says in which both part, on the victim's side; else as its priority class says."""
    parts = (case.below_meeting(victim, winner) or [victim.queue])[-1]
    for name in case.path(parts):
        shield_s = case.queues[name].min_run_time_s
        if shield_s is not None:
            return shield_s
    return case.ranks[victim.priority_class].min_run_time_s


def impatient_winners(case: Case) -> Iterator[str]:
    """Law 6: nobody displaces another before it has waited as long as the policy asks."""
    delay = timedelta(seconds=case.snapshot.policy.preemption_delay_s)
    for victim, winner, _ in case.victims():
        if winner.submitted + delay > case.snapshot.now:
            yield f"{victim.name} makes room for {winner.name}, which has not waited {delay}"
    yield from dominoes(case)


def dominoes(case: Case) -> Iterator[str]:
    """Law 6: who was evicted a moment ago preempts nobody."""
    rest = timedelta(seconds=case.snapshot.policy.cooldown_s)
    for victim, winner, decision in case.victims():
        is_own = victim.queue == winner.queue and decision.reason is not Reason.GIVES_WAY
        if is_own and winner.last_evicted and winner.last_evicted + rest > case.snapshot.now:
            yield f"{victim.name} makes room for {winner.name}, which was evicted itself less than {rest} ago"


def given_up(victim: Workload, decision: Decision) -> int:
    """Milli-GPU."""
    rest = decision.members if decision.action is Action.SHRINK else 0
    return victim.gpus * (sum(victim.placement.values()) - rest)


def interrupted(victim: Workload, decision: Decision) -> int:
    """Milli-GPU that count as evicted: not the members that an elastic gang can do without."""
    members = decision.members
    if victim.elastic and decision.action is Action.EVICT:
        members = min(members, victim.members.min)
    return victim.gpus * members


def over_budgets(case: Case) -> Iterator[str]:
    """Law 6: no queue loses more than its budget."""
    spent: Counter[str] = Counter()
    for victim, _, decision in case.victims(INTERRUPTS):
        for name in case.path(victim.queue):
            spent[name] += interrupted(victim, decision)
    for queue in case.snapshot.queues:
        budget = queue.eviction_budget_gpus
        if budget is not None and spent[queue.name] > budget:
            yield f"queue {queue.name} loses {spent[queue.name]} of {budget} milli-GPU"


def over_caps(case: Case) -> Iterator[str]:
    """Law 7."""
    cap = case.snapshot.policy.eviction_cap
    if cap is None:
        return
    evicted: Counter[str] = Counter()
    for victim, winner, decision in case.victims(INTERRUPTS):
        evicted[winner.name] += interrupted(victim, decision)
    for name, gpus in evicted.items():
        need = case.work[name].gpus * case.work[name].members.min
        if gpus > cap * need:
            yield f"{name} asks for {need} milli-GPU and has {gpus} evicted, the cap is {cap}"


def endless_protection(case: Case) -> Iterator[str]:
    """Law 6: who waits because victims are protected is told until when."""
    for decision in case.plan.decisions:
        if decision.reason is not Reason.VICTIMS_PROTECTED or decision.action is not Action.WAIT:
            continue
        if decision.until is None or decision.until <= case.snapshot.now:
            yield f"{decision.workload} waits for protected victims until {decision.until}"


def taken_from_the_poor(case: Case) -> Iterator[str]:
    """Law 4: when a victim goes, its leaf holds more than its share, so that is reduced by it; or, where
    nominal is owed, more than its own nominal.
    """
    usage: Counter[tuple[str, str]] = Counter()
    for workload in case.snapshot.workloads:
        if workload.phase is Phase.RUNNING and not workload.leaving:
            gpus = workload.gpus * sum(workload.placement.values())
            _book(case, usage, workload, workload.gpu_class or "", gpus)
    for decision in case.plan.decisions:
        workload, kind = case.work[decision.workload], decision.gpu_class or ""
        if decision.action in TAKES:
            has, keeps = usage[workload.queue, kind], _left_by(case, usage, decision)
            if decision.reason is Reason.RECLAIMED and has <= keeps:
                yield f"{workload.name} is reclaimed though {workload.queue} holds {has} of {keeps}"
            _book(case, usage, workload, kind, -given_up(workload, decision))
        elif decision.action is Action.ADMIT or decision.reason is Reason.AWAITS_VICTIMS:
            _book(case, usage, workload, kind, workload.gpus * decision.members)


def _book(
    case: Case, usage: Counter[tuple[str, str]], workload: Workload, gpu_class: str, gpus: int
) -> None:
    for name in case.path(workload.queue):
        usage[name, gpu_class] += gpus


def _left_by(case: Case, usage: Counter[tuple[str, str]], decision: Decision) -> float:
    """What a reclaim has to leave the victim's leaf: its share; no more than its nominal where that of a
    queue of the workload it is for, below their meeting, covers what that one asks for.
    """
    kind, victim = decision.gpu_class or "", case.work[decision.workload]
    fair = fair_share(case, victim.queue, kind)
    winner = case.work.get(decision.for_workload or "")
    if winner is None:
        return fair
    need = winner.gpus * winner.members.min
    owed = any(
        usage[name, kind] + need <= case.nominal(name, kind)
        for name in case.below_meeting(winner, victim)
    )
    return min(fair, case.nominal(victim.queue, kind)) if owed else fair


def fair_share(case: Case, queue: str, gpu_class: str) -> float:
    shares = case.plan.fair_share.get(queue, {})
    return shares[gpu_class].fair_share if gpu_class in shares else 0.0


def taken_within_grace(case: Case) -> Iterator[str]:
    """Law 11: while the grace of a lowered quota lasts, reclaim leaves the queue its former nominal, but
    for the part of a gang that sticks out of it.
    """
    gone: Counter[tuple[str, str]] = Counter()
    largest: Counter[tuple[str, str]] = Counter()
    for victim, winner, decision in case.victims():
        if decision.reason is not Reason.RECLAIMED:
            continue
        gpus = given_up(victim, decision)
        for name in case.below_meeting(victim, winner):
            key = name, victim.gpu_class or ""
            gone[key] += gpus
            largest[key] = max(largest[key], gpus)
    for (name, gpu_class), gpus in gone.items():
        quota = case.queues[name].quotas.get(gpu_class)
        if quota is None or quota.lowered is None or quota.lowered.until <= case.snapshot.now:
            continue
        left = case.plan.fair_share[name][gpu_class].allocated - gpus
        if left + largest[name, gpu_class] <= quota.lowered.nominal:
            yield f"queue {name} is left {left} milli-GPU of {gpu_class} within its grace"
