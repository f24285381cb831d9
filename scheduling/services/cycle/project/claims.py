"""Open claims of a cluster's workloads, and which of them the cluster has put an end to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from scheduling.cluster.adapters import key_of
from scheduling.cluster.picture.compose import Picture
from scheduling.models import Cluster, ClusterMode, LapseCause, State, Workload
from scheduling.services.cycle.changes import Changes
from scheduling.services.ledger.claims import UNDONE, Claim, Lapse, claim_of, keep_seats, undone
from scheduling.services.snapshot.situations import Situation, WorkloadFacts
from scheduling.simulation.run.carrying import room_due


class Claims:
    """The rows with a claim, by uid. Those that have lapsed keep it until a plan is written that says so."""

    def __init__(self, cluster: Cluster, rows: Mapping[str, Workload]) -> None:
        self.rows = {uid: row for uid, row in rows.items() if row.claim is not None}
        self._lapsed: dict[str, Lapse] = {}
        self.dirty: set[str] = set()
        """uids of those that changed since they were written."""
        if cluster.mode == ClusterMode.ENFORCE:
            # They ended, and whoever saw it was killed before it could say so.
            ended = Workload.objects.filter(cluster=cluster, state=State.FINISHED)
            for row in ended.filter(claim__isnull=False):
                self.lapse(row, LapseCause.GONE)

    def put(self, row: Workload, claim: Claim) -> None:
        row.claim = claim.as_json()
        self.rows[row.uid] = row

    def lapse(self, row: Workload, cause: LapseCause) -> None:
        """``row`` waits like any other from now on."""
        claim = claim_of(row)
        if claim is not None and row.uid not in self._lapsed:
            self._lapsed[row.uid] = Lapse(row, claim, cause)

    def take_lapsed(self) -> list[Lapse]:
        """Those that have lapsed, for whoever writes it; they are no claims any more."""
        lapsed, self._lapsed = list(self._lapsed.values()), {}
        for one in lapsed:
            one.row.claim = None
            self.rows.pop(one.row.uid, None)
        return lapsed

    def spare(self, lapses: Iterable[Lapse], by_name: Mapping[str, Workload]) -> None:
        """Those who still leave for one of ``lapses`` keep their own seats, unless others claim any of their
        nodes."""
        open_ones = [row for uid, row in self.rows.items() if uid not in self._lapsed]
        claimed = {
            node for row in open_ones for node in (row.claim or {"placement": ()})["placement"]
        }
        for row in [row for one in lapses for row in keep_seats(one, by_name, claimed)]:
            self.rows[row.uid] = row
            self.dirty.add(row.uid)

    def take_over(self, row: Workload) -> None:
        """``row``, which leaves and kept its seats, leaves for somebody else now."""
        row.claim = None
        self.rows.pop(row.uid, None)

    def ended(self) -> set[str]:
        """Engine names of those whose lapse is not written yet."""
        rows = [one.row for one in self._lapsed.values()]
        return {key_of(row.kind, row.namespace, row.name) for row in rows}

    def hear(self, row: Workload) -> None:
        """``row`` made a step: once admitted its claim is kept, once it has ended there is none."""
        if row.claim is None:
            self.rows.pop(row.uid, None)
            self._lapsed.pop(row.uid, None)
        elif row.state == State.FINISHED:
            self.lapse(row, LapseCause.GONE)

    def end(
        self, picture: Picture, changes: Changes, by_name: Mapping[str, Workload], now: datetime
    ) -> list[str]:
        """Let those lapse whose seats are not in the cluster any more, whose workload asks for something else
        by now, or whose victims the cluster does not let go; uids of all of the picture that have lapsed."""
        for row in list(self.rows.values()):
            cause = self._cause(row, picture, changes, by_name, now)
            if cause is not None:
                self.lapse(row, cause)
        self.spare(self._lapsed.values(), by_name)
        return [uid for uid in self._lapsed if uid in picture.by_uid]

    @staticmethod
    def _cause(
        row: Workload,
        picture: Picture,
        changes: Changes,
        by_name: Mapping[str, Workload],
        now: datetime,
    ) -> LapseCause | None:
        claim = claim_of(row)
        if claim is None:
            return None
        if any((node, claim.gpu_class) not in picture.seats for node in claim.placement):
            return LapseCause.SEATS_GONE
        if row.uid in changes.authored:
            return LapseCause.EDITED
        late = any(now - victim.at > UNDONE for _, victim in undone(claim, by_name))
        return LapseCause.OVERDUE if late else None

    def as_told(
        self,
        known: Mapping[str, WorkloadFacts],
        picture: Picture,
        by_name: Mapping[str, Workload],
        now: datetime,
    ) -> dict[str, WorkloadFacts]:
        """By uid those with a claim whose room is due at another time than was known before."""
        found = {}
        for uid, row in self.rows.items():
            claim, what = claim_of(row), known.get(uid)
            if claim is None or what is None or uid in self._lapsed:
                continue
            there = tuple(v for v in claim.victims if _is_there(by_name.get(v.name), picture))
            fresh = replace(claim, victims=there)
            if claim.room_due is None and what.situation is not Situation.LEAVING:
                going = _gone_by(claim, known, picture, by_name)
                fresh = replace(fresh, room_due=room_due(going, None, now))
                if not going:
                    self.put(row, replace(claim, room_due=now))
                    self.dirty.add(uid)
            if what.remembered.claim != fresh:
                found[uid] = replace(what, remembered=replace(what.remembered, claim=fresh))
        return found

    def leaving(
        self, known: Mapping[str, WorkloadFacts], by_name: Mapping[str, Workload]
    ) -> dict[str, WorkloadFacts]:
        """By uid those whose eviction was committed and has not reached the cluster, or is not seen yet, as
        they are once it has: the next plan counts them as leaving, and enforcing sends it again."""
        found = {}
        for row in self.rows.values():
            claim = None if row.uid in self._lapsed else claim_of(row)
            for victim, decided in undone(claim, by_name) if claim else ():
                what = known.get(victim.uid)
                if what is None or what.situation is not Situation.HOLDING:
                    continue
                past = replace(
                    what.remembered,
                    evictions=what.remembered.evictions + 1,
                    last_evicted=decided.at,
                    last_evicted_for=key_of(row.kind, row.namespace, row.name),
                )
                found[victim.uid] = replace(
                    what, situation=Situation.LEAVING, remembered=past, stale_since=None
                )
        return found


def _is_there(row: Workload | None, picture: Picture) -> bool:
    """Whether a snapshot has it: what is deleted and has left is in none."""
    observed = picture.by_uid.get(row.uid) if row else None
    return observed is not None and bool(observed.pods_left or not observed.deleting)


def _gone_by(
    claim: Claim,
    known: Mapping[str, WorkloadFacts],
    picture: Picture,
    by_name: Mapping[str, Workload],
) -> list[datetime | None]:
    """When each of those who still leave for ``claim`` is gone at the latest, None where nobody knows."""
    if undone(claim, by_name):
        return [None]
    uids = [row.uid for v in claim.victims if (row := by_name.get(v.name)) is not None]
    leave = [uid for uid in uids if uid in known and known[uid].situation in GOING]
    left = (picture.by_uid.get(uid) for uid in leave)
    return [o.gone_by for o in left if o is not None and o.pods_left]


GOING = (Situation.LEAVING, Situation.MOVING)
