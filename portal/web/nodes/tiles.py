"""GPU by GPU, what a node holds: runs of tiles, those of one workload side by side.

A tile is a whole GPU, or a slice where the class is one. What the reader may not see is one run without
a name. Amounts are milli-GPU; counts of tiles are whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

from portal.display.format import MILLI
from portal.web.nodes.ages import WORDS
from portal.web.nodes.states import state_of
from scheduling.models import Node
from scheduling.services.explain.fragmentation import left_over

TONES = 6
"""Colours of departments, and of workloads; see nodes.css."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose tiles these are: the letters of the queue, and the number of its department's colour."""

    letters: str
    tone: int
    queue: str


@dataclass(frozen=True, slots=True)
class Seat:
    """What one workload holds on one node: ``gpus`` in all, ``share`` when its members share GPUs."""

    uid: str
    name: str
    gpus: int
    share: bool
    owner: Owner
    age: int = 0
    """How long it has run, as ``ages`` has it."""
    leaves_for: str = ""
    """The engine name of what it was evicted for, while it leaves."""

    @property
    def tone(self) -> int:
        """One of the colours, the same on every node and at every look."""
        return crc32(self.uid.encode()) % TONES + 1


@dataclass(frozen=True, slots=True)
class Promise:
    """``seat`` is kept for work that waits for others to leave; ``name`` is its engine name."""

    seat: Seat
    name: str


@dataclass(frozen=True, slots=True)
class Run:
    """``count`` tiles of a kind: work, shared, other, outside, free, fragmented, closed or down."""

    kind: str
    count: int
    seats: tuple[Seat, ...] = ()
    kept_for: Seat | None = None

    @property
    def owner(self) -> Owner | None:
        return self.seats[0].owner if self.seats else None

    @property
    def age(self) -> int:
        """Of the work that has run longest."""
        return max((seat.age for seat in self.seats), default=0)

    @property
    def age_words(self) -> str:
        return WORDS[self.age]

    @property
    def tiles(self) -> range:
        return range(self.count)

    @property
    def says(self) -> str:
        """What stands in the title, and what a reader without eyes hears."""
        if self.seats:
            names = ", ".join(f"{seat.name} of {seat.owner.queue}" for seat in self.seats)
            words = f"{self.count} {'shared by' if self.kind == 'shared' else 'held by'} {names}"
        else:
            words = f"{self.count} {SAID[self.kind]}"
        rival = self.kept_for
        return f"{words}, kept for {rival.name} of {rival.owner.queue}" if rival else words


SAID = {
    "other": "held by work of another team",
    "outside": "held outside the queues",
    "free": "free",
    "fragmented": "free, but nothing that waits fits (where nothing waits: what usually runs)",
    "closed": "free, but closed to new work",
    "down": "on a node that takes no work",
}


def runs(
    node: Node, seats: Sequence[Seat], wanted: int, promises: Sequence[Promise] = ()
) -> list[Run]:
    """The tiles of ``node`` from left to right; ``seats`` and ``promises`` are what the reader may see of it.

    Free GPUs that members of ``wanted`` (milli-GPU) leave over are fragmented.
    """
    installed = -(-node.gpus // MILLI)
    if state_of(node).key == "down":
        return [Run("down", installed)]
    found = [Run("work", h.gpus // MILLI, (h,)) for h in _in_order(seats) if not h.share]
    if shares := tuple(h for h in _in_order(seats) if h.share):
        found.append(Run("shared", -(-sum(h.gpus for h in shares) // MILLI), shares))
    seen = sum(h.gpus for h in seats)
    found.append(Run("other", -(-max(0, node.allocated_gpus - seen) // MILLI)))
    found.append(Run("outside", -(-node.foreign_gpus // MILLI)))
    found = _cut(found, installed)
    idle = max(0, node.gpus - node.allocated_gpus - node.foreign_gpus)
    left = installed - sum(run.count for run in found)
    if not node.ready:
        found.append(Run("closed", left))
        return [run for run in found if run.count]
    fragmented = -(-left_over(min(idle, left * MILLI), wanted) // MILLI)
    found += [Run("free", left - fragmented), Run("fragmented", fragmented)]
    return [run for run in _with_promises(found, promises) if run.count]


def _with_promises(found: Sequence[Run], promises: Sequence[Promise]) -> list[Run]:
    """What is kept for work that waits: of who leaves for it, and idle tiles for the rest of it."""
    seats = {one.name: one.seat for one in promises}
    left = {one.name: -(-one.seat.gpus // MILLI) for one in promises}
    drawn = []
    for run in found:
        rival = run.seats[0].leaves_for if run.seats else ""
        if rival in seats:
            left[rival] -= run.count
        drawn.append(replace(run, kept_for=seats.get(rival)))
    for one in promises:
        drawn = list(_keep(drawn, one.seat, max(0, left[one.name])))
    return drawn


def _keep(found: Iterable[Run], seat: Seat, count: int) -> Iterator[Run]:
    """``count`` idle tiles, the first ones, become kept for ``seat``."""
    for run in found:
        size = 0
        if run.kind in ("free", "fragmented") and run.kept_for is None:
            size = min(count, run.count)
        count -= size
        yield from (Run("free", size, kept_for=seat), replace(run, count=run.count - size))


def _in_order(seats: Iterable[Seat]) -> list[Seat]:
    """The largest first, so that gangs are seen."""
    return sorted(seats, key=lambda h: (-h.gpus, h.owner.letters, h.name))


def _cut(found: Sequence[Run], most: int) -> list[Run]:
    """No more tiles than there are: what the rows say of work and of nodes may be a moment apart."""
    rest = []
    for run in found:
        count = min(run.count, most)
        most -= count
        rest.append(Run(run.kind, count, run.seats))
    return rest
