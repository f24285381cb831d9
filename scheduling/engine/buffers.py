"""Tables that a cycle fills, sized for a frame and used again by every cycle."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scheduling.engine import arrays as a
from scheduling.engine.index import BLOCK_SIZE, KEY_PARTS
from scheduling.engine.line import Line, empty_line
from scheduling.engine.memo import Memo, empty_memo
from scheduling.engine.merit import Merit, empty_merit
from scheduling.engine.mix import Mix, empty_mix
from scheduling.engine.prey import Prey, empty_prey

KNOWN_SHAPES = 1 << 10
"""A power of two."""
INDEX_CELLS = 1 << 21
"""About how many cells (rows x nodes) an index has; at least ``FEWEST_ROWS`` rows."""
FEWEST_ROWS, MOST_ROWS = 64, 2048


class Buffers(NamedTuple):
    division: a.Division
    room: a.Room
    book: a.Book
    seats: a.Seats
    out: a.Out
    prey: Prey
    guard: a.Division
    line: Line
    memo: Memo
    mix: Mix
    merit: Merit
    index: a.Index  # type: ignore[assignment] # nobody asks for tuple.index


def buffers_for(
    tree: a.Tree, nodes: a.Nodes, work: a.Work, holds: a.Holds, pairs: int, ranks: int, pool: int
) -> Buffers:
    """Fresh tables for these numbers of queues, nodes, slots, holds and priority classes; ``pairs`` of
    queue and user; at least ``pool`` seats in all decisions together.
    """
    slots, size = work.phase.size, nodes.gpu_class.size
    classes, queues = nodes.rate.size, tree.parent.size
    most = int(work.most.max(initial=1)) * 2
    seats = max(most, int(nodes.size[a.GPUS].sum()) // 1000 + 1)
    return Buffers(
        empty_division(classes, queues),
        _room(nodes, size, classes, holds.node.size),
        _book(classes, queues, pairs),
        a.Seats(_ints(seats), _ints(seats), _ints(size), np.full((KNOWN_SHAPES, 8), -1, np.int64)),
        _out(slots, max(pool, 4 * seats + slots)),
        empty_prey(slots, size, holds.node.size, classes, queues, ranks, seats),
        empty_division(classes, queues),
        empty_line(slots, queues),
        empty_memo(slots),
        empty_mix(slots),
        empty_merit(slots, queues, classes, size),
        _index(nodes),
    )


def empty_division(classes: int, queues: int) -> a.Division:
    shape = (classes, queues)
    fair, guaranteed, kept, kept_below, capacity = (np.zeros(shape) for _ in range(5))
    demand, short = np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
    steps = (np.zeros(shape) for _ in range(7))
    return a.Division(fair, guaranteed, kept, kept_below, demand, capacity, short, *steps)


def _ints(*shape: int) -> a.Ints:
    return np.zeros(shape, np.int64)


def _room(nodes: a.Nodes, size: int, classes: int, holds: int) -> a.Room:
    devices = int(nodes.size[a.GPUS].max(initial=0)) // 1000
    shared = (size, devices)
    return a.Room(
        now=_ints(3, size),
        later=_ints(3, size),
        pledged=_ints(3, size),
        shared_now=_ints(*shared),
        shared_later=_ints(*shared),
        open=_ints(classes),
        coming=_ints(classes),
        came=_ints(classes),
        tick=_ints(3),
        touched=_ints(size),
        newest=_ints(classes) - 1,
        older=_ints(size),
        newer=_ints(size),
        kind=nodes.gpu_class,
        allowed=nodes.allowed,
        allowed_kind=nodes.allowed_kind,
        kept=_ints(6, size),
        kept_open=_ints(size),
        kept_shared=_ints(2, *shared),
        stale=np.ones(size, np.bool_),
        first=_ints(size) - 1,
        before=_ints(holds),
        after=_ints(holds),
        owner=_ints(holds),
        beside=_rings(nodes.domain[a.NODE]),
    )


def _rings(machine: a.Ints) -> a.Ints:
    """For each row the next of the same machine; itself where it is the only one."""
    order = np.argsort(machine, kind="stable")
    sorted_ = machine[order]
    is_last = np.append(sorted_[1:] != sorted_[:-1], True)[: order.size]
    first = order[np.searchsorted(sorted_, sorted_)]
    ring = _ints(machine.size)
    ring[order] = np.where(is_last, first, np.roll(order, -1))
    return ring


def _index(nodes: a.Nodes) -> a.Index:
    size, classes = nodes.gpu_class.size, nodes.rate.size
    rows = min(MOST_ROWS, max(FEWEST_ROWS, INDEX_CELLS // max(size, 1)))
    blocks = size // BLOCK_SIZE + 1
    domains = nodes.domain[: a.NODE].max(axis=1, initial=-1) + 1
    order = np.argsort(nodes.domain[: a.NODE], axis=1, kind="stable")
    begin = np.zeros((a.NODE, int(domains.max(initial=0)) + 1), np.int64)
    for level in range(a.NODE):
        labels = nodes.domain[level, order[level]]
        begin[level] = np.searchsorted(labels, np.arange(begin.shape[1]))
    position = _ints(size)
    position[nodes.of_class] = np.arange(size)
    return a.Index(
        key=_ints(rows, KEY_PARTS), seen=np.full(rows, -1, np.int64), lesson=_ints(rows),
        used=_ints(rows), clock=_ints(1), total=_ints(rows), slots=np.zeros((rows, size), np.int32),
        score=np.zeros((rows, size)), widest=_ints(rows, blocks), best=_ints(rows, blocks),
        inside=_ints(rows, int(domains.sum())), base=np.append(0, np.cumsum(domains)),
        member=order, begin=begin, position=position, order=np.arange(size),
        alike=np.full(1 << 8, -1, np.int64), free=_ints(size),
        free_sum=_ints(classes), free_nodes=_ints(classes),
        free_seen=np.full(classes, -1, np.int64),
    )  # fmt: skip


def _book(classes: int, queues: int, pairs: int) -> a.Book:
    table = (classes, queues)
    return a.Book(
        held=_ints(*table), fixed=_ints(*table), leaving=_ints(*table),
        kept=_ints(*table), lends=_ints(classes),
        by_user=_ints(pairs), budget=_ints(queues),
        ratio=np.zeros(queues), fair_size=_ints(queues), waits_since=np.zeros(queues),
        turn=_ints(*table), holder=_ints(classes),
        turn_until=np.zeros(table), holder_seats=_ints(classes), holder_until=np.zeros(classes),
        promised=_ints(classes), spent=_ints(1),
        forbidden=_ints(5), supply=_ints(classes), asked=_ints(*table), asking=_ints(*table),
        shifts=_ints(2), charged=_ints(*table),
        graced=np.zeros(classes), limited=_ints(1), running=_ints(queues),
        user_running=_ints(pairs), user_gpus=_ints(pairs), queued=_ints(queues),
        ceiling=_ints(*table), rationed=_ints(classes), user_queued=_ints(pairs), user_asks=_ints(pairs),
        extra=_ints(*table), begun=_ints(*table), rounds=_ints(7), in_vain=_ints(2, *table),
        in_vain_at=_ints(2, *table) - 1, begun_until=np.zeros(table),
    )  # fmt: skip


def _out(slots: int, pool: int) -> a.Out:
    return a.Out(
        action=_ints(slots) - 1, reason=_ints(slots) - 1, gpu_class=_ints(slots), members=_ints(slots),
        rival=_ints(slots) - 1, blame=_ints(slots) - 1, until=np.zeros(slots), lost=np.zeros(slots),
        figures=np.zeros((slots, 6)), noted=np.zeros(slots, np.bool_), served=np.zeros(slots, np.bool_),
        stepped_back=np.zeros(slots, np.bool_), like=_ints(slots) - 1, order=_ints(slots),
        begun=_ints(slots), first=_ints(slots),
        pool_node=_ints(pool), pool_device=_ints(pool), used=_ints(2),
    )  # fmt: skip


def empty_work(slots: int, wishes: int) -> a.Work:
    """A table of so many workloads that accept up to ``wishes`` classes each."""
    ints: Any = lambda fill=0: np.full(slots, fill, np.int64)  # noqa: E731
    floats: Any = lambda fill=0.0: np.full(slots, fill)  # noqa: E731
    flags: Any = lambda: np.zeros(slots, np.bool_)  # noqa: E731
    return a.Work(
        phase=ints(), queue=ints(-1), user=ints(), priority=ints(-1),
        need=np.zeros((3, slots), np.int64), least=ints(1), most=ints(1), elastic=flags(),
        wish=np.full((wishes, slots), -1, np.int64), where=ints(-1), required=ints(-1), preferred=ints(-1),
        submitted=floats(), predicted=floats(np.inf), tie=ints(), held=flags(), claims=flags(),
        started=floats(-np.inf), checkpointed=floats(-np.inf), restart=floats(), stale=floats(np.inf),
        leaving=flags(), gpu_class=ints(-1), members=ints(), predicted_p90=floats(np.inf),
        evictions=ints(), evicted=floats(-np.inf), evicted_for=ints(-1), part_of=ints(-1),
        rank=floats(np.inf), virtual=floats(np.inf), saved=floats(),
    )  # fmt: skip
