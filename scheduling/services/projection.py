"""The cluster's workloads and nodes as rows: only what changed is written.

The worker keeps the live rows in memory between cycles; it is their only writer while it holds the
lease. After a fault it forgets them and reads them again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import compress
from operator import is_not
from typing import Any

from scheduling.cluster.adapters import Observed, key_of
from scheduling.cluster.picture import Picture
from scheduling.models import (
    CheckpointHabit,
    Cluster,
    Eviction,
    Outcome,
    State,
    Transition,
    Workload,
)
from scheduling.models.workloads import HOLDING, WAITING
from scheduling.services import checkpoints, lifecycle
from scheduling.services.blocked import Refusals, may_be_blocked
from scheduling.services.columns import insert_keyed, write_columns
from scheduling.services.evictions import eviction_of
from scheduling.services.missing import Missing
from scheduling.services.node_rows import NodeRows
from scheduling.services.policy import PolicyRows
from scheduling.services.share_rows import ShareRows
from scheduling.services.situations import (
    Known,
    Situation,
    class_of,
    is_as_it_should_be,
    judge,
    placement_of,
)
from scheduling.services.steps import (
    Move,
    decisions_behind,
    evicted_by_weir,
    farewell,
    step_args,
    way_to,
)
from scheduling.services.telling import Telling

PROJECTED = [
    "queue",
    "queue_label",
    "user",
    "priority_class",
    "type",
    "gpus",
    "cpus",
    "memory_mib",
    "min_members",
    "max_members",
    "elastic",
    "gpu_classes",
    "topology",
    "run_time_limit_s",
    "checkpoint_interval_s",
    "predicted_p50_s",
    "predicted_p90_s",
    "held",
    "checkpointed_at",
    "members",
    "placement",
    "gpu_class",
]
"""Columns copied from the cluster; ``lifecycle.HELD_BY_STEP`` are the others."""

RETURNED = "It names a queue again."


@dataclass(slots=True)
class Changes:
    """What one projection found different."""

    new: list[Workload] = field(default_factory=list)
    edited: dict[str, Workload] = field(default_factory=dict)
    stepped: dict[str, Workload] = field(default_factory=dict)
    transitions: list[Transition] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    habits: list[CheckpointHabit] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.new or self.edited or self.stepped)


class Projection:
    """The live rows of one cluster, by uid."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        live = Workload.objects.filter(cluster=cluster).exclude(state=State.FINISHED)
        self.rows: dict[str, Workload] = {w.uid: w for w in live}
        self.nodes = NodeRows(cluster)
        self.shares = ShareRows(cluster)
        self._habits = checkpoints.Habits.of(cluster)
        self.newcomer = not Workload.objects.filter(cluster=cluster).exists()
        self._finished: set[str] = set()
        self.restless: list[Observed] = []
        """The workloads of the last picture but those that wait as they did in the picture before."""
        self.telling = Telling()
        self.by_name = {key_of(w.kind, w.namespace, w.name): w for w in self.rows.values()}
        """Engine name -> row."""
        self._quiet: dict[str, Observed] = {}
        """Of those that wait: what they were seen as when their row was found to be in line with it."""
        self._known: dict[str, Known] = {}
        """What is known of those."""
        self._hindered: dict[str, Observed] = {}
        """Those among them that say themselves that they may be blocked."""
        self._names: tuple[object, ...] = ()
        """What ``_copy`` looks up in the policy."""
        self._missing = Missing()

    def project(
        self, picture: Picture, rows: PolicyRows, *, now: datetime, enforce: bool
    ) -> tuple[Changes, dict[str, Known]]:
        """Bring the rows into line with ``picture``, in memory; what changed and what is known.

        ``save`` writes the changes.
        """
        self._hear_of(rows)
        changes = Changes()
        known = self._known.copy()
        class_by_node = picture.class_by_node
        moves: list[Move] = []
        shown, quiet = picture.workloads, map(self._quiet.get, picture.by_uid)
        self.restless = list(compress(shown, map(is_not, quiet, shown)))
        self._recall_finished(picture, changes, now)
        for observed in self.restless:
            row = self.rows.get(observed.uid)
            if row is None and observed.uid in self._finished:
                known[observed.uid] = Known(Situation.DONE)
                continue
            situation = judge(
                observed, row.state if row else None, enforce=enforce, newcomer=self.newcomer
            )
            if row is None:
                row = self.rows[observed.uid] = self._make(observed, changes)
            if observed.checkpointed != row.checkpointed_at:
                self._habits.hear(row, observed.checkpointed, now)
            self._copy(row, observed, rows, changes)
            moves.append((row, observed, way_to(row, observed, situation)))
            if situation is Situation.HOLDING:
                self._copy_holding(row, observed, rows, class_by_node, changes)
            known[observed.uid] = Known(situation)
        moves += [farewell(row, picture) for row in self._vanished(picture)]
        self._step(moves, rows, now, class_by_node, changes, picture.strayed)
        for row, seen, _ in moves:
            if seen is not None and row.uid in self.rows:
                known[row.uid] = self._note(row, seen, known[row.uid].situation, now)
        changes.habits = self._habits.changed()
        self.newcomer = False
        return changes, known

    def _note(
        self, row: Workload, observed: Observed, situation: Situation, now: datetime
    ) -> Known:
        """What is known of a live workload whose row is in line with what was ``observed``."""
        ran = row.state == State.RUNNING
        known = Known(
            situation,
            started=row.started_at if ran else row.admitted_at,
            ran=ran,
            presumed=self._habits.presumed(row, now) if ran else None,
        )
        self._disturb(row.uid)
        if situation is Situation.WAITING and row.state in WAITING and is_as_it_should_be(observed):
            self._quiet[row.uid], self._known[row.uid] = observed, known
            if may_be_blocked(observed):
                self._hindered[row.uid] = observed
        return known

    def _disturb(self, uid: str) -> None:
        for kept in (self._quiet, self._known, self._hindered):
            kept.pop(uid, None)

    def suspects(self, refusals: Refusals) -> list[Observed]:
        """Those of the last picture that may be blocked."""
        found = {o.uid: o for o in self.restless} | self._hindered
        found |= {uid: self._quiet[uid] for uid in refusals.held if uid in self._quiet}
        return list(found.values())

    def counts(self) -> tuple[int, int]:
        """How many wait, and how many hold GPUs or are about to."""
        others = [self.rows[uid].state for uid in self.rows.keys() - self._quiet.keys()]
        holding = sum(state in HOLDING for state in others)
        waiting = sum(state in WAITING for state in others)
        return len(self._quiet) + waiting, holding

    def _hear_of(self, rows: PolicyRows) -> None:
        """Look at every row anew when queues or priority classes are other ones than before."""
        names = (
            *((q.pk, q.name) for q in rows.queues),
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
                is_back = row.outcome == Outcome.CANCELLED and not (seen.outcome or seen.deleting)
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

    def _make(self, observed: Observed, changes: Changes) -> Workload:
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

    def _copy(self, row: Workload, observed: Observed, rows: PolicyRows, changes: Changes) -> None:
        priority = rows.priority_of(observed.priority_class)
        queue = rows.queue_by_name.get(observed.queue_label)
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
            "gpu_classes": list(observed.gpu_classes),
            "topology": dict(observed.topology),
            "run_time_limit_s": observed.run_time_limit_s,
            "checkpoint_interval_s": observed.checkpoint_interval_s,
            "predicted_p50_s": predicted[0],
            "predicted_p90_s": predicted[1],
            "held": observed.held,
            "checkpointed_at": observed.checkpointed,
        }
        _assign(row, values, changes)

    def _copy_holding(
        self,
        row: Workload,
        observed: Observed,
        rows: PolicyRows,
        class_by_node: Mapping[str, str],
        changes: Changes,
    ) -> None:
        """What an admitted one holds now; a gang that ends one member after another keeps its size."""
        if row.state not in HOLDING:
            return
        gpu_class = rows.class_by_name.get(class_of(observed, class_by_node) or "")
        values: dict[str, Any] = {"members": observed.members}
        if gpu_class is not None:
            values["gpu_class_id"] = gpu_class.pk
        elif row.gpu_class_id not in {c.pk for c in rows.gpu_classes}:
            values["gpu_class_id"] = None
        if placement := placement_of(observed):
            values["placement"] = placement
        _assign(row, values, changes)

    def _vanished(self, picture: Picture) -> list[Workload]:
        """Rows whose object is no longer there: deleted by somebody."""
        if self.rows.keys() <= picture.by_uid.keys():
            return []
        gone = self.rows.keys() - picture.by_uid.keys() - picture.unreadable.keys()
        return [self.rows[uid] for uid in self.rows if uid in gone]

    def _step(
        self,
        moves: Iterable[Move],
        rows: PolicyRows,
        now: datetime,
        class_by_node: Mapping[str, str],
        changes: Changes,
        strayed: Container[str],
    ) -> None:
        due = [(row, observed, way) for row, observed, way in moves if way]
        said_of = partial(step_args, rows=rows, class_by_node=class_by_node, now=now)
        decisions = decisions_behind(due)
        for row, observed, way in due:
            for state in way:
                decision = decisions.get((row.pk, state))
                args = said_of(row, observed, state, decision=decision, strayed=row.uid in strayed)
                if row.state == State.RUNNING:
                    self._habits.end(row, args["at"])
                changes.transitions.append(lifecycle.step(row, state, **args))
                if state == State.EVICTED and decision is not None and evicted_by_weir(observed):
                    changes.evictions.append(eviction_of(row, decision, at=args["at"]))
            changes.stepped[row.uid] = row
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

    def note_missing_members(self, known: dict[str, Known], *, now: datetime, grace_s: int) -> None:
        """Say in ``known`` since when a gang is below its least members, once that is past the grace."""
        holding = [
            (row, observed)
            for observed in self.restless
            if known[observed.uid].situation is Situation.HOLDING
            and (row := self.rows.get(observed.uid)) is not None
        ]
        speed = self.cluster.clock_speed
        for uid, lack in self._missing.late(holding, now=now, grace_s=grace_s, speed=speed):
            ran = known[uid].ran and not lack.is_start
            known[uid] = replace(known[uid], stale_since=lack.since, ran=ran)


def save(changes: Changes) -> None:
    """Write ``changes``; the caller opens the transaction."""
    insert_keyed(changes.new)
    created = {row.uid for row in changes.new}
    edited = [row for uid, row in changes.edited.items() if uid not in created]
    if edited:
        write_columns(edited, PROJECTED)
    stepped = [row for uid, row in changes.stepped.items() if uid not in created]
    lifecycle.save(stepped, changes.transitions)
    if changes.evictions:
        Eviction.objects.bulk_create(changes.evictions)
    if changes.habits:
        checkpoints.save(changes.habits)


def _assign(row: Workload, values: Mapping[str, Any], changes: Changes) -> None:
    changed = False
    for name, value in values.items():
        if getattr(row, name) != value:
            setattr(row, name, value)
            changed = True
    if changed:
        changes.edited[row.uid] = row
