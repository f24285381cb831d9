"""The node index: where members of one shape fit, known without looking at every node each time.

Room keeps, class by class, the nodes in order of their last change. A row of the index is one shape
(GPUs, CPUs and memory of a member, the nodes it may use, and which room counts) on one class. When it is
asked for, only the nodes changed since it was asked last are looked at again, also from plan to plan; after
the tables were cleared, all of them. So a question costs what has changed, and "nothing fits" costs nothing
where nothing has changed. Scores rest on the demand mix as well: the first question of a plan finds them
anew, for the nodes that have room. The least recently used row of its set makes room for a shape not yet
known.
"""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner
from scheduling.engine.placement.demand_mix import learn, loss
from scheduling.engine.placement.node_room import ONE, free_of, may_use, slots_on
from scheduling.engine.state.input import Nodes, Work
from scheduling.engine.state.nodes import BLOCK_SIZE, KEY_PARTS, NodeIndex, NodeRoom
from scheduling.engine.state.order import ALL
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import ANYWHERE, CPUS, GPUS, MEMORY, NOW, SPREADS

WAYS = 8
"""Rows in which a shape may stand."""
HASHED = (1 << 40) - 1
"""Bits of a key's hash: products of it stay inside an integer."""
FULLER = 1e-9
"""Far below any loss that counts."""
MANY = 1 << 20
"""Stands for "as many members as you like" on a node, for work without GPUs."""


@inner
def row_of(world: Session, w: int, c: int, when: int) -> int:
    """The row for members like those of ``w`` on class ``c``, brought up to date."""
    index, need = world.index, world.work.need
    # Work without GPUs fits as often as it has members.
    most = world.work.most[w] if need[GPUS, w] == 0 else 0
    key = (
        c, need[GPUS, w], need[CPUS, w], need[MEMORY, w], when, most, world.work.where[w],
        world.work.beside[w],
    )  # fmt: skip
    at = 0
    for part in key:
        at = (at * 1000003 + part) & HASHED
    row = at = at % (index.seen.size // WAYS) * WAYS
    index.clock[0] += 1
    for i in range(at, at + WAYS):
        if _is_of(index, i, key):
            row = i
            break
        if index.used[i] < index.used[row]:
            row = i
    if not _is_of(index, row, key):
        index.seen[row] = -1
        for i in range(KEY_PARTS):
            index.key[row, i] = key[i]
    index.used[row] = index.clock[0]
    _refresh(world, row, w, c, when)
    return row


@inner
def _is_of(index: NodeIndex, row: int, key: tuple[int, int, int, int, int, int, int, int]) -> bool:
    if index.seen[row] < 0:
        return False
    for i in range(KEY_PARTS):
        if index.key[row, i] != key[i]:
            return False
    return True


@inner
def _refresh(world: Session, row: int, w: int, c: int, when: int) -> None:
    nodes, index, room = world.nodes, world.index, world.room
    if index.seen[row] < room.changes.cleared_at or _many_changed(nodes, room, index, row, c):
        _fill(world, row, w, c, when)
    else:
        n = room.changes.newest[c]
        while n >= 0 and room.changes.changed_at[n] > index.seen[row]:
            look_at(world, row, w, n, when)
            n = room.changes.older[n]
    index.seen[row] = room.changes.clock
    if index.total[row] > 0 and world.rules.spread_weight < SPREADS:
        _keep_learnt(world)
        if index.lesson[row] != world.mix.lessons:
            _rescore(world, row, w, c, when)


@inner
def _many_changed(nodes: Nodes, room: NodeRoom, index: NodeIndex, row: int, c: int) -> bool:
    """So many nodes that looking at all of them together is less work."""
    left, n = (nodes.class_start[c + 1] - nodes.class_start[c]) // 16 + 4, room.changes.newest[c]
    while n >= 0 and left > 0 and room.changes.changed_at[n] > index.seen[row]:
        left, n = left - 1, room.changes.older[n]
    return bool(left == 0)


@inner
def _fill(world: Session, row: int, w: int, c: int, when: int) -> None:
    """Look at all nodes of the class. Positions of other classes in the same blocks have no slots."""
    index, nodes = world.index, world.nodes
    first, last = nodes.class_start[c], nodes.class_start[c + 1]
    lowest = first // BLOCK_SIZE
    highest = (last + BLOCK_SIZE - 1) // BLOCK_SIZE
    index.total[row] = 0
    _forget_twins(index)
    for d in range(index.inside.shape[1]):
        index.inside[row, d] = 0
    for p in range(lowest * BLOCK_SIZE, min(highest * BLOCK_SIZE, index.domains.position.size)):
        index.slots[row, p] = 0
        if first <= p < last:
            _measure(world, row, w, nodes.of_class[p], p, when, True)
    for b in range(lowest, highest):
        sum_up(index, row, b)
    index.lesson[row] = world.mix.lessons


@inner
def _rescore(world: Session, row: int, w: int, c: int, when: int) -> None:
    """The mix has changed: score anew what has room."""
    index, nodes = world.index, world.nodes
    first, last = nodes.class_start[c], nodes.class_start[c + 1]
    index.lesson[row] = world.mix.lessons
    _forget_twins(index)
    for b in range(first // BLOCK_SIZE, (last + BLOCK_SIZE - 1) // BLOCK_SIZE):
        if index.best[row, b] < 0:
            continue
        for p in range(max(first, b * BLOCK_SIZE), min(last, (b + 1) * BLOCK_SIZE)):
            if index.slots[row, p] > 0:
                _rate(world, row, w, nodes.of_class[p], p, when, True)
        sum_up(index, row, b)


@inner
def _forget_twins(index: NodeIndex) -> None:
    for i in range(index.alike.size):
        index.alike[i] = -1


@inner
def look_at(world: Session, row: int, w: int, n: int, when: int) -> None:
    """Node ``n`` has changed."""
    p = world.index.domains.position[n]
    _measure(world, row, w, n, p, when, False)
    sum_up(world.index, row, p // BLOCK_SIZE)


@inner
def shut(nodes: Nodes, index: NodeIndex, row: int, n: int) -> None:
    """For this row nobody fits on node ``n``, until that is touched."""
    p = index.domains.position[n]
    many = index.slots[row, p]
    index.slots[row, p] = 0
    index.total[row] -= many
    for level in range(node_level(index)):
        index.inside[row, index.domains.base[level] + nodes.domain[level, n]] -= many
    sum_up(index, row, p // BLOCK_SIZE)


@inner
def _measure(world: Session, row: int, w: int, n: int, p: int, when: int, twins: bool) -> None:
    """What the row knows of node ``n`` at position ``p``."""
    index, room = world.index, world.room
    slots = min(MANY, slots_on(room, world.work, w, n, when))
    more = slots - index.slots[row, p]
    if slots > 0:
        _rate(world, row, w, n, p, when, twins)
    if more == 0:
        return
    index.slots[row, p] = slots
    index.total[row] += more
    for level in range(node_level(index)):
        index.inside[row, index.domains.base[level] + world.nodes.domain[level, n]] += more


@inner
def _rate(world: Session, row: int, w: int, n: int, p: int, when: int, twins: bool) -> None:
    """With ``twins`` a node just like it may be known already."""
    index = world.index
    twin = _twin(world.room, index, n, when) if twins else -1
    if twin >= 0:
        index.score[row, p] = index.score[row, index.domains.position[twin]]
    else:
        index.score[row, p] = _score(world, w, n, when)


@inner
def _twin(room: NodeRoom, index: NodeIndex, n: int, when: int) -> int:
    """A node looked at before in this class that has the same free, is open to the same work and shares no
    GPU either, or -1.
    """
    alike = index.alike
    for d in range(room.shared_now.shape[1]):
        if room.shared_now[n, d] > 0 or room.shared_later[n, d] > 0:
            return -1
    free = (free_of(room, 0, n, when), free_of(room, 1, n, when), free_of(room, 2, n, when))
    cell = (free[0] + free[1] // 1000 * 31 + free[2] // 1024 * 1009) % alike.size
    twin = alike[cell]
    alike[cell] = n
    if twin >= 0 and room.allowed_kind[twin] != room.allowed_kind[n]:
        return -1
    for r in range(room.free_now.shape[0]):
        if twin >= 0 and free_of(room, r, twin, when) != free_of(room, r, n, when):
            return -1
    return twin


@inner
def _score(world: Session, w: int, n: int, when: int) -> float:
    """Packing takes least from the demand mix and among equals fills the fullest node; spreading takes
    the emptiest. Between both what is taken, in members of the mix, is weighed against the free GPUs.
    """
    room, mix = world.room, world.mix
    free = free_of(room, GPUS, n, when) / ONE
    even = world.rules.spread_weight
    if even == SPREADS:
        return -free
    _keep_learnt(world)
    taken = loss(mix, room, world.work, w, n, room.gpu_class[n], when)
    return (1.0 - even) * taken + ((1.0 - even) * FULLER - even) * free


@inner
def _keep_learnt(world: Session) -> None:
    """Learn the mix once in each plan that is not about a few alone."""
    mix, ordering, room = world.mix, world.ordering, world.room
    whole = ordering.pending.narrowed[0] == ALL or mix.shapes == 0
    if whole and mix.learnt_at < room.changes.plan_began_at:
        learn(mix, ordering, world.shapes, world.work, world.nodes, room)


@inner
def node_level(index: NodeIndex) -> int:
    """The number of the level at which each node is a domain of its own: that of the levels above it."""
    return int(index.domains.base.size) - 1


@inner
def sum_up(index: NodeIndex, row: int, b: int) -> None:
    widest, best = 0, -1
    for p in range(b * BLOCK_SIZE, min((b + 1) * BLOCK_SIZE, index.domains.position.size)):
        slots = index.slots[row, p]
        if slots == 0:
            continue
        widest = max(widest, slots)
        if best < 0 or _goes_first(index, row, p, best):
            best = p
    index.widest[row, b], index.best[row, b] = widest, best


@inner
def pick_node(world: Session, row: int, c: int, left: int, level: int, domain: int) -> int:
    """The node of lowest score that takes all ``left`` members, else of those that take most of them.

    Lowest name on ties; -1 if nothing fits. A level of the topology looks in ``domain`` alone; the node's
    own is that node.
    """
    if level == node_level(world.index):
        return domain
    if level != ANYWHERE:
        return _pick_inside(world.nodes, world.room, world.index, row, c, left, level, domain)
    index, nodes = world.index, world.nodes
    lowest = nodes.class_start[c] // BLOCK_SIZE
    highest = (nodes.class_start[c + 1] + BLOCK_SIZE - 1) // BLOCK_SIZE
    widest = 0
    for b in range(lowest, highest):
        widest = max(widest, index.widest[row, b])
    least, best = min(left, widest), -1
    if least == 0:
        return -1
    for b in range(lowest, highest):
        if index.widest[row, b] < least:
            continue
        p = index.best[row, b] if least == 1 else _best_of(index, row, b, least)
        if best < 0 or _goes_first(index, row, p, best):
            best = p
    return nodes.of_class[best]


@inner
def _goes_first(index: NodeIndex, row: int, p: int, other: int) -> bool:
    if index.score[row, p] == index.score[row, other]:
        return index.domains.name_rank[p] < index.domains.name_rank[other]
    return index.score[row, p] < index.score[row, other]


@inner
def _best_of(index: NodeIndex, row: int, b: int, least: int) -> int:
    best = -1
    for p in range(b * BLOCK_SIZE, min((b + 1) * BLOCK_SIZE, index.domains.position.size)):
        if index.slots[row, p] < least:
            continue
        if best < 0 or _goes_first(index, row, p, best):
            best = p
    return best


@inner
def _pick_inside(
    nodes: Nodes,
    room: NodeRoom,
    index: NodeIndex,
    row: int,
    c: int,
    left: int,
    level: int,
    domain: int,
) -> int:
    best, most = -1, 0
    for i in range(index.domains.begin[level, domain], index.domains.begin[level, domain + 1]):
        n = index.domains.member[level, i]
        if room.gpu_class[n] != c:
            continue
        p = index.domains.position[n]
        slots = min(index.slots[row, p], left)
        if slots > most or (slots == most > 0 and _goes_first(index, row, p, best)):
            best, most = p, slots
    return nodes.of_class[best] if best >= 0 else -1


@inner
def pick_domain(
    nodes: Nodes,
    index: NodeIndex,
    row: int,
    level: int,
    least: int,
    most: int,
    above: int,
    whole: int,
) -> tuple[int, int]:
    """The tightest domain of ``level`` (above the node) that takes ``most`` members, else the one that
    takes most, and how many; (-1, 0) if none takes ``least``.

    With ``above`` not ANYWHERE, only domains inside ``whole`` of that level.
    """
    first, best, reach = index.domains.base[level], -1, 0
    for d in range(index.domains.base[level + 1] - first):
        slots = index.inside[row, first + d]
        if slots < least or (best >= 0 and not is_closer(slots, reach, most)):
            continue
        if above != ANYWHERE:
            n = index.domains.member[level, index.domains.begin[level, d]]
            if nodes.domain[above, n] != whole:
                continue
        best, reach = d, slots
    return best, reach


@inner
def is_closer(slots: int, best: int, most: int) -> bool:
    """Whether a domain with so many ``slots`` is closer to ``most`` than the ``best``."""
    if slots >= most:
        return best < most or slots < best
    return slots > best


@inner
def tally(nodes: Nodes, room: NodeRoom, index: NodeIndex, c: int) -> None:
    """Bring ``index.free_sum[c]`` and ``index.free_nodes[c]`` up to date."""
    if index.free_by_class.seen[c] < room.changes.cleared_at:
        index.free_by_class.sum[c] = index.free_by_class.nodes[c] = 0
        for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
            index.free_by_class.node[nodes.of_class[i]] = 0
            _count(index, room, nodes.of_class[i], c)
    else:
        n = room.changes.newest[c]
        while n >= 0 and room.changes.changed_at[n] > index.free_by_class.seen[c]:
            _count(index, room, n, c)
            n = room.changes.older[n]
    index.free_by_class.seen[c] = room.changes.clock


@inner
def free_to(
    nodes: Nodes, work: Work, room: NodeRoom, index: NodeIndex, w: int, c: int
) -> tuple[int, int]:
    """Unclaimed free GPUs of class ``c`` on nodes that ``w`` may use, and how many of those have any."""
    free, some = 0, 0
    tally(nodes, room, index, c)
    if work.where[w] < 0:
        return index.free_by_class.sum[c], index.free_by_class.nodes[c]
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        n = nodes.of_class[i]
        if may_use(room, work, w, n):
            free += index.free_by_class.node[n]
            some += int(index.free_by_class.node[n] > 0)
    return free, some


@inner
def _count(index: NodeIndex, room: NodeRoom, n: int, c: int) -> None:
    free = max(0, free_of(room, GPUS, n, NOW))
    for d in range(room.shared_now.shape[1]):
        if room.shared_now[n, d] > 0:
            free += max(0, ONE - max(room.shared_now[n, d], room.shared_later[n, d]))
    index.free_by_class.nodes[c] += int(free > 0) - int(index.free_by_class.node[n] > 0)
    index.free_by_class.sum[c] += free - index.free_by_class.node[n]
    index.free_by_class.node[n] = free
