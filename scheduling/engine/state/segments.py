"""Segments: so many members of a gang at a time sit inside one domain of a level.

They are counted, not named: a gang keeps its segments where each domain of the level holds a multiple of
their size. ``Work.segment`` has size, level and whether they are required in one number, 0 for none.
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduling.engine.compile.kernel import inner
from scheduling.engine.model import Topology
from scheduling.engine.state.input import Work
from scheduling.engine.state.roles import parts_of

SIZE_AT = 4
"""Above the bits of the level and of whether it is required."""
LEVEL = 7


def segment_of(wish: Topology, levels: Mapping[str | None, int]) -> int:
    """What ``Work.segment`` says of ``wish``; members inside one domain already need no wider one."""
    one = wish.segment
    if one is None or one.members < 2:
        return 0
    level = max(levels[one.required or one.preferred], levels[wish.required])
    return one.members << SIZE_AT | level << 1 | int(one.required is not None)


@inner
def has_segments(work: Work, w: int) -> bool:
    return bool(work.segment[w] != 0)


@inner
def needs_segments(work: Work, w: int) -> bool:
    """Whether it runs by whole segments or not at all."""
    return bool(work.segment[w] & 1)


@inner
def segment_size(work: Work, w: int) -> int:
    return int(work.segment[w] >> SIZE_AT)


@inner
def segment_level(work: Work, w: int) -> int:
    return int(work.segment[w] >> 1 & LEVEL)


@inner
def unit_of(work: Work, w: int) -> int:
    """Seats of which it takes and gives up a multiple: those of a segment, or of one member."""
    if work.segment[w] & 1:
        return int(work.segment[w] >> SIZE_AT)
    return parts_of(work, w, work.elastic_role[w])


def required_by(segment: int) -> tuple[int, int]:
    """Size and level of the segments that ``Work.segment`` requires; single members where it does not."""
    return (segment >> SIZE_AT, segment >> 1 & LEVEL) if segment & 1 else (1, 0)


def preferred_only(segment: int) -> int:
    """The same segment, without which it may run as well."""
    return segment & ~1
