"""A start, and what it needs."""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner
from scheduling.engine.placement.place import is_free
from scheduling.engine.placement.unlike import all_fit
from scheduling.engine.quota.standing import ON_LOAN, STARTS, standing
from scheduling.engine.state.input import Work
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import BACKFILL, GPUS
from scheduling.engine.statement.operations import admit, promise


@inner
def need_of(work: Work, w: int) -> int:
    return work.least[w] * work.need[GPUS, w]


@inner
def passes_nominal(world: Session, w: int, c: int) -> bool:
    """Whether ``w`` cannot be preempted and would pass its nominal: nobody who leaves changes that."""
    if world.ranks.preemptible[world.work.priority[w]]:
        return False
    return bool(standing(world, w, c, need_of(world.work, w), STARTS).fixed >= 0)


@inner
def only_reserved(world: Session, w: int, c: int) -> bool:
    """Free GPUs would do, were they not kept for another: no reason to displace the own queue's work."""
    if standing(world, w, c, need_of(world.work, w), STARTS).says > ON_LOAN:
        return False
    return bool(all_fit(world, w, c, world.work.least[w], BACKFILL))


@inner
def start_or_promise(world: Session, w: int, c: int, members: int) -> None:
    """The claimed seats are taken if they are free at this moment and no limit is in the way."""
    work, gpus = world.work, members * world.work.need[GPUS, w]
    late = standing(world, w, c, gpus, STARTS).late
    if not late and is_free(world.room, work, world.seats, w, members):
        admit(world, w, c, members)
    else:
        promise(world, w, c, members)
