"""A plan as rows: the cycle, its decisions, what each workload is told, and the division.

Whose rows are told anew: everybody's place moves with every start, and a long line is read less often.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Model

from scheduling.engine import Outline
from scheduling.engine import model as m
from scheduling.models import Cluster, ClusterMode, Cycle, Decision, Workload
from scheduling.models.workloads import HOLDING
from scheduling.services.cycle.record.shares import ShareRows
from scheduling.services.ledger.evictions import numbers_at
from scheduling.services.queues.rows import PolicyRows
from scheduling.services.tables.bulk import insert_rows, write_columns
from scheduling.services.words.sentences import sealed_of

TOLD = ["reason", "sentence", "sealed", "numbers", "until", "position"]
TOLD_ROWS = 500
"""Rows whose reason changed that are told at a time. Fewer than that are told with every cycle."""
MOVED_ROWS = 200
"""The same for those of which only the figures did, in turn."""
TOLD_EVERY_S = 1.0
"""Wall seconds between two looks along a line that is longer."""
STANDS_FOR = timedelta(hours=1)
"""So long after the slowest pass that a row stands for it may stand for others: what was slowest in a day is
known to the hour, however little happens."""


@dataclass(slots=True)
class Telling:
    """What is remembered from one look to the next."""

    _told_at: float = float("-inf")
    _turn: int = 0

    def is_due(self, length: int) -> bool:
        """Whether a line of that length is to be looked along now."""
        tick = time.monotonic()
        if length > TOLD_ROWS and tick - self._told_at < TOLD_EVERY_S:
            return False
        self._told_at = tick
        return True

    def choose(
        self, rows: Sequence[Workload | None], reasons: Sequence[m.Reason]
    ) -> tuple[list[int], list[int]]:
        """Places of those in the line (None: of no row) whose reason is another one than in their row,
        the first of them; and of others, so many in turn."""
        changed: list[int] = []
        moved: list[int] = []
        for place, (row, reason) in enumerate(zip(rows, reasons, strict=True)):
            if row is not None:
                (moved if row.reason == reason else changed).append(place)
        start = self._turn * MOVED_ROWS % len(moved) if len(moved) > MOVED_ROWS else 0
        self._turn += 1
        return changed[:TOLD_ROWS], moved[start : start + MOVED_ROWS]


@dataclass(slots=True)
class RecordedPlan:
    """What recording a plan changed."""

    cycle: Cycle
    decisions: int = 0
    rewritten: int = 0
    shares: int = 0

    @property
    def visible(self) -> bool:
        return bool(self.decisions or self.rewritten or self.shares)


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass of the engine and what it was about."""

    cluster: Cluster
    snapshot: m.Snapshot
    plan: Outline
    rows: PolicyRows
    by_name: Mapping[str, Workload]
    """Engine name -> row."""
    pending: int
    """Workloads that wait."""
    running: int
    """Those that hold GPUs or are about to."""
    shares: ShareRows
    at: datetime
    trigger: str
    telling: Telling = field(default_factory=Telling)


def record(done: Pass) -> RecordedPlan:
    """Write ``done`` in the caller's transaction.

    1. Decide which decisions are news: acts in enforce mode always, anything else when the workload
       was told otherwise before. 2. Tell the workloads that wait. 3. Write the cycle, over the newest
       one if that brought no news. 4. Write the news. 5. Replace the division where it changed.
    """
    lines = _sort(done)
    rows = _tell(lines)
    cycle = _cycle(done)
    news = lines.news
    recorded = RecordedPlan(cycle=cycle, decisions=len(news), rewritten=len(rows))
    insert_rows([decision_row(d, cycle, done) for d in news])
    write_columns(rows, TOLD)
    recorded.shares = done.shares.save(plan=done.plan, snapshot=done.snapshot, rows=done.rows)
    return recorded


@dataclass(slots=True)
class _Lines:
    """Decisions of a plan by what becomes of them."""

    news: list[m.Decision] = field(default_factory=list)
    """Kept in the ledger."""
    changes: list[tuple[Workload, m.Decision]] = field(default_factory=list)
    """Rows that do not hold GPUs, with what they are told now."""


def _sort(done: Pass) -> _Lines:
    """What has a new reason is told in the plan's order and is news once it is told."""
    plan = done.plan
    enforced = done.cluster.mode == ClusterMode.ENFORCE
    acts = [act for act in plan.acts if act.workload in done.by_name]
    said = [] if enforced else acts
    """Decisions that are told beside the waits: nobody carries them out."""
    news, others = _news(done, said)
    return _Lines(
        news=[*(acts if enforced else ()), *(decision for _, decision in news)],
        changes=[(row, d) for row, d in (*news, *others) if row.state not in HOLDING],
    )


Pair = tuple[Workload, m.Decision]


def _news(done: Pass, said: Sequence[m.Decision]) -> tuple[list[Pair], list[Pair]]:
    """Those of ``said`` and of the waits to tell now: those with a new reason, and others."""
    waits = done.plan.waits
    if not done.telling.is_due(len(said) + len(waits)):
        return [], []
    rows = [done.by_name.get(name) for name in [*(d.workload for d in said), *waits.names]]
    reasons = [*(d.reason for d in said), *waits.reasons]
    changed, moved = done.telling.choose(rows, reasons)
    places = [*changed, *moved]
    spelled = iter(waits.spell([place - len(said) for place in places if place >= len(said)]))
    decisions = [said[place] if place < len(said) else next(spelled) for place in places]
    pairs = [(row, d) for place, d in zip(places, decisions, strict=True) if (row := rows[place])]
    return pairs[: len(changed)], pairs[len(changed) :]


def timed(cycle: Cycle, took_ms: float) -> None:
    """What its pass took; the slowest of those that the row stood for stays known."""
    cycle.took_ms = took_ms
    if cycle.slowest_ms is None or took_ms >= cycle.slowest_ms:
        cycle.slowest_ms, cycle.slowest_at = took_ms, cycle.at


def _cycle(done: Pass) -> Cycle:
    """The row of this pass. The newest row is reused while nothing hangs on it, and its slowest pass is of
    late."""
    newest = Cycle.objects.filter(cluster=done.cluster).order_by("-number").first()
    reuse = newest is not None and _stands(newest, done.at) and not newest.decisions.exists()
    cycle = newest if newest is not None and reuse else Cycle(cluster=done.cluster)
    cycle.number = (newest.number if newest else 0) + 1
    cycle.at, cycle.mode, cycle.trigger = done.at, done.cluster.mode, done.trigger
    cycle.pending, cycle.running = done.pending, done.running
    actions = [d.action for d in done.plan.acts]
    cycle.admitted = actions.count(m.Action.ADMIT)
    cycle.evicted = actions.count(m.Action.EVICT)
    cycle.save()
    return cycle


def _stands(cycle: Cycle, at: datetime) -> bool:
    """Whether the row may stand for a pass at ``at`` as well."""
    return cycle.slowest_at is None or at - cycle.slowest_at < STANDS_FOR


def decision_row(decision: m.Decision, cycle: Cycle, done: Pass) -> Decision:
    """Named by keys: assigning hundreds of related rows takes longer than all else here."""
    return Decision(
        cycle_id=cycle.pk,
        workload_id=done.by_name[decision.workload].pk,
        action=decision.action.value,
        reason=decision.reason.value,
        sentence=decision.sentence,
        sealed=sealed_of(decision),
        numbers=numbers_at(decision, done.plan, done.by_name),
        gpu_class_id=_key(done.rows.class_by_name.get(decision.gpu_class or "")),
        members=decision.members,
        placement=dict(decision.placement),
        for_workload_id=_key(done.by_name.get(decision.for_workload or "")),
        until=decision.until,
        position=decision.position,
    )


def _key(row: Model | None) -> int | None:
    return None if row is None else row.pk


def _tell(lines: _Lines) -> list[Workload]:
    """Set what each waiting workload is told; the rows that differ. What runs keeps its last word."""
    rows = []
    for row, decision in lines.changes:
        values: dict[str, Any] = {
            "reason": decision.reason.value,
            "sentence": decision.sentence,
            "sealed": sealed_of(decision),
            "numbers": dict(decision.numbers),
            "until": decision.until,
            "position": decision.position,
        }
        if any(getattr(row, name) != value for name, value in values.items()):
            for name, value in values.items():
                setattr(row, name, value)
            rows.append(row)
    return rows
