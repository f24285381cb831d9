"""How a queue's fair share comes about, read from the newest division. All figures are milli-GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from portal.display.entitlement import Axis, Span
from portal.display.format import gpus, percent
from scheduling.models import MILLI, Queue, Share, StepKind


@dataclass(frozen=True)
class Level:
    """One step down the tree. The last row is the queue's own part of the row above."""

    queue: Queue
    note: str
    to_divide: float
    guaranteed: float
    spare: float


@dataclass(frozen=True)
class WaterfallLine:
    """One line of the waterfall: ``amount`` put on top of ``start``."""

    title: str
    note: str
    start: float
    amount: float
    is_loan: bool

    @property
    def end(self) -> float:
        return self.start + self.amount


@dataclass(frozen=True)
class PlacedLine:
    """A step with its place on the axis; ``span`` is None where nothing is added."""

    step: WaterfallLine
    span: Span | None
    end: str


@dataclass(frozen=True)
class Division:
    """What a page needs of the division: shares by queue, and who is below whom."""

    shares: Mapping[int, Share]
    queues: Mapping[int, Queue]
    ready: float
    visible: frozenset[int]
    loans: Mapping[int, int] = field(default_factory=dict)
    """What loans add to a queue's nominal, or take from it; it is in its share."""

    @classmethod
    def of(
        cls,
        shares: Iterable[Share],
        queues: Iterable[Queue],
        ready: float,
        visible: Iterable[int],
        loans: Mapping[int, int] | None = None,
    ) -> Division:
        return cls(
            {share.queue_id: share for share in shares},
            {queue.pk: queue for queue in queues},
            ready,
            frozenset(visible),
            loans or {},
        )

    def share(self, queue: Queue) -> Share:
        return self.shares.get(queue.pk) or Share(queue=queue)

    def children(self, queue: Queue) -> list[Share]:
        kids = [q for q in self.queues.values() if q.parent_id == queue.pk]
        return [self.share(q) for q in sorted(kids, key=lambda q: (q.position, q.name))]

    def chain(self, queue: Queue) -> list[Queue]:
        """From the root down to ``queue``."""
        above = [queue]
        while (parent := self.queues.get(above[0].parent_id or 0)) is not None:
            above.insert(0, parent)
        return above

    def levels(self, queue: Queue) -> list[Level]:
        """What each queue above had to divide, then what ``queue`` got of it."""
        rows = [self._level(above) for above in self.chain(queue)[:-1]]
        own = self.share(queue)
        spare = own.fair_share - own.guaranteed
        return [*rows, Level(queue, "what it gets", own.fair_share, own.guaranteed, spare)]

    def _level(self, queue: Queue) -> Level:
        kids = self.children(queue)
        total = self.ready if queue.is_root else self.share(queue).fair_share
        guaranteed = sum(kid.guaranteed for kid in kids)
        kept_back = sum(kid.kept_back for kid in kids)
        note = "ready" if queue.is_root else "its fair share"
        if kept_back > 0:
            note += (
                f", of which {gpus(kept_back)} {'is' if kept_back == MILLI else 'are'} kept back"
            )
        return Level(queue, note, total, guaranteed, max(0.0, total - guaranteed - kept_back))

    def steps(self, queue: Queue) -> list[WaterfallLine]:
        """The guarantee, then what it borrows. With one borrower every lender is known by name;
        with several only the pot they share is."""
        own = self.share(queue)
        steps = [_guarantee(own, self.loans.get(queue.pk, 0))]
        parent = self.queues.get(queue.parent_id or 0)
        if parent is None:
            return steps
        spare = own.fair_share - own.guaranteed
        siblings = [kid for kid in self.children(parent) if kid.queue_id != queue.pk]
        if any(kid.fair_share - kid.guaranteed > 0.5 for kid in siblings):
            return [*steps, self._pot(parent, own, spare)]
        return [*steps, *self._lenders(parent, own, siblings, spare)]

    def _pot(self, parent: Queue, own: Share, spare: float) -> WaterfallLine:
        level = self._level(parent)
        note = f"shared with siblings by weight; {parent} has {gpus(level.spare)} spare"
        return WaterfallLine(
            f"Spare of {parent or 'the cluster'}", note, own.guaranteed, spare, True
        )

    def _lenders(
        self, parent: Queue, own: Share, siblings: list[Share], spare: float
    ) -> list[WaterfallLine]:
        steps, at, left, unseen = [], own.guaranteed, spare, 0.0
        for kid in siblings:
            lends = min(left, kid.lent)
            if lends <= 0:
                continue
            left -= lends
            if kid.queue_id not in self.visible:
                unseen += lends
                continue
            note = f"lends {gpus(lends)} of {gpus(kid.nominal)}"
            name = self.queues[kid.queue_id].name
            steps.append(WaterfallLine(f"Idle nominal of {name}", note, at, lends, True))
            at += lends
        if unseen:
            steps.append(
                WaterfallLine("Idle nominal of other queues", "lent to it", at, unseen, True)
            )
            at += unseen
        above = "the cluster" if parent.is_root else parent.name
        title = f"Spare of {above}" if parent.is_root else f"Spare above {above}"
        steps.append(WaterfallLine(title, "what no guarantee takes", at, left, True))
        return steps


@dataclass(frozen=True)
class DivisionStep:
    """One step as the engine wrote it down while dividing."""

    title: str
    why: str
    amount: float


TITLES = {
    StepKind.NOMINAL: ("Nominal quota", "what it is given"),
    StepKind.LENT: ("Idle, lent", "it does not ask for them; others may use them"),
    StepKind.KEPT_BACK: ("Idle, kept back", "its lending limit keeps them for it"),
    StepKind.RATIONED: ("Guarantee cut", "the guarantees beside it exceed what there is"),
    StepKind.SPARE: ("Spare", "all it asks for: nothing is short"),
    StepKind.REMAINDER: ("Left over", "by weight alone, after those who used less had enough"),
}


def parts(share: Share) -> list[DivisionStep]:
    """The steps of ``share``; they sum to its fair share."""
    return [DivisionStep(*_words(step), 1000 * step["gpus"]) for step in share.steps]


def _words(step: Mapping[str, Any]) -> tuple[str, str]:
    kind = StepKind(step["kind"])
    title, why = TITLES[kind]
    if kind is StepKind.SPARE and step["n"]:
        why = (
            f"its weight is {percent(step['n'])} of those who still want, it used"
            f" {percent(step['u'])} of the class: it pulls with {percent(step['w'])}"
        )
    return title, why


def _guarantee(own: Share, loan: int) -> WaterfallLine:
    moved = f" {'+' if loan > 0 else '−'} {gpus(abs(loan))} by loans" if loan else ""
    note = f"min(nominal {gpus(own.nominal - loan)}{moved}, demand {gpus(own.demand)})"
    if own.oversubscribed:
        note += "; the siblings' nominal exceeds what there is, so it is filled in proportion"
    return WaterfallLine("Guaranteed", note, 0, own.guaranteed, False)


def draw(steps: Iterable[WaterfallLine], on: Axis) -> list[PlacedLine]:
    """The waterfall's bars on the axis."""
    return [PlacedLine(step, on.span(step.start, step.end), on.percent(step.end)) for step in steps]
