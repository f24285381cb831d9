"""The decisions of a plan, by slot."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from scheduling.engine.compile.structs import Flags, Floats, Ints, declare, per


@declare
class SeatPool(NamedTuple):
    """Seats of all who are given any: ``first[slot]`` and as many as it has members."""

    first: Annotated[Ints, per("slot")]
    node: Annotated[Ints, per("seat")]
    device: Annotated[Ints, per("seat")]
    pledged: Annotated[Ints, per("resource", "seat")]  # what is free for a claim: ``pledge``
    size: Annotated[Ints, per("1")]


@declare
class StartLog(NamedTuple):
    """What started on free room in this cycle, ``slot[:Round.starts]``, and what became of other starts."""

    slot: Annotated[Ints, per("slot")]
    served: Annotated[Flags, per("slot")]  # others leave for it
    withdrawn: Annotated[Flags, per("slot")]  # it stepped back from its start


@declare
class Searches(NamedTuple):
    """Of searches for victims."""

    made: Annotated[Ints, per("slot")]  # see ``Facts.searches``
    barred_by: Annotated[Ints, per("slot")]  # what stood in their way: ``rules.bars``


@declare
class Decisions(NamedTuple):
    """Decisions by slot, in ``order[:size[0]]``."""

    action: Annotated[Ints, per("slot", fill=-1)]
    reason: Annotated[Ints, per("slot", fill=-1)]
    gpu_class: Annotated[Ints, per("slot")]
    members: Annotated[Ints, per("slot")]
    rival: Annotated[Ints, per("slot", fill=-1)]  # the workload it is for, or that goes first
    blame: Annotated[Ints, per("slot", fill=-1)]  # the queue at which it failed
    rule: Annotated[Ints, per("slot", fill=-1)]  # of ``codes``, of what leaves, shrinks or moves
    lapsed: Annotated[Ints, per("slot", fill=-1)]  # why its claim ended, of ``codes``
    until: Annotated[Floats, per("slot")]
    lost: Annotated[Floats, per("slot")]  # GPU-seconds
    figures: Annotated[Floats, per("slot", "figure")]  # what sentences quote: ``reasons.figures``
    listed: Annotated[Flags, per("slot")]  # it stands in ``order``
    told_by: Annotated[Ints, per("slot", fill=-1)]  # whose line tells the rest, -1 its own
    order: Annotated[Ints, per("slot")]
    size: Annotated[Ints, per("1")]
    pool: SeatPool
    starts: StartLog
    searches: Searches
