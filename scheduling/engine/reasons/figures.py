"""The figures that sentences quote: which there are for each kind of reason, and in which unit.

A kind is a NamedTuple. Kernels write figures into the row of a workload at the places that ``places`` gives
(``out.figures[w, LIMIT.holds]``); sentences read the same names from the figures of a decision. A field
that is ``HIDDEN`` is for sentences alone, one that is ``IF_ANY`` is left out of the numbers where it is 0.
"""

from __future__ import annotations

from collections import namedtuple
from enum import Enum, auto
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeVar, get_type_hints


class Unit(Enum):
    """What a figure counts, and how it reads outside the engine."""

    MILLI = auto()
    """Thousandths of a GPU or CPU, read as a number of GPUs or CPUs."""
    COUNT = auto()
    """Whole things, seconds, GPU-hours or MiB, read as they are."""


class Visibility(Enum):
    """When a figure is among the numbers of a decision."""

    HIDDEN = auto()
    IF_ANY = auto()


Gpus = Annotated[Any, Unit.MILLI]
Cpus = Annotated[Any, Unit.MILLI]
Count = Annotated[Any, Unit.COUNT]
Mib = Annotated[Any, Unit.COUNT]
Seconds = Annotated[Any, Unit.COUNT]
GpuHours = Annotated[Any, Unit.COUNT]
GpuSeconds = Annotated[Any, Unit.COUNT]
Hidden = Annotated[Any, Unit.COUNT, Visibility.HIDDEN]


def _more(kind: Any, **fields: Any) -> Any:
    """Figures that begin as those of ``kind``: they are written before the reason is known."""
    make: Any = namedtuple  # with fields that a type checker cannot know
    made = make("More", (*kind._fields, *fields))
    made.__annotations__ = {**get_type_hints(kind, include_extras=True), **fields}
    return made


class Nothing(NamedTuple):
    """No figures."""


class Start(NamedTuple):
    """A start, inside nominal or borrowing."""

    holds: Gpus
    nominal: Gpus
    fair_share: Gpus


class Growth(NamedTuple):
    """An elastic gang that gets more members."""

    members: Count
    members_after: Count
    members_max: Count
    holds: Gpus


class Departure(NamedTuple):
    """What leaves for another, and how its queue stood."""

    held: Gpus
    fair_share: Gpus
    keeps: Gpus
    requested: Gpus
    nominal: Gpus


class Yield(NamedTuple):
    """How what makes way by merit, and whom it makes way for, stood. ``is_ahead``: that of its own quota is
    why, else that it is expected to take longer.
    """

    ahead_s: Seconds
    expected_gpu_s: GpuSeconds
    other_expected_gpu_s: GpuSeconds
    requested: Gpus
    is_ahead: Hidden


Shrunk = _more(Departure, gives_members=Count)
"""Of an elastic gang, which goes on."""


class Move(NamedTuple):
    """What starts again elsewhere for another."""

    moves: Gpus
    requested: Gpus
    workloads: Count


class StaleGang(NamedTuple):
    """A gang that has been short of members for too long."""

    members: Count
    min_members: Count
    stale_s: Seconds
    gives_back: Gpus


class Drain(NamedTuple):
    """What leaves a draining queue."""

    members: Count
    min_members: Count
    gives_back: Gpus


class Promise(NamedTuple):
    """Room that comes free for a workload."""

    needs: Gpus
    coming: Gpus
    holds: Gpus
    fair_share: Gpus
    victims: Count


class ClaimEnd(NamedTuple):
    """A claim that ended: what was kept, and how many left for it."""

    needs: Gpus
    victims: Count


class NeverFits(NamedTuple):
    """What could hold it at most; the nodes that it may use, where these are some of its class."""

    needs: Gpus
    most: Gpus
    min_members: Count
    per_member: Gpus
    nodes_allowed: Annotated[Count, Visibility.IF_ANY]
    nodes_in_class: Annotated[Count, Visibility.IF_ANY]


class AtLimit(NamedTuple):
    """``borrowable`` is the limit that the queue would have if its weight let it borrow."""

    holds: Gpus
    limit: Gpus
    needs: Gpus
    borrowable: Annotated[Gpus, Visibility.HIDDEN]


class HoursBudget(NamedTuple):
    used_gpu_hours: GpuHours
    budget_gpu_hours: GpuHours


class JobLimit(NamedTuple):
    running: Count
    max_running: Count


class UserLimit(NamedTuple):
    running: Count
    max_running: Count
    holds: Gpus
    max_gpus: Gpus


class FairShare(NamedTuple):
    """How the queue stands that is, or would be, above its fair share."""

    holds: Gpus
    fair_share: Gpus
    needs: Gpus
    free: Gpus
    kept_back: Gpus
    evictions: Annotated[Count, Visibility.IF_ANY]


class FixedUse(NamedTuple):
    """What a queue holds that cannot be preempted."""

    holds: Gpus
    nominal: Gpus
    needs: Gpus
    fair_share: Gpus


class Turn(NamedTuple):
    holds: Gpus
    fair_share: Gpus
    first_needs: Gpus
    turn_in_s: Annotated[Seconds, Visibility.IF_ANY]


class Free(NamedTuple):
    """What is free of a class, and what it is good for."""

    free: Gpus
    needs: Gpus
    nodes: Count
    fits_members: Count


class ShortReserve(NamedTuple):
    """What is free, and what of it no long work is given."""

    free: Gpus
    needs: Gpus
    kept_free: Gpus
    expected_gpu_s: GpuSeconds


FreeTogether = _more(Free, fits_together=Count)
FreeBySegments = _more(FreeTogether, segment=Count)
FreeKept = _more(Free, kept_for_it=Gpus)
FreeForOther = _more(Free, starts_in_s=Annotated[Seconds, Visibility.IF_ANY])
FreeWithoutCpus = _more(Free, member_cpus=Cpus, most_cpus=Cpus)
FreeWithoutMemory = _more(Free, member_mib=Mib, most_mib=Mib)
FreeWithoutOther = _more(Free, member_amount=Count, most_amount=Count, other=Hidden)
"""``other`` is the row of ``Work.need`` that is short."""
FreeOnItsNodes = _more(Free, nodes_allowed=Count, nodes_in_class=Count)


class Stays(NamedTuple):
    """What would have to leave, and stays."""

    holds: Gpus
    fair_share: Gpus
    needs: Gpus
    would_leave: Gpus


WouldLeave = _more(Stays, waits_itself=Hidden, protection=Hidden)
"""``waits_itself``: no protection forbids it, only the time that the workload has still to wait;
``protection`` is one of ``MIN_RUN_TIME``, ``GRACE`` and ``COOLDOWN``.
"""
OverBudget = _more(Stays, budget_left=Gpus)
OverCap = _more(Stays, may_leave=Gpus)
MIN_RUN_TIME, GRACE, COOLDOWN = 0, 1, 2

T = TypeVar("T")


def places(kind: type[T]) -> T:
    """Where the figures of ``kind`` stand in the row of a workload, by name."""
    return kind(*range(len(names(kind))))


def names(kind: Any) -> tuple[str, ...]:
    return tuple(kind._fields)


@cache
def units(kind: Any) -> dict[str, tuple[Unit, Visibility | None]]:
    """The unit of each figure of ``kind``, by name, and when it is shown: None always."""
    found = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        unit, *shown = hint.__metadata__
        found[name] = (unit, shown[0] if shown else None)
    return found


START = places(Start)
GROWTH = places(Growth)
TAKEN = places(Departure)
YIELD = places(Yield)
SHRUNK = places(Shrunk)
MOVERS = places(Move)
SHORT_GANG = places(StaleGang)
DRAINING = places(Drain)
PROMISE = places(Promise)
NEVER = places(NeverFits)
LIMIT = places(AtLimit)
HOURS = places(HoursBudget)
JOB_LIMIT = places(JobLimit)
USER_LIMIT = places(UserLimit)
FAIR_SHARE = places(FairShare)
NOT_PREEMPTIBLE = places(FixedUse)
TURN = places(Turn)
FREE_GPUS = places(Free)
SHORT_KEPT = places(ShortReserve)
TOGETHER = places(FreeTogether)
BY_SEGMENTS = places(FreeBySegments)
FREE_KEPT = places(FreeKept)
FOR_OTHER = places(FreeForOther)
NO_CPUS = places(FreeWithoutCpus)
NO_MEMORY = places(FreeWithoutMemory)
NO_OTHER = places(FreeWithoutOther)
ITS_NODES = places(FreeOnItsNodes)
WOULD_LEAVE = places(WouldLeave)
OVER_BUDGET = places(OverBudget)
OVER_CAP = places(OverCap)
WIDEST = 7
"""Figures of a kind at most: so wide is the row of a workload."""
