"""Claims as a plan leaves them: made, gone on with, or lapsed. Written with the plan, or not at all.

Whether a cycle knows what the plan before it left: its word to those for whom others had to go.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterator, Set
from dataclasses import dataclass
from datetime import datetime

from scheduling.cluster.adapters import key_of
from scheduling.engine import Action, Outline, Plan, Snapshot
from scheduling.engine import model as m
from scheduling.models import Cycle, Decision, LapseCause, Workload
from scheduling.services.cycle.project.claims import Claims
from scheduling.services.cycle.record.plan import Pass
from scheduling.services.ledger.claims import Claim, Lapse, Victim, claim_of, mark_in_vain
from scheduling.services.tables.bulk import insert_rows, write_columns
from scheduling.services.words.rules import sentence_of
from scheduling.simulation.run.carrying import MAKES_ROOM, differences


def follow(
    done: Pass, cycle: Cycle, claims: Claims, *, starting: Container[str], put_off: Container[str]
) -> list[str]:
    """Write in the caller's transaction what becomes of ``claims`` by the plan of ``done``; uids of whose
    claim is another than before.

    Whoever starts keeps its claim until the cluster shows that it has. So does who is ``starting`` (uids),
    and who is ``put_off`` (names): its start, or the room that was to be made for it, is left to the next
    plan.
    """
    lapses = {act.workload: act for act in done.plan.acts if act.action is m.Action.LAPSE}
    promised = dict(_promised(done.plan))
    starts = {act.workload for act in done.plan.acts if act.action is m.Action.ADMIT}
    for uid, row in claims.rows.items():
        name = _name(row)
        if name in lapses:
            claims.lapse(row, LapseCause(lapses[name].rule))
        elif not (name in promised or name in starts or name in put_off or uid in starting):
            claims.lapse(row, LapseCause.HELD if _is_stopped(name, done) else LapseCause.GIVEN_UP)
    lapsed = claims.take_lapsed()
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
    insert_rows([_line(one, cycle) for one in lapsed if _name(one.row) not in lapses])
    return list(changed)


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
