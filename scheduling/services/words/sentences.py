"""What a reader may be told: the one door between what is kept and what is read.

A decision is kept with its whole sentence and with the sealed one, both put into words by the engine
from the same facts, and with the queues that the whole one names beside the workload's own. A reader who sees
all of them reads the whole sentence; one who sees the workload's queue alone reads the sealed one; one who
sees not even that, and of a sentence whose names were not kept, what the reason says by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from scheduling.engine import model as m
from scheduling.engine.model import Reason
from scheduling.engine.reasons import facts, wording
from scheduling.engine.reasons.catalogue import DECLARED
from scheduling.models import Decision, Eviction, Queue, Transition, Workload
from scheduling.services.ledger.evictions import RULES

Json = dict[str, Any]
Row = Workload | Decision | Eviction | Transition

OTHERS_QUEUE, OTHERS_WORK = facts.OTHERS_QUEUE, facts.OTHERS_WORK
"""What stands for another team's queue and work before who may not see it."""

INSTANT, LOSS = wording.CLOCK, wording.LOSS
"""How the engine writes an instant, and the work that an act lost, for pages that show them otherwise."""

GENERAL: Mapping[str, str] = {
    r: declared.general for r, declared in DECLARED.items() if declared.general
}
"""Sentences of the reasons that name others' work, without a name or a figure."""
WITHHELD = "The details are for those who see its queue."
PLAIN = ("", Reason.MISROUTED, Reason.NO_SUCH_CLASS, Reason.GANG_INCOMPLETE)
"""Reasons that quote only what the workload itself asks for."""
OF_BLAMED = ("holds", "fair_share", "budget_left")
"""Numbers that are the blamed queue's where that is another one than the workload's own."""
PARTIES = ("queue", "workload_queue")
"""Of the numbers: paths of the queue that is blamed and of the one where the rival waits."""
REASON_OF = {rule.value: reason.value for reason, rule in RULES.items()}
"""By rule of an eviction."""


class Reader(Protocol):
    """The reader. Queues are given by cluster and path."""

    user: str

    def sees_queue(self, cluster_id: int, path: str) -> bool:
        """Its name and figures."""

    def sees_work(self, cluster_id: int, path: str) -> bool:
        """What waits and runs in it."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as it is kept, and whom it is about."""

    cluster_id: int
    queue: str | None
    """Path of the workload's queue; None without one."""
    user: str
    reason: str
    sentence: str
    sealed: Json | None
    """As ``sealed_of``; None where nobody kept whom the sentence names."""
    numbers: Json
    rival: Workload | None = None
    """For whom it was decided, where a row points at it."""


@dataclass(frozen=True, slots=True)
class ReadableSentence:
    """The same as one reader may have it."""

    sentence: str
    numbers: Json


def sealed_of(decision: m.Decision) -> Json:
    """What is kept beside the sentence of ``decision``: the sealed one and the queues that the whole one
    names; empty where it names only the workload's own queue and those above.
    """
    if not decision.sealed:
        return {}
    named = {key: decision.numbers[key] for key in PARTIES if key in decision.numbers}
    return {"sentence": decision.sealed, **named}


def readable(row: Row, reader: Reader) -> ReadableSentence:
    """What ``reader`` may be told of ``row``."""
    return tell(said_in(row), reader)


def said_in(row: Row) -> Sentence:
    work = row if isinstance(row, Workload) else row.workload
    return Sentence(
        cluster_id=work.cluster_id,
        queue=work.queue.path if work.queue else None,
        user=work.user,
        reason=REASON_OF.get(row.rule, "") if isinstance(row, Eviction) else row.reason,
        sentence=row.sentence,
        sealed=row.sealed,
        numbers={} if isinstance(row, Transition) else row.numbers,
        rival=row.for_workload if isinstance(row, Decision | Eviction) else None,
    )


def tell(said: Sentence, reader: Reader) -> ReadableSentence:
    """``said`` as ``reader`` may have it."""
    view = _View(said, reader)
    return ReadableSentence(view.sentence(), view.numbers())


@dataclass(frozen=True, slots=True)
class _View:
    """A sentence before one reader."""

    said: Sentence
    reader: Reader

    def sentence(self) -> str:
        said = self.said
        if not said.sentence:
            return ""
        if self.sees_subject:
            if self.sees_all_named:
                return said.sentence
            if said.sealed:
                return str(said.sealed["sentence"])
        return GENERAL.get(said.reason, WITHHELD)

    def numbers(self) -> Json:
        """Without the figures of queues that the reader may not see, and others' names replaced."""
        shown = {name: value for name, value in self.said.numbers.items() if self._shows(name)}
        if "workload" in shown and not self.sees_rival:
            shown["workload"] = OTHERS_WORK
        for party in PARTIES:
            if party in shown and not self._sees_queue(shown[party]):
                shown[party] = OTHERS_QUEUE
        return shown

    def _shows(self, name: str) -> bool:
        if name.startswith("victim_"):
            return self._sees_queue(self.said.queue)
        if name.startswith("for_"):
            return self._sees_queue(self._rival_queue)
        if name in OF_BLAMED and not self._sees_queue(self.named.get("queue", self.said.queue)):
            return False
        return self.sees_subject

    @property
    def named(self) -> Json:
        """Where the queues stand that the sentence names beside its own."""
        return self.said.numbers if self.said.sealed is None else self.said.sealed

    @property
    def sees_subject(self) -> bool:
        """Whether the reader sees the workload, and the queue that its sentences are about."""
        said = self.said
        if said.queue is not None and self.reader.sees_work(said.cluster_id, said.queue):
            return True
        own = bool(said.user) and said.user == self.reader.user
        return said.reason in PLAIN and (own or self.reader.sees_work(said.cluster_id, ""))

    @property
    def sees_all_named(self) -> bool:
        known = self.said.rival or any(party in self.named for party in PARTIES)
        if self.said.sealed is None and self.said.reason in GENERAL and not known:
            return self.reader.sees_work(self.said.cluster_id, "")
        return self.sees_rival and (
            "queue" not in self.named or self._sees_queue(self.named["queue"])
        )

    @property
    def sees_rival(self) -> bool:
        where = self._rival_queue
        rival = self.said.rival
        if rival is not None and not may_name(rival, self.reader):
            return False
        return where is None or self.reader.sees_work(self.said.cluster_id, where)

    @property
    def _rival_queue(self) -> str | None:
        """Path of the queue of the one for whom it was decided, as it was then."""
        for names in (self.named, self.said.numbers):
            if "workload_queue" in names:
                return str(names["workload_queue"])
        rival = self.said.rival
        return rival.queue.path if rival is not None and rival.queue else None

    def _sees_queue(self, path: Any) -> bool:
        return path is not None and self.reader.sees_queue(self.said.cluster_id, str(path))


def may_name(work: Workload, reader: Reader) -> bool:
    """Whether ``reader`` may read of ``work``: it is theirs, or in a queue whose work they see."""
    if work.user and work.user == reader.user:
        return True
    return reader.sees_work(work.cluster_id, work.queue.path if work.queue else "")


def name_of(work: Workload | None, reader: Reader) -> str | None:
    """Its name, or that it is another team's; None for none."""
    if work is None:
        return None
    return work.name if may_name(work, reader) else OTHERS_WORK


def queue_of(queue: Queue | None, reader: Reader) -> str | None:
    """Its path (a root's name), or that it is another team's; None for none."""
    if queue is None:
        return None
    return str(queue) if reader.sees_queue(queue.cluster_id, queue.path) else OTHERS_QUEUE


def home_of(work: Workload, reader: Reader) -> Queue | None:
    """Its queue, where the reader sees that: one's own work may be in another team's."""
    seen = work.queue and reader.sees_queue(work.cluster_id, work.queue.path)
    return work.queue if seen else None


def place_of(work: Workload, reader: Reader) -> str:
    """The path of its queue, or what its label says."""
    return str(home_of(work, reader) or work.queue_label)


def answers(found: Sequence[Json], workload: Workload, reader: Reader) -> list[Json]:
    """Of what would start ``workload`` (``explain.sooner``) what ``reader`` may have: a limit is
    that of a queue on its line, which they have to see.
    """
    parts = workload.queue.path.split("/") if workload.queue else []
    paths = {name: "/".join(parts[: depth + 1]) for depth, name in enumerate(parts)}
    return [
        one
        for one in found
        if not one["queue"]
        or (one["queue"] in paths and reader.sees_queue(workload.cluster_id, paths[one["queue"]]))
    ]
