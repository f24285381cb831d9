"""Members that are alike sit down one after the other, inside one domain."""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner
from scheduling.engine.placement.node_index import look_at, pick_node
from scheduling.engine.placement.node_room import pick_device, sit
from scheduling.engine.placement.unlike import shun
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import SPREADS


@inner
def fill_nodes(
    world: Session,
    row: int,
    w: int,
    c: int,
    done: int,
    end: int,
    when: int,
    level: int,
    domain: int,
) -> None:
    """Seat members ``done`` to ``end`` on nodes of the domain."""
    room, work, seats, index = world.room, world.work, world.seats, world.index
    apart, first = world.ranks.apart[work.priority[w]], done
    while done < end:
        left = 1 if world.rules.spread_weight == SPREADS or apart else end - done
        n = pick_node(world, row, c, left, level, domain)
        for _ in range(min(left, index.slots[row, index.domains.position[n]])):
            device = pick_device(room, work, w, n, when)
            sit(room, work, w, n, device, when)
            seats.node[done], seats.device[done] = n, device
            done += 1
        look_at(world, row, w, n, when)
        if apart and end - first > 1:
            shun(seats, index, row, n, done)
    for i in range(first, end if apart else first):
        look_at(world, row, w, seats.node[i], when)
    index.seen[row] = room.changes.clock
