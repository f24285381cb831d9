"""How often work checkpoints, learned from what announces it (``weir.dev/checkpointed-at``).

An *interval* is how long a run went without a checkpoint, in seconds of cluster time: from its start, or
from a moment it announced, to the next one. The last checkpoint of work that runs is, first that applies:

1. announced in this run: that moment, or the last that a declared interval made due, if later;
2. an interval is declared: its start and as many whole intervals as have passed;
3. an interval ``I`` is learned: its start + ``I``, from then until ``I`` has passed once more;
4. else there is none: everything since its start would be lost.

What is learned speaks only for work that is silent, and silence is evidence: who checkpoints as its
fellows do would have announced it after ``I``. One announcement may be late or lost (the write was refused,
the file is still being copied); after two it is taken for work that does not checkpoint, whatever its
fellows do. So a wrong guess makes work look cheaper by one interval at most, and costs its owner less than
two, never days of it. A declared interval teaches nothing about others: who left it out may have meant it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from math import ceil

from django.db.models import Q

from scheduling.models import CheckpointHabit, Cluster, State, Workload

KEPT = 5
"""Intervals remembered of one workload."""
FELLOWS = 20
"""Workloads remembered of one user in one queue."""
OWN = 2
"""Intervals after which a workload's own ones speak for it, whatever its fellows do."""
ENOUGH = 5
"""Workloads from which something can be learned."""
SHARE = 0.9
"""How many of them have to have announced: the rest are taken for work that does not checkpoint."""
SAME_S = 60.0
"""Moments closer than this are one checkpoint: members of a gang announce it one after the other. Also how
far a pod's clock may be ahead."""

Key = tuple[int, str]
"""(queue id, user)"""
Heard = tuple[int, ...]
"""The last intervals of a workload, oldest first; empty when it ran on without announcing any."""


class Source(StrEnum):
    """Whose intervals were learned from, nearest first."""

    OWN = "own"
    USER_IN_QUEUE = "user_in_queue"
    USER = "user"
    QUEUE = "queue"


Level = tuple[Source, Key]


@dataclass(frozen=True, slots=True)
class LearnedInterval:
    """An interval and where it comes from: ``announcing`` of ``seen`` workloads (own: intervals)."""

    interval_s: int
    source: Source
    announcing: int
    seen: int

    def presumed(self, started: datetime, now: datetime) -> datetime | None:
        """The checkpoint that a silent run since ``started`` is taken to have made."""
        whole = (now - started).total_seconds() // self.interval_s
        return started + timedelta(seconds=self.interval_s) if whole == 1 else None


@dataclass(frozen=True, slots=True)
class Fellows:
    """What is known of some workloads. ``interval_s`` is 0 when none of them announced."""

    announcing: int
    silent: int
    interval_s: int

    @classmethod
    def of(cls, heard: Iterable[Heard]) -> Fellows:
        """Of each its longest interval, of those the upper quartile (nearest rank): three of four never went
        longer. A checkpoint presumed too early costs work, one too late only makes its owner dearer, and a
        run or two with a pause in them do not move it."""
        every = list(heard)
        longest = sorted(max(intervals) for intervals in every if intervals)
        typical = longest[ceil(0.75 * len(longest)) - 1] if longest else 0
        return cls(len(longest), len(every) - len(longest), typical)

    @property
    def seen(self) -> int:
        return self.announcing + self.silent

    @property
    def announce(self) -> bool:
        """Whether one of them that is silent may be taken for one whose announcement is late, if they are
        enough."""
        return self.announcing >= SHARE * self.seen


@dataclass(frozen=True, slots=True)
class IntervalVerdict:
    """What the fellows of a workload say of it."""

    typical_s: int = 0
    """The interval of those who announce, whether they are enough or not; 0: none is known."""
    learned: LearnedInterval | None = None


@dataclass(frozen=True, slots=True)
class CheckpointOutlook:
    """What is expected of one workload's checkpoints."""

    learned: LearnedInterval
    presumed_at: datetime | None
    """The checkpoint it is taken to have made without announcing it."""
    due_at: datetime | None
    """When it should announce its next."""


class Habits:
    """The intervals heard of in a cluster, in memory. One process changes them, with the rows in a
    transaction: ``changed`` gives what is to be written."""

    def __init__(self, rows: Iterable[CheckpointHabit]) -> None:
        self._heard: dict[Key, dict[str, Heard]] = {}
        self._keys: dict[int | str, list[Key]] = {}
        """Queue id -> its keys; user -> theirs."""
        self._fellows: dict[Level, Fellows] = {}
        self._verdicts: dict[Key, IntervalVerdict] = {}
        self._changed: dict[Key, None] = {}
        for row in rows:
            self._at((row.queue_id, row.user)).update({uid: tuple(s) for uid, s in row.recent})

    @classmethod
    def of(cls, cluster: Cluster) -> Habits:
        return cls(CheckpointHabit.objects.filter(queue__cluster=cluster))

    def hear(self, row: Workload, announced: datetime | None, now: datetime) -> None:
        """Learn that ``row``, as it was until now, announces the moment ``announced``."""
        started = row.started_at
        if row.state != State.RUNNING or row.queue_id is None or not started or not announced:
            return
        before = row.checkpointed_at
        since = before if before and before >= started else started
        interval_s = (announced - since).total_seconds()
        if interval_s < SAME_S or (announced - now).total_seconds() > SAME_S:
            return
        key = (row.queue_id, row.user)
        had = self._heard.get(key, {}).get(row.uid, ())
        self._note(key, row.uid, (*had, round(interval_s))[-KEPT:])

    def presumed(self, row: Workload, now: datetime) -> datetime | None:
        """The checkpoint that ``row`` is taken to have made by ``now``; None when it announced or declared
        anything, and where nothing is learned. Work that has been silent for too long becomes evidence."""
        if not self._heard or (silence := _silence(row, now)) is None:
            return None
        key, ran_s = silence
        learned = self._own(key, row.uid) or self._weigh(key, row.uid, ran_s, intervals=2)
        if learned is None or row.started_at is None or ran_s < learned.interval_s:
            return None
        return learned.presumed(row.started_at, now)

    def end(self, row: Workload, at: datetime) -> None:
        """Note that the run of ``row`` ends: one that was silent past an interval is evidence."""
        if self._heard and (silence := _silence(row, at)) is not None:
            key, ran_s = silence
            self._weigh(key, row.uid, ran_s, intervals=1)

    def learned(self, row: Workload) -> LearnedInterval | None:
        """What is learned of how often ``row`` checkpoints. The first level that knows enough workloads
        decides, also when it says that they do not announce."""
        if row.queue_id is None:
            return None
        key = (row.queue_id, row.user)
        return self._own(key, row.uid) or self._verdict(key).learned

    def changed(self) -> list[CheckpointHabit]:
        """What is to be written since this was last asked."""
        changed, self._changed = self._changed, {}
        return [
            CheckpointHabit(
                queue_id=queue, user=user, recent=list(self._heard[queue, user].items())
            )
            for queue, user in changed
        ]

    def _own(self, key: Key, uid: str) -> LearnedInterval | None:
        recent = self._heard.get(key)
        own = recent.get(uid, ()) if recent else ()
        return (
            LearnedInterval(max(own), Source.OWN, len(own), len(own)) if len(own) >= OWN else None
        )

    def _weigh(self, key: Key, uid: str, ran_s: float, *, intervals: int) -> LearnedInterval | None:
        """What its fellows say of one that has been silent for ``ran_s``, after it is counted as silent
        itself if that is as many of their ``intervals``."""
        verdict = self._verdict(key)
        if not verdict.typical_s or ran_s < intervals * verdict.typical_s:
            return verdict.learned
        if uid not in self._heard.get(key, {}):
            self._note(key, uid, ())
        return self._verdict(key).learned

    def _note(self, key: Key, uid: str, heard: Heard) -> None:
        recent = self._at(key)
        recent.pop(uid, None)
        recent[uid] = heard
        while len(recent) > FELLOWS:
            del recent[next(iter(recent))]
        self._changed[key] = None
        for level in _levels(*key):
            self._fellows.pop(level, None)
        self._verdicts.clear()

    def _at(self, key: Key) -> dict[str, Heard]:
        if key not in self._heard:
            for part in key:
                self._keys.setdefault(part, []).append(key)
        return self._heard.setdefault(key, {})

    def _verdict(self, key: Key) -> IntervalVerdict:
        found = self._verdicts.get(key)
        if found is None:
            found = self._verdicts[key] = self._judge(key)
        return found

    def _judge(self, key: Key) -> IntervalVerdict:
        for level in _levels(*key):
            fellows = self._of(level)
            if fellows.seen < ENOUGH:
                continue
            typical_s = fellows.interval_s
            if not fellows.announce:
                return IntervalVerdict(typical_s)
            return IntervalVerdict(
                typical_s, LearnedInterval(typical_s, level[0], fellows.announcing, fellows.seen)
            )
        return IntervalVerdict()

    def _of(self, level: Level) -> Fellows:
        if level not in self._fellows:
            self._fellows[level] = Fellows.of(self._members(level))
        return self._fellows[level]

    def _members(self, level: Level) -> Iterator[Heard]:
        source, key = level
        among: Sequence[Key] = [key]
        if source is not Source.USER_IN_QUEUE:
            among = self._keys.get(key[0] if source is Source.QUEUE else key[1], ())
        for each in among:
            yield from self._heard.get(each, {}).values()


def save(changed: Sequence[CheckpointHabit]) -> None:
    """Write ``changed`` in the caller's transaction; each row whole, so twice is as good as once."""
    CheckpointHabit.objects.bulk_create(
        changed,
        update_conflicts=True,
        unique_fields=["queue", "user"],
        update_fields=["recent"],
        batch_size=200,
    )


def last_checkpoint(
    started: datetime,
    announced: datetime | None,
    interval_s: int | None,
    presumed: datetime | None,
    now: datetime,
) -> datetime | None:
    """Of a run since ``started``: the moment announced in it, or the last that its declared interval made
    due; of a run that says nothing the ``presumed`` one, else what an earlier run announced.
    """
    if not interval_s:
        is_announced = announced is not None and announced >= started
        return announced if is_announced else presumed or announced
    whole = (now - started).total_seconds() // interval_s
    expected = started + timedelta(seconds=max(0.0, whole) * interval_s)
    return max(expected, announced) if announced else expected


def outlook(work: Workload, now: datetime) -> CheckpointOutlook | None:
    """What a page tells of ``work``: None when it declares an interval, when it is done, and where nothing
    is learned. One query."""
    if work.queue_id is None or work.checkpoint_interval_s or work.state == State.FINISHED:
        return None
    near = Q(queue=work.queue_id) | Q(queue__cluster=work.cluster_id, user=work.user)
    habits = Habits(CheckpointHabit.objects.filter(near))
    learned = habits.learned(work)
    if learned is None:
        return None
    next_at = None
    if work.state == State.RUNNING and work.checkpointed_at and not _silence(work, now):
        next_at = work.checkpointed_at + timedelta(seconds=learned.interval_s)
    return CheckpointOutlook(
        learned, habits.presumed(work, now), next_at if next_at and next_at > now else None
    )


def _silence(row: Workload, now: datetime) -> tuple[Key, float] | None:
    """Whose work it is and for how long it has run, if it runs in a queue and has neither declared nor
    announced anything in this run."""
    if row.state != State.RUNNING or row.checkpoint_interval_s:
        return None
    started, announced, queue = row.started_at, row.checkpointed_at, row.queue_id
    if started is None or queue is None or (announced is not None and announced >= started):
        return None
    return (queue, row.user), (now - started).total_seconds()


def _levels(queue: int, user: str) -> tuple[Level, ...]:
    """From near to far; work of nobody known has no fellows but those of its queue."""
    whole: Level = (Source.QUEUE, (queue, ""))
    if not user:
        return (whole,)
    return (Source.USER_IN_QUEUE, (queue, user)), (Source.USER, (0, user)), whole
