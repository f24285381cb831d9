"""Claims as a plan leaves them: made, gone on with, or lapsed. Written with the plan, or not at all.

Whether a cycle knows what the plan before it left: its word to those for whom others had to go.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import datetime

from scheduling.cluster.adapters import key_of
from scheduling.engine import Action, Outline, Plan, Snapshot
from scheduling.engine import model as m
from scheduling.models import Cycle, Decision, Eviction, LapseCause, State, Workload
from scheduling.services.cycle.project.claims import Claims
from scheduling.services.cycle.record.plan import Pass, decision_row
from scheduling.services.ledger.claims import Claim, Lapse, Victim, claim_of, mark_in_vain
from scheduling.services.ledger.evictions import eviction_of
from scheduling.services.tables.bulk import insert_rows, write_columns
from scheduling.services.words.rules import sentence_of
from scheduling.simulation.run.carrying import MAKES_ROOM, differences


def follow(
    done: Pass, cycle: Cycle, claims: Claims, *, starting: Container[str], put_off: Container[str]
) -> list[str]:
    """Write in the caller's transaction what becomes of ``claims`` by the plan of ``done``; uids of whose
    claim is another than before.

    Work that starts keeps its claim until the cluster shows that it has. So does who is ``starting`` (uids),
    and who is ``put_off`` (names): its start, or the room that was to be made for it, is left to the next
    plan. A victim that kept its seats has them until somebody takes them.
    """
    lapses = {act.workload: act for act in done.plan.acts if act.action is m.Action.LAPSE}
    promised = dict(_promised(done.plan))
    starts = {act.workload for act in done.plan.acts if act.action is m.Action.ADMIT}
    taken = _taken_over(done, claims)
    stay = {
        w.name for w in done.snapshot.workloads if w.leaving and w.awaits_victims and not w.held
    }
    standing = {*promised, *starts, *taken, *stay}
    for uid, row in claims.rows.items():
        name = _name(row)
        if name in lapses:
            claims.lapse(row, LapseCause(lapses[name].rule))
        elif not (name in standing or name in put_off or uid in starting):
            claims.lapse(row, LapseCause.HELD if _is_stopped(name, done) else LapseCause.GIVEN_UP)
    lapsed = claims.take_lapsed()
    claims.spare(lapsed, done.by_name)
    for name in taken:
        claims.take_over(done.by_name[name])
    made = [
        found
        for name, line in promised.items()
        if name not in put_off and (found := _claim(claims, line, done)) is not None
    ]
    made += [claims.rows[uid] for uid in claims.dirty if uid in claims.rows]
    claims.dirty.clear()
    takers = _count_taken(done)
    changed = {row.uid: row for row in (*(one.row for one in lapsed), *made, *takers)}
    write_columns(list(changed.values()), ["claim", "taken_gpus"])
    mark_in_vain(lapsed)
    _write_taken(done, taken, cycle)
    insert_rows([_line(one, cycle) for one in lapsed if _name(one.row) not in lapses])
    return [*changed, *(done.by_name[name].uid for name in taken)]


def _taken_over(done: Pass, claims: Claims) -> dict[str, m.Decision]:
    """By name who leaves already, kept its seats and is evicted once more: somebody may have them."""
    rows = {_name(row): row for row in claims.rows.values()}
    evicted = {a.workload: a for a in done.plan.acts if a.action is m.Action.EVICT}
    return {n: a for n, a in evicted.items() if n in rows and rows[n].state == State.EVICTED}


def _write_taken(done: Pass, taken: Mapping[str, m.Decision], cycle: Cycle) -> None:
    """They leave for somebody else now, and not in vain: the rule, the parties and the numbers are those of
    this time. When they left, and what that lost, stays."""
    for name, act in taken.items():
        row, rival = done.by_name[name], done.by_name.get(act.for_workload or "")
        row.last_evicted_at, row.last_evicted_for = done.at, _name(rival) if rival else ""
        newest = Eviction.objects.filter(workload_id=row.pk).first()
        if newest is not None:
            again = eviction_of(row, decision_row(act, cycle, done), at=newest.at)
            again.pk, again.gpus, again.lost_gpu_s = newest.pk, newest.gpus, newest.lost_gpu_s
            again.save()
    rows = [done.by_name[name] for name in taken]
    write_columns(rows, ["claim", "last_evicted_at", "last_evicted_for"])


def _claim(claims: Claims, line: m.Decision, done: Pass) -> Workload | None:
    """The row that claims what ``line`` promises, if its claim is another than before."""
    row = done.by_name.get(line.workload)
    if row is None:
        return None
    claim = _renewed(claim_of(row), line, done.plan, done.at)
    if claim.as_json() == row.claim:
        return None
    claims.put(row, claim)
    return row


def _count_taken(done: Pass) -> list[Workload]:
    """Note for whom GPUs are evicted by this plan; their rows."""
    takers = {}
    for act in done.plan.acts:
        row, victim = done.by_name.get(act.for_workload or ""), done.by_name.get(act.workload)
        if act.action is m.Action.EVICT and row is not None and victim is not None:
            row.taken_gpus += victim.gpus * act.members
            takers[row.uid] = row
    return list(takers.values())


def _name(row: Workload) -> str:
    return key_of(row.kind, row.namespace, row.name)


def _promised(plan: Outline) -> Iterator[tuple[str, m.Decision]]:
    """By name what is kept for whom until others have left."""
    waits = plan.waits
    places = [i for i, why in enumerate(waits.reasons) if why is m.Reason.AWAITS_VICTIMS]
    return ((line.workload, line) for line in (waits.spell(places) if places else ()))


def _renewed(before: Claim | None, line: m.Decision, plan: Outline, at: datetime) -> Claim:
    """On the seats of ``line``, with those who leave by this plan beside those who were leaving."""
    more = tuple(
        Victim(act.workload, act.action.value, at)
        for act in plan.acts
        if act.for_workload == line.workload and act.action in MAKES_ROOM
    )
    return Claim(
        gpu_class=line.gpu_class or "",
        placement=line.placement,
        devices=line.devices,
        victims=(*(before.victims if before else ()), *more),
        since=before.since if before else at,
        room_due=before.room_due if before and not more else None,
    )


def _is_stopped(name: str, done: Pass) -> bool:
    """Whether its own people, or the cluster, keep it from starting."""
    return any(work.held for work in done.snapshot.workloads if work.name == name)


def _line(lapse: Lapse, cycle: Cycle) -> Decision:
    names = lapse.claim.names
    return Decision(
        cycle_id=cycle.pk,
        workload_id=lapse.row.pk,
        action=m.Action.LAPSE,
        reason=m.Reason.CLAIM_LAPSED,
        sentence=sentence_of(lapse.cause, len(names)),
        numbers={"rule": lapse.cause.value, "victims": len(names)},
    )


log = logging.getLogger(__name__)


@dataclass(slots=True)
class Word:
    """The last plan of a cluster and the snapshot that it was made of, while this process goes on."""

    _last: tuple[Snapshot, Plan, Set[str]] | None = None

    def give(self, snapshot: Snapshot, plan: Outline, claims: Claims, put_off: Set[str]) -> None:
        """``plan`` is committed. Nothing is kept of one that leaves nobody a claim and evicts nobody."""
        names = {key_of(row.kind, row.namespace, row.name) for row in claims.rows.values()}
        names |= {act.workload for act in plan.acts if act.action in (Action.EVICT, Action.LAPSE)}
        names -= put_off
        places = [i for i, name in enumerate(plan.waits.names) if name in names] if names else []
        lines = plan.waits.spell(places) if places else []
        made = Plan({}, (*plan.acts, *lines))
        self._last = (snapshot, made, names) if names else None

    def hold(self, seen: Snapshot, claims: Claims) -> list[str]:
        """Log, and return, where ``seen`` forgets what the last plan left; claims that the cluster put an end
        to since are left out."""
        if self._last is None:
            return []
        before, plan, names = self._last
        self._last = None
        found = differences(before, plan, seen, names - claims.ended())
        for line in found:
            log.error("The snapshot does not state what the plan before it left: %s", line)
        return found
