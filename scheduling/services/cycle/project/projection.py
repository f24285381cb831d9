"""The cluster's workloads and nodes as rows: only what changed is written.

The worker keeps the live rows in memory between cycles; it is their only writer while it holds the
lease. After a fault it forgets them and reads them again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import compress
from operator import is_not
from typing import Any

from scheduling.cluster.adapters import Sighting, key_of
from scheduling.cluster.picture.compose import Orphans, Picture
from scheduling.models import Cluster, Outcome, State, Workload
from scheduling.models.workloads import HOLDING, WAITING
from scheduling.services.cycle.changes import Changes, assign
from scheduling.services.cycle.project.claims import Claims
from scheduling.services.cycle.project.missing_members import MissingMembers
from scheduling.services.cycle.project.steps import (
    Move,
    decisions_behind,
    ending_of,
    evicted_by_weir,
    farewell,
    step_args,
    way_to,
)
from scheduling.services.ledger.claims import remembered
from scheduling.services.ledger.evictions import eviction_of
from scheduling.services.queues.rows import PolicyRows
from scheduling.services.snapshot.departures import orphans_stay, sentence, stays
from scheduling.services.snapshot.obstacles import Obstacle, Refusals, forbidden, may_be_blocked
from scheduling.services.snapshot.situations import (
    Situation,
    WorkloadFacts,
    class_of,
    counted_as,
    is_as_it_should_be,
    is_taken,
    judge,
    narrowed,
    placement_of,
    priority_of,
)
from scheduling.services.workloads import checkpoints, edits, lifecycle

RETURNED = "It names a queue again."


class Projection:
    """The live rows of one cluster, by uid."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        live = Workload.objects.filter(cluster=cluster).exclude(state=State.FINISHED)
        self.rows: dict[str, Workload] = {w.uid: w for w in live}
        self._habits = checkpoints.Habits.of(cluster)
        self.newcomer = not Workload.objects.filter(cluster=cluster).exists()
        self._finished: set[str] = set()
        self.restless: list[Sighting] = []
        """The workloads of the last picture but those that wait as they did in the picture before."""
        self.by_name = {key_of(w.kind, w.namespace, w.name): w for w in self.rows.values()}
        """Engine name -> row."""
        self._quiet: dict[str, Sighting] = {}
        """Of those that wait: what they were seen as when their row was found to be in line with it."""
        self._known: dict[str, WorkloadFacts] = {}
        """What is known of those."""
        self._hindered: dict[str, Sighting] = {}
        """Those among them that say themselves that they may be blocked, or were judged so."""
        self.barred: dict[str, Obstacle] = {}
        """By uid, what the judgement of work that waits forbids."""
        self._aging: dict[str, datetime] = {}
        """When one of their evictions counts no more."""
        self.claims = Claims(cluster, self.rows)
        self._names: tuple[object, ...] = ()
        """What ``_copy`` and judgements look up in the policy."""
        self._missing = MissingMembers()

    def project(
        self, picture: Picture, rows: PolicyRows, *, now: datetime, enforce: bool
    ) -> tuple[Changes, dict[str, WorkloadFacts]]:
        """Bring the rows into line with ``picture``, in memory; what changed and what is known.

        ``save`` writes the changes.
        """
        self._hear_of(rows)
        for uid in [uid for uid, until in self._aging.items() if until <= now]:
            self._disturb(uid)
        changes = Changes()
        known = self._known.copy()
        class_by_node = picture.class_by_node
        moves: list[Move] = []
        shown, quiet = picture.workloads, map(self._quiet.get, picture.by_uid)
        self.restless = list(compress(shown, map(is_not, quiet, shown)))
        self._recall_finished(picture, changes, now)
        for observed in self.restless:
            if observed.uid in self._finished and observed.uid not in self.rows:
                known[observed.uid] = WorkloadFacts(Situation.DONE)
                continue
            row, situation = self._see(observed, changes, now, enforce=enforce)
            self._copy(row, observed, situation, rows, changes)
            moves.append((row, observed, way_to(row, observed, situation)))
            if situation is Situation.HOLDING:
                self._copy_holding(row, observed, rows, class_by_node, changes, now)
            known[observed.uid] = WorkloadFacts(situation)
        changes.edits = edits.found(changes.edited, changes.authored, rows, now)
        moves += [farewell(row, picture) for row in self._vanished(picture)]
        self._step(moves, rows, now, class_by_node, changes, picture.strayed)
        for row, seen, _ in moves:
            if seen is not None and row.uid in self.rows:
                known[row.uid] = self._note(row, seen, known[row.uid].situation, rows, now)
        for uid in self.claims.end(picture, changes, self.by_name, now):
            if uid in known:
                known[uid] = self._without_claim(uid, known[uid])
        claims = self.claims.as_told(known, picture, self.by_name, now)
        known |= claims
        self._known |= {uid: what for uid, what in claims.items() if uid in self._known}
        self._tell_lingering(picture, known, changes, now)
        changes.habits = self._habits.changed()
        self.newcomer = False
        return changes, known

    def _see(
        self, observed: Sighting, changes: Changes, now: datetime, *, enforce: bool
    ) -> tuple[Workload, Situation]:
        """The row of ``observed``, made where there is none yet, and how it stands by that of before."""
        row = self.rows.get(observed.uid)
        situation = judge(
            observed, row.state if row else None, enforce=enforce, newcomer=self.newcomer
        )
        if row is None:
            row = self.rows[observed.uid] = self._make(observed, changes)
        if observed.checkpointed != row.checkpointed_at:
            self._habits.hear(row, observed.checkpointed, now)
        return row, situation

    def _note(
        self,
        row: Workload,
        observed: Sighting,
        situation: Situation,
        rows: PolicyRows,
        now: datetime,
    ) -> WorkloadFacts:
        """What is known of a live workload whose row is in line with what was ``observed``."""
        ran = row.state == State.RUNNING
        self._disturb(row.uid)
        judgement = rows.judge(observed) if situation is Situation.WAITING else None
        if judgement and (why := forbidden(judgement)):
            self.barred[row.uid] = why
        known = WorkloadFacts(
            situation,
            started=row.started_at if ran else row.admitted_at,
            ran=ran,
            presumed=self._habits.presumed(row, now) if ran else None,
            gpu_classes=narrowed(observed, judgement) if judgement else None,
            priority_class=counted_as(observed, row, rows),
            remembered=remembered(row, now),
        )
        if situation is Situation.WAITING and row.state in WAITING and is_as_it_should_be(observed):
            self._quiet[row.uid], self._known[row.uid] = observed, known
            if known.remembered.until is not None:
                self._aging[row.uid] = known.remembered.until
            if row.uid in self.barred or may_be_blocked(observed):
                self._hindered[row.uid] = observed
        return known

    def _without_claim(self, uid: str, known: WorkloadFacts) -> WorkloadFacts:
        past = replace(known.remembered, claim=None)
        without = replace(known, remembered=past)
        if uid in self._known:
            self._known[uid] = without
        return without

    def look_again(self, uids: Iterable[str]) -> None:
        """What is known of those is out of date."""
        for uid in uids:
            self._disturb(uid)

    def _disturb(self, uid: str) -> None:
        for memo in (self._quiet, self._known, self._hindered, self.barred, self._aging):
            memo.pop(uid, None)

    def suspects(self, refusals: Refusals) -> list[Sighting]:
        """Those of the last picture that may be blocked."""
        found = {o.uid: o for o in self.restless} | self._hindered
        found |= {uid: self._quiet[uid] for uid in refusals.by_uid if uid in self._quiet}
        return list(found.values())

    def counts(self) -> tuple[int, int]:
        """How many wait, and how many hold GPUs or are about to."""
        others = [self.rows[uid].state for uid in self.rows.keys() - self._quiet.keys()]
        holding = sum(state in HOLDING for state in others)
        waiting = sum(state in WAITING for state in others)
        return len(self._quiet) + waiting, holding

    def _hear_of(self, rows: PolicyRows) -> None:
        """Look at every row anew when queues, priority classes, levels of topology or what people may have
        run are others than before."""
        names = (
            rows.service_classes,
            rows.cluster.topology_levels,
            *((q.pk, q.name, q.path, q.namespace) for q in rows.queues),
            *((p.pk, p.name, p.type, p.is_default) for p in rows.priority_classes),
        )
        if names != self._names:
            self._names = names
            for uid in list(self._quiet):
                self._disturb(uid)

    def ended(self) -> list[str]:
        """uids of what has ended, left its nodes and is noted so: there is no more to say of it."""
        return [o.uid for o in self.restless if o.uid in self._finished and not o.pods_left]

    def _recall_finished(self, picture: Picture, changes: Changes, now: datetime) -> None:
        """Learn which of the finished objects still in the cluster have a row that says so; take up again
        what was put back into a queue."""
        self._finished = {uid for uid in self._finished if uid in picture.by_uid}
        unknown = sorted(
            o.uid for o in self.restless if o.uid not in self.rows and o.uid not in self._finished
        )
        for start in range(0, len(unknown), 500):
            found = Workload.objects.filter(
                cluster=self.cluster, uid__in=unknown[start : start + 500], state=State.FINISHED
            )
            for row in found:
                seen = picture.by_uid[row.uid]
                is_back = row.outcome != Outcome.SUCCEEDED and not (seen.outcome or seen.deleting)
                if is_back:
                    self._take_up(row, changes, now)
                else:
                    self._finished.add(row.uid)

    def _take_up(self, row: Workload, changes: Changes, now: datetime) -> None:
        self.rows[row.uid] = row
        self.by_name[key_of(row.kind, row.namespace, row.name)] = row
        changes.stepped[row.uid] = row
        step = lifecycle.step(row, State.REQUEUED, at=now, sentence=RETURNED, actor="cluster")
        changes.transitions.append(step)

    def _make(self, observed: Sighting, changes: Changes) -> Workload:
        row = Workload(
            cluster_id=self.cluster.pk,
            uid=observed.uid,
            kind=observed.kind,
            namespace=observed.namespace,
            name=observed.name,
            submitted_at=observed.created,
        )
        self.by_name[observed.key] = row
        changes.new.append(row)
        changes.transitions.append(
            lifecycle.step(row, State.PENDING, at=observed.created, actor="cluster", first=True)
        )
        return row

    def _copy(
        self,
        row: Workload,
        observed: Sighting,
        situation: Situation,
        rows: PolicyRows,
        changes: Changes,
    ) -> None:
        priority = priority_of(observed, row, situation, rows)
        named = rows.queue_by_name.get(observed.queue_label)
        queue = named if is_taken(observed, situation, rows) else None
        predicted = observed.predicted_s or (None, None)
        values = {
            "queue_id": queue.pk if queue else None,
            "queue_label": observed.queue_label,
            "user": observed.user,
            "priority_class_id": priority.pk if priority else None,
            "type": priority.type if priority else row.type,
            "gpus": observed.gpus,
            "cpus": observed.cpus,
            "memory_mib": observed.memory_mib,
            "min_members": observed.min_members,
            "max_members": observed.max_members,
            "elastic": observed.min_members < observed.max_members,
            "shapes": [shape.document() for shape in observed.shapes],
            "gpu_classes": list(observed.gpu_classes),
            "topology": dict(observed.topology),
            "image": observed.image,
            "run_time_limit_s": observed.run_time_limit_s,
            "checkpoint_interval_s": observed.checkpoint_interval_s,
            "predicted_p50_s": predicted[0],
            "predicted_p90_s": predicted[1],
            "held": observed.is_held,
            "turn": observed.turn.document(),
            "checkpointed_at": observed.checkpointed,
            **ending_of(observed),
        }
        assign(row, values, changes)

    def _copy_holding(
        self,
        row: Workload,
        observed: Sighting,
        rows: PolicyRows,
        class_by_node: Mapping[str, str],
        changes: Changes,
        now: datetime,
    ) -> None:
        """What an admitted one holds now: members that are done hold nothing, but for the last, which ends
        with the whole.
        """
        if row.state not in HOLDING:
            return
        gpu_class = rows.class_by_name.get(class_of(observed, class_by_node) or "")
        changes.resize(row, observed.members_wanted or row.members, now)
        values: dict[str, Any] = {}
        if gpu_class is not None:
            values["gpu_class_id"] = gpu_class.pk
        elif row.gpu_class_id not in {c.pk for c in rows.gpu_classes}:
            values["gpu_class_id"] = None
        if placement := placement_of(observed):
            values["placement"] = placement
        assign(row, values, changes)

    def _vanished(self, picture: Picture) -> list[Workload]:
        """Rows whose object is no longer there: deleted by somebody."""
        if self.rows.keys() <= picture.by_uid.keys():
            return []
        # What is deleted ends with the last of its pods.
        left = {orphans.uid for orphans in picture.orphans}
        gone = self.rows.keys() - picture.by_uid.keys() - picture.unreadable.keys() - left
        return [self.rows[uid] for uid in self.rows if uid in gone]

    def _tell_lingering(
        self, picture: Picture, known: Mapping[str, WorkloadFacts], changes: Changes, now: datetime
    ) -> None:
        """Say of deleted work that does not go what it still holds, and for whom it counts."""
        found: list[Sighting | Orphans] = [o for o in picture.orphans if orphans_stay(o, now)]
        found += [o for o in self.restless if o.deleting and stays(o, known[o.uid], now)]
        for left in found:
            row = self.rows.get(left.uid)
            said = sentence(row, left.gpus * sum(left.placement.values())) if row else ""
            if row is not None and row.sentence != said:
                row.sentence = said
                changes.stepped[row.uid] = row

    def _step(
        self,
        moves: Iterable[Move],
        rows: PolicyRows,
        now: datetime,
        class_by_node: Mapping[str, str],
        changes: Changes,
        strayed: Container[str],
    ) -> None:
        steps = [(row, observed, way) for row, observed, way in moves if way]
        said_of = partial(step_args, rows=rows, class_by_node=class_by_node, now=now)
        decisions = decisions_behind(steps)
        for row, observed, way in steps:
            for state in way:
                decision = decisions.get((row.pk, state))
                args = said_of(row, observed, state, decision=decision, strayed=row.uid in strayed)
                if row.state == State.RUNNING:
                    self._habits.end(row, args["at"])
                changes.transitions.append(lifecycle.step(row, state, **args))
                if state == State.EVICTED and decision is not None and evicted_by_weir(observed):
                    changes.evictions.append(eviction_of(row, decision, at=args["at"]))
            changes.stepped[row.uid] = row
            self.claims.hear(row)
            if row.state == State.FINISHED:
                self._forget(row)
                self._missing.forget(row.uid)
                if observed is not None:
                    self._finished.add(row.uid)

    def _forget(self, row: Workload) -> None:
        del self.rows[row.uid]
        self._disturb(row.uid)
        name = key_of(row.kind, row.namespace, row.name)
        if self.by_name.get(name) is row:  # Another object may have its name by now.
            del self.by_name[name]

    def note_missing_members(
        self, known: dict[str, WorkloadFacts], changes: Changes, *, now: datetime, grace_s: int
    ) -> None:
        """Say in ``known`` since when a gang is below its least members, once that is past the grace."""
        holding = [
            (row, observed)
            for observed in self.restless
            if known[observed.uid].situation is Situation.HOLDING
            and (row := self.rows.get(observed.uid)) is not None
        ]
        speed = self.cluster.clock_speed
        for uid, lack in self._missing.late(
            holding, changes, now=now, grace_s=grace_s, speed=speed
        ):
            ran = known[uid].ran and not lack.is_start
            known[uid] = replace(known[uid], stale_since=lack.since, ran=ran)
