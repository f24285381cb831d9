"""Gangs of unlike members: roles, each of members of one shape.

Such a gang is counted in the largest number of GPUs that divides those of every member, so that sums of
members are sums of GPUs: its ``need`` is one such part and nothing beside GPUs, ``least`` and ``most`` count
parts. Members sit whole: the first part of each member has the number of its role in the place of a device
and takes what the member needs beside GPUs, the others are whole GPUs like any. Roles stand largest first,
so that the members that fit fewest places sit first. An elastic gang grows and shrinks by members of one of
them, ``Work.elastic_role``: by as many parts as one has.

Segments: so many members of a gang at a time sit inside one domain of a level. They are counted, not named:
a gang keeps its segments where each domain of the level holds a multiple of their size. ``Work.segment`` has
size, level and whether they are required in one number, 0 for none.
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduling.engine.compile.kernel import inner
from scheduling.engine.model import Topology
from scheduling.engine.state.input import Work
from scheduling.engine.state.units import GPUS

WHOLE = -1
"""In place of a device: whole GPUs."""
FIRST_ROLE = -2
"""In place of a device: the first part of a member of the first role; one less for each role further."""


@inner
def has_roles(work: Work, w: int) -> bool:
    return bool(work.roles[0, w] >= 0)


@inner
def many_roles(work: Work, w: int) -> int:
    """How many shapes its members have."""
    many = 0
    while many < work.roles.shape[0] and work.roles[many, w] >= 0:
        many += 1
    return max(1, many)


@inner
def shape_of(work: Work, w: int, role: int) -> int:
    """The slot with what one member of that role needs: its own where all members are alike."""
    return int(work.roles[role, w]) if work.roles[0, w] >= 0 else w


@inner
def members_in(work: Work, w: int, role: int) -> int:
    """Least members of that role."""
    return int(work.role_members[role, w] if work.roles[0, w] >= 0 else work.least[w])


@inner
def parts_of(work: Work, w: int, role: int) -> int:
    """Parts, and so seats, of one member of that role."""
    if work.roles[0, w] < 0:
        return 1
    return int(work.need[GPUS, work.roles[role, w]] // work.need[GPUS, w])


@inner
def elastic_shape(work: Work, w: int) -> int:
    """The slot with what a member needs by which it grows and shrinks."""
    return shape_of(work, w, work.elastic_role[w])


@inner
def members_of_elastic(work: Work, w: int, seats: int) -> int:
    """How many of the members that it may have more of take so many seats, but for those of other roles."""
    if work.roles[0, w] < 0:
        return seats
    role = work.elastic_role[w]
    parts = parts_of(work, w, role)
    return members_in(work, w, role) + (seats - work.least[w]) // parts


@inner
def beside_on(work: Work, w: int, device: int) -> int:
    """The slot with what a seat of ``w`` on ``device`` takes beside GPUs."""
    return int(work.roles[FIRST_ROLE - device, w]) if device <= FIRST_ROLE else w


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
