"""A pending workload by its values, written into a row of a table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from scheduling.engine.state.input import Work
from scheduling.engine.state.units import ANYWHERE, CPUS, PENDING

if TYPE_CHECKING:
    from scheduling.engine.snapshot.frame import Frame


class Shape(NamedTuple):
    """Members of a role at least, what one ``needs`` by resource, and how many more it may have."""

    members: int
    needs: tuple[int, ...]
    extra: int = 0


@lru_cache(maxsize=4096)
def number_of(beside: tuple[int, ...]) -> int:
    """One number for those amounts, 0 for none of anything: members of one number need the same."""
    return int.from_bytes(sha256(repr(beside).encode()).digest()[:6]) if any(beside) else 0


def describe(
    frame: Frame,
    w: Work,
    slot: int,
    *,
    queue: int,
    submitted: float,
    gpus: int = 1000,
    priority: int = 0,
    user: str = "",
    members: tuple[int, int] = (1, 1),
    classes: Sequence[int] = (0,),
    cpus: int = 0,
    memory_mib: int = 0,
    beside: Sequence[int] = (),
    elastic: bool = False,
    where: int = ANYWHERE,
    required: int = ANYWHERE,
    preferred: int = ANYWHERE,
    segment: int = 0,
    predicted: float = np.inf,
    ends_within: float = np.inf,
    on_hold: bool = False,
    claims: bool = False,
    restart: float = 0.0,
    tie: int | None = None,
    rank: float = np.inf,
    virtual: float = np.inf,
    saved: float = 0.0,
    roles: Sequence[Shape] = (),
) -> None:
    """Write a pending workload into ``slot`` of a table, that of ``frame`` or one of work to come.

    ``gpus`` (milli-GPU), ``cpus`` (milli), ``memory_mib`` and ``beside`` (of what nodes state, by name)
    are of one member, ``members`` is (least, most), ``classes`` are class numbers in order of preference,
    ``where`` is the row of ``nodes.allowed`` with the nodes it may use, ``required`` and ``preferred`` are
    numbers of ``frame.level_names``, ``segment`` is as in ``state.roles``, times are seconds,
    ``ends_within`` is the run time at the policy's quantile. Of a gang with ``roles``, largest first,
    ``gpus`` and ``members`` are those of its parts (``state.roles``). ``queue`` -1 is misrouted. ``tie``
    decides last, lowest first; by default the order of arrival.
    """
    w.phase[slot] = PENDING
    w.queue[slot], w.priority[slot] = queue, priority
    w.user[slot] = frame.pair(queue, user)
    w.need[:, slot] = 0
    w.need[:3, slot] = gpus, cpus, memory_mib
    w.need[3 : 3 + len(beside), slot] = beside
    w.beside[slot] = number_of(tuple(beside))
    w.least[slot], w.most[slot] = members
    w.elastic[slot], w.on_hold[slot], w.claims[slot] = elastic, on_hold, claims
    w.room_due[slot], w.taken[slot] = np.inf, 0
    w.wish[:, slot] = -1
    w.wish[: len(classes), slot] = classes
    w.where[slot], w.required[slot], w.preferred[slot] = where, required, preferred
    w.segment[slot] = segment
    w.submitted[slot], w.predicted[slot], w.restart[slot] = submitted, predicted, restart
    w.tie[slot] = frame.take_tie(tie)
    w.ends_within[slot] = ends_within
    w.evictions[slot], w.evicted[slot], w.evicted_for[slot] = 0, -np.inf, -1
    w.part_of[slot] = -1
    w.rank[slot], w.virtual[slot], w.saved[slot] = rank, virtual, saved
    w.started[slot] = w.checkpointed[slot] = -np.inf
    w.stale[slot] = np.inf
    w.leaving[slot] = False
    w.gpu_class[slot], w.members[slot] = -1, 0
    set_roles(w, slot, roles, frame.shapes_of(roles, where, classes))


def set_roles(w: Work, slot: int, roles: Sequence[Shape], shapes: Sequence[int]) -> None:
    """Give the gang in ``slot`` its roles, whose ``shapes`` are slots of the frame."""
    w.roles[:, slot], w.elastic_role[slot] = -1, 0
    if not roles:
        return
    w.need[CPUS:, slot] = 0
    figures = ((one.members, one.extra, *one.needs) for one in roles)
    w.beside[slot] = number_of(tuple(n for one in figures for n in one))
    w.roles[: len(roles), slot] = shapes
    w.role_members[: len(roles), slot] = [one.members for one in roles]
    w.elastic_role[slot] = next((k for k, one in enumerate(roles) if one.extra), 0)
