"""Writing decisions down."""

from __future__ import annotations

from typing import Any

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner, kernel
from scheduling.engine.reasons.figures import WOULD_LEAVE
from scheduling.engine.state.decisions import Out
from scheduling.engine.state.nodes import Seats
from scheduling.engine.state.session import World
from scheduling.engine.state.units import MIXED, STRETCHED, TRIED


@inner
def decide(out: Out, w: int, action: int, reason: int, c: int, members: int) -> None:
    """One line of the plan. An earlier one is withdrawn: of a wait for another class, of a gang that gives
    up still more.
    """
    if out.noted[w]:
        _withdraw(out, w)
    out.action[w], out.reason[w] = action, reason
    out.gpu_class[w], out.members[w] = c, members
    out.noted[w] = True
    out.order[out.used[0]] = w
    out.used[0] += 1


@inner
def undecide(out: Out, w: int) -> None:
    """Nothing is decided on ``w``. It is taken out of ``order`` by who calls this, for many at a time."""
    out.action[w] = out.reason[w] = codes.UNDECIDED
    out.rival[w] = out.blame[w] = -1
    out.members[w], out.until[w], out.noted[w] = 0, 0.0, False
    out.searches[w] = 0
    for i in range(out.figures.shape[1]):
        out.figures[w, i] = 0.0


@inner
def take_back(out: Out, w: int) -> None:
    """Nothing is decided on ``w``, on which something was."""
    _withdraw(out, w)
    undecide(out, w)


@inner
def _withdraw(out: Out, w: int) -> None:
    out.rival[w], out.blame[w], out.until[w] = -1, -1, 0.0
    k = out.used[0] - 1
    while out.order[k] != w:
        k -= 1
    out.used[0] -= 1
    for i in range(k, out.used[0]):
        out.order[i] = out.order[i + 1]


@inner
def note_bound(out: Out, w: int, searches: int) -> None:
    """A search of a kind of which a cycle makes no more than ``searches`` was not made for ``w``."""
    out.searches[w] = searches


@inner
def seat_out(out: Out, seats: Seats, w: int, members: int) -> None:
    """Where the members of ``w`` go."""
    at = take_seats(out, w, members)
    for i in range(members):
        out.pool_node[at + i], out.pool_device[at + i] = seats.node[i], seats.device[i]


@inner
def take_seats(out: Out, w: int, members: int) -> int:
    """A place in the pool for ``members`` of ``w``. Past its end the plan is void, and made again with a
    larger pool: until then the first places serve all, so that nobody reads or writes past it.
    """
    fits = out.used[1] + members <= out.pool_node.size
    out.first[w] = out.used[1] if fits else 0
    out.used[1] += members
    return out.first[w]


@inner
def recall(out: Out, seats: Seats, w: int) -> int:
    """The seats of ``w`` once more; returns how many."""
    for i in range(out.members[w]):
        seats.node[i] = out.pool_node[out.first[w] + i]
        seats.device[i] = out.pool_device[out.first[w] + i]
    return int(out.members[w])


@inner
def clear_out(world: World) -> None:
    """Nothing is decided. Only lines of the plan before are not empty."""
    out = world.out
    order, like, served, stepped_back = out.order, out.like, out.served, out.stepped_back
    action, reason, until, noted = out.action, out.reason, out.until, out.noted
    lost, chosen = out.lost, world.prey.chosen
    for k in range(out.used[0]):
        w = order[k]
        if like[w] >= 0:
            action[w] = reason[w] = like[w] = codes.UNDECIDED
            until[w], noted[w] = 0.0, False
        else:
            undecide(out, w)
        served[w] = stepped_back[w] = chosen[w] = False
        lost[w] = 0.0
    out.used[0] = out.used[1] = 0


@inner
def note_the_settled(world: World) -> None:
    """Lines for those settled beforehand come last."""
    out, line = world.out, world.line
    item, action, noted = line.item, out.action, out.noted
    for k in range(line.count[0]):
        w = item[k]
        if action[w] == codes.WAIT and not noted[w]:
            out.order[out.used[0]] = w
            out.used[0] += 1


@inner
def tell_the_like(world: World) -> None:
    """Whoever was refused like another in the last pass gets a line that points to the other's. A delay
    that has still to pass is counted from its own start.
    """
    line, out, submitted = world.line, world.out, world.work.submitted
    item, cell, told, order = line.item, line.cell, world.memo.like, out.order
    action, reason, until, noted = out.action, out.reason, out.until, out.noted
    size, rounds = out.used[0], world.book.rounds
    bounded = rounds[STRETCHED] + rounds[MIXED] + rounds[TRIED] > 0
    for k in range(line.count[0]):
        w = item[k]
        if action[w] != codes.UNDECIDED:
            continue
        like = told[cell[k]]
        action[w], reason[w], until[w] = action[like], reason[like], until[like]
        if (
            reason[w] == codes.VICTIMS_PROTECTED
            and out.figures[like, WOULD_LEAVE.waits_itself] != 0.0
        ):
            until[w] += submitted[w] - submitted[like]
        if bounded:
            out.searches[w] = 0
        out.like[w], noted[w], order[size] = like, True, w
        size += 1
    out.used[0] = size


@kernel
def spell_out(world: Any) -> None:
    """Copy what the lines of the like leave out: the same class with the same numbers."""
    out = world.out
    for k in range(out.used[0]):
        w = out.order[k]
        like = out.like[w]
        if like >= 0:
            out.like[w], out.gpu_class[w] = -1, out.gpu_class[like]
            out.rival[w], out.blame[w] = out.rival[like], out.blame[like]
            copy_figures(out, w, like)


@inner
def copy_figures(out: Out, w: int, of: int) -> None:
    """``w`` is told the figures of ``of``."""
    out.searches[w] = out.searches[of]
    for i in range(out.figures.shape[1]):
        out.figures[w, i] = out.figures[of, i]
