"""From a snapshot and its plan to the next snapshot: the one place that says what a plan leaves behind.

Simulator, forecasts, what-ifs and tests take their next snapshot from here; the live worker, whose next
snapshot comes from the cluster and the ledger, is held against it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Set
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from scheduling.engine.model import Action, Decision, Phase, Plan, Reason, Role, Snapshot, Workload
from scheduling.engine.roles import seated
from scheduling.engine.workload import keeps_seats

Fields = dict[str, Any]

NO_CLAIM: Fields = {
    "awaits_victims": False, "victims": (), "claimed_since": None, "room_due": None,
}  # fmt: skip
MAKES_ROOM = (Action.EVICT, Action.SHRINK, Action.MOVE)
DAY = timedelta(days=1)
"""Evictions are counted for so long."""


def lines(
    works: Iterable[Workload], decisions: Iterable[Decision]
) -> Iterator[tuple[Workload, Decision | None]]:
    """Each with what is decided about it; those whose claim lapses without one, and who still leaves for one
    of these with a claim to its own seats."""
    works = list(works)
    lapsed = {one.workload for one in decisions if one.action is Action.LAPSE}
    rest = {one.workload: one for one in decisions if one.action is not Action.LAPSE}
    others = [w for w in works if lapsed and w.awaits_victims and w.name not in lapsed]
    claimed = {node for work in others for node in work.placement}
    return (
        (
            without_claim(work) if work.name in lapsed else _spared(work, lapsed, claimed),
            rest.get(work.name),
        )
        for work in works
    )


def _spared(work: Workload, lapsed: Container[str], claimed: Set[str]) -> Workload:
    leaves = work.leaving and work.last_evicted_for in lapsed
    if keeps_seats(leaves, work.gpus, not claimed.isdisjoint(work.placement)):
        return replace(work, awaits_victims=True, claimed_since=work.last_evicted)
    return work


def taken_by(works: Iterable[Workload], decisions: Iterable[Decision]) -> Mapping[str, int]:
    """By name for whom milli-GPU are evicted, and how many."""
    gpus = {work.name: work.gpus for work in works}
    taken: Counter[str] = Counter()
    for one in decisions:
        if one.action is Action.EVICT and one.for_workload:
            taken[one.for_workload] += gpus.get(one.workload, 0) * one.members
    return taken


def with_taken(works: Iterable[Workload], taken: Mapping[str, int]) -> Iterator[Workload]:
    for work in works:
        more = taken.get(work.name, 0)
        yield replace(work, taken_gpus=work.taken_gpus + more) if more else work


def after(work: Workload, decision: Decision, now: datetime, *, at_once: bool = False) -> Workload:
    """``work`` once what was decided about it ``now`` is carried out.

    GPUs of members that were given up, or moved away from, are held until ``gone``; with ``at_once`` they are
    free.
    """
    match decision.action:
        case Action.ADMIT:
            begun: Fields = {"phase": Phase.RUNNING, "started": now, "checkpointed": None}
            return replace(work, **begun, **NO_CLAIM, **_seats(work, decision), taken_gpus=0)
        case Action.EVICT:
            return evicted(work, now, decision.for_workload)
        case Action.GROW | Action.SHRINK | Action.MOVE:
            return _reseated(work, decision, now, at_once=at_once)
    if decision.reason is not Reason.AWAITS_VICTIMS:
        return without_claim(work)
    is_same = work.awaits_victims and len(decision.victims) <= len(work.victims)
    return replace(
        work,
        awaits_victims=True,
        victims=decision.victims,
        claimed_since=work.claimed_since or now,
        room_due=work.room_due if is_same else None,
        **_seats(work, decision),
    )


def evicted(work: Workload, now: datetime, rival: str | None) -> Workload:
    """It is leaving, for ``rival`` if for anybody; after a day without an eviction they count from one. Work
    that is leaving, and kept its seats, is not evicted twice."""
    if work.leaving:
        return replace(work, last_evicted=now, last_evicted_for=rival, **NO_CLAIM)
    is_past = work.last_evicted is not None and work.last_evicted <= now - DAY
    return replace(
        work,
        leaving=True,
        evictions=1 if is_past else work.evictions + 1,
        last_evicted=now,
        last_evicted_for=rival,
    )


def without_claim(work: Workload) -> Workload:
    """It waits like any other: no seats are kept for it."""
    return replace(work, **NO_CLAIM, **_no_seats(work)) if work.awaits_victims else work


def gone(work: Workload) -> Workload:
    """Its pods are gone, and it waits again; on its own seats where it keeps them."""
    keeps = work.leaving and work.awaits_victims
    return replace(
        settled(work),
        phase=Phase.PENDING,
        started=None,
        checkpointed=None,
        stale_since=None,
        leaving=False,
        **({} if keeps else NO_CLAIM | _no_seats(work)),
    )


def settled(work: Workload) -> Workload:
    """The pods of members that it gave up, or moved away from, are gone."""
    roles = tuple(replace(role, leaving={}) for role in work.roles)
    return replace(work, leaving_members={}, leaving_devices={}, roles=roles)


def room_due(
    gone_by: Iterable[datetime | None], known: datetime | None, now: datetime
) -> datetime | None:
    """When the room of a claim is due: when the last of those who leave for it is ``gone_by``, None where
    that is not known of one; once nobody leaves, at once, or when it was due by what is ``known``.
    """
    left = list(gone_by)
    if not left:
        return now if known is None else min(known, now)
    times = [at for at in left if at is not None]
    return max(times) if len(times) == len(left) else None


def _reseated(work: Workload, decision: Decision, now: datetime, *, at_once: bool) -> Workload:
    """It goes on with other members, which is as good as a checkpoint, or starts again elsewhere."""
    moves = decision.action is Action.MOVE
    left: Fields = {}
    if moves and not at_once:
        left = {"leaving_members": work.placement, "leaving_devices": work.devices}
    elif decision.action is Action.SHRINK and not at_once:
        left = _given_up(work, decision)
    changes: Fields = {"placement": dict(decision.placement), "devices": dict(decision.devices)}
    roles = seated(work.roles, decision.roles)
    if left:
        roles = tuple(map(_leaving if moves else _parted, work.roles, roles))
    changes["roles"] = roles
    if moves:
        changes |= {"gpu_class": decision.gpu_class, "started": now, "checkpointed": None}
    else:
        changes["checkpointed"] = now
    return replace(work, **changes, **left)


def _leaving(before: Role, after: Role) -> Role:
    return replace(after, leaving=before.placement)


def _parted(before: Role, after: Role) -> Role:
    return replace(after, leaving=dict(Counter(before.placement) - Counter(after.placement)))


def _given_up(work: Workload, decision: Decision) -> Fields:
    parting = Counter(work.placement) - Counter(decision.placement)
    devices = {
        node: tuple((Counter(used) - Counter(decision.devices.get(node, ()))).elements())
        for node, used in work.devices.items()
    }
    left = {node: used for node, used in devices.items() if used}
    return {"leaving_members": dict(parting), "leaving_devices": left}


def _seats(work: Workload, decision: Decision) -> Fields:
    return {
        "gpu_class": decision.gpu_class,
        "placement": dict(decision.placement),
        "roles": seated(work.roles, decision.roles),
        "devices": dict(decision.devices),
    }


def _no_seats(work: Workload) -> Fields:
    return {"gpu_class": None, "placement": {}, "roles": seated(work.roles, {}), "devices": {}}


def differences(
    before: Snapshot, plan: Plan, seen: Snapshot, among: Container[str] | None = None
) -> list[str]:
    """Where ``seen``, the snapshot after ``plan`` on ``before``, does not state what the plan left: the
    claims of work that waits, and how often, when and for whom work was evicted. ``among``: of these names
    alone.

    What came in between is read off ``seen``: who is not in it has ended or was cancelled, who waits though
    it was let in has not been started yet and keeps its claim, who is held has none, and evictions older
    than a day count no more.
    """
    works = {work.name: work for work in seen.workloads}
    before_of = {w.name: w for w in before.workloads if among is None or w.name in among}
    found: list[str] = []
    taken = taken_by(before.workloads, plan.decisions)
    for work, line in lines(with_taken(before_of.values(), taken), plan.decisions):
        now = works.get(work.name)
        if now is None:
            continue
        expected = work if line is None else after(work, line, before.now)
        found += _unlike(work, expected, now, set(works), seen.now)
    return found


def _unlike(
    work: Workload, expected: Workload, seen: Workload, there: Container[str], now: datetime
) -> Iterator[str]:
    aged = expected.evictions if now - work.submitted > DAY else 0
    if not expected.evictions - aged <= seen.evictions <= expected.evictions:
        yield f"{seen.name}: evictions {seen.evictions}, expected {expected.evictions}"
    for name in ("last_evicted", "last_evicted_for"):
        if getattr(seen, name) != getattr(expected, name):
            yield f"{seen.name}: {name} {getattr(seen, name)}, expected {getattr(expected, name)}"
    if seen.phase is Phase.PENDING and not seen.held:
        not_begun = work.phase is Phase.PENDING and expected.phase is Phase.RUNNING
        claim = claim_of(work if not_begun else expected, there)
        if claim_of(seen, there) != claim:
            yield f"{seen.name}: claim {claim_of(seen, there)}, expected {claim}"


def claim_of(work: Workload, there: Container[str]) -> Mapping[str, Any] | None:
    """What ``work``, which waits or leaves, claims, with who leaves for it of those who are ``there``; None
    for nothing."""
    if not work.awaits_victims or (work.phase is Phase.RUNNING and not work.leaving):
        return None
    return {
        "gpu_class": work.gpu_class,
        "placement": dict(work.placement),
        "devices": {node: tuple(used) for node, used in work.devices.items()},
        "victims": [name for name in work.victims if name in there],
        "since": work.claimed_since,
    }
