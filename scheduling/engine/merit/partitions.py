"""Own partitions played along: what would start when on the nominal quota of its queue alone.

Each leaf queue has, by GPU class, virtual nodes that make up its nominal. Its work waits there in order of
arrival, what fits may pass, and runs until its real run time is known: then it ends at virtual start + run
time, at once if that is past. A queue without nominal has no nodes, so nothing of it ever starts there. Work
that accepts several classes takes the first in its order that has room; an elastic gang runs with its least
members, for as long as they would take. Where it is known that a run takes longer or shorter on the class
that it has there than on the one that it ran on, it does.

An event costs one operation on a heap and a walk over what waits in the one queue. Times are whole seconds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduling.engine.compile.heap import pop, push
from scheduling.engine.compile.kernel import inner, kernel
from scheduling.engine.compile.structs import Flags, Floats, Ints, as_struct, declare

Shorts = NDArray[np.int32]

NOBODY = -1
UNKNOWN = -1
BITS = 24
"""Of a heap's entry, that hold the number of the run."""
WAITS, RUNS, OVER = 0, 1, 2
HEAP, STARTED = 0, 1
"""In ``count``: entries of the heap; virtual starts since somebody looked last, in ``started``."""


@declare
class Partitions(NamedTuple):
    """``first[c, q]:first[c, q + 1]`` are the nodes of queue ``q`` in class ``c``, equal but for the last.

    The other tables are by run, a number that its owner gives.
    """

    first: Ints  # [class, queue]
    size: Ints  # [node] milli-GPU
    free: Ints  # [node]
    state: Ints  # WAITS, RUNS, OVER
    queue: Ints
    need: Ints  # milli-GPU of one member
    members: Ints
    wish: Ints  # [preference, run] class, -1 past the end
    pace: Floats  # [preference, run] how many times as long it takes there as where it ran for real
    on: Ints  # [run] the preference that it began on
    start: Ints  # virtual start, UNKNOWN before
    end: Ints  # virtual end, UNKNOWN while it is
    run_s: Ints  # real run time, UNKNOWN until it is over
    seats: Ints  # [run] nodes it sits on
    node: Shorts  # [run, seat]
    usage: Shorts  # [run, seat] milli-GPU
    next: Ints  # [run] what waits behind it
    head: Ints  # [queue] what waits first
    tail: Ints
    stirred: Flags  # [queue] somebody came or left
    heap: Ints
    started: Ints
    count: Ints  # type: ignore[assignment] # nobody asks a struct for tuple.count


def empty_partitions(
    nominal: Ints, node_size: Ints, runs: int, wishes: int, seats: int
) -> Partitions:
    """``nominal`` [class, queue] milli-GPU on nodes of ``node_size`` [class]; tables for ``runs`` runs that
    accept up to ``wishes`` classes and sit on up to ``seats`` nodes.
    """
    classes, queues = nominal.shape
    first = np.zeros((classes, queues + 1), np.int64)
    sizes: list[int] = []
    for c in range(classes):
        for q in range(queues):
            first[c, q] = len(sizes)
            whole, rest = divmod(int(nominal[c, q]), max(1, int(node_size[c])))
            sizes += [int(node_size[c])] * whole + [rest] * (rest > 0)
        first[c, queues] = len(sizes)
    size = np.array(sizes or [0], np.int64)
    ints: Any = lambda fill: np.full(runs, fill, np.int64)  # noqa: E731
    return Partitions(
        first, size, size.copy(), ints(OVER), ints(0), ints(0), ints(0),
        np.full((wishes, runs), NOBODY, np.int64), np.ones((wishes, runs)), ints(0),
        ints(UNKNOWN), ints(UNKNOWN), ints(UNKNOWN),
        ints(0), np.zeros((runs, seats), np.int32), np.zeros((runs, seats), np.int32), ints(NOBODY),
        np.full(queues, NOBODY, np.int64), np.full(queues, NOBODY, np.int64),
        np.zeros(queues, np.bool_), np.zeros(4 * runs + 64, np.int64), ints(0), np.zeros(2, np.int64),
    )  # fmt: skip


def struct_of(own: Partitions) -> Any:
    """What the kernels below take, over the same memory."""
    return as_struct(own)


@inner
def submit(own: Any, run: int) -> None:
    """``run``, described in the tables, waits behind all others of its queue."""
    q = own.queue[run]
    own.state[run], own.next[run] = WAITS, NOBODY
    own.start[run] = own.end[run] = own.run_s[run] = UNKNOWN
    if own.head[q] == NOBODY:
        own.head[q] = run
    else:
        own.next[own.tail[q]] = run
    own.tail[q] = run
    own.stirred[q] = True


@inner
def tell_run_time(own: Any, run: int, run_s: int, now: int) -> None:
    """``run`` is over in reality, where it took ``run_s`` as its own would have; 0 if it never began."""
    own.run_s[run] = run_s
    if own.state[run] == RUNS:
        _end_at(own, run, max(now, own.start[run] + _takes(own, run)))
    own.stirred[own.queue[run]] = True


@inner
def _takes(own: Any, run: int) -> int:
    """Seconds of a run that has begun there, on the class that it has."""
    if own.run_s[run] <= 0:
        return 0
    return max(1, int(own.run_s[run] * own.pace[own.on[run], run]))


@inner
def _end_at(own: Any, run: int, at: int) -> None:
    own.end[run] = at
    own.count[HEAP] = push(own.heap, 0, own.count[HEAP], at << BITS | run)


@inner
def play_until(own: Any, now: int) -> None:
    """All that happens there up to ``now``, that included; those who start are noted in ``started``."""
    last = (1 << BITS) - 1
    while own.count[HEAP] > 0 and own.heap[0] >> BITS <= now:
        at = own.heap[0] >> BITS
        while own.count[HEAP] > 0 and own.heap[0] >> BITS == at:
            run = own.heap[0] & last
            own.count[HEAP] = pop(own.heap, 0, own.count[HEAP])
            _end(own, run, at)
        _start_all(own, at)
    _start_all(own, now)


@inner
def _end(own: Any, run: int, at: int) -> None:
    """Nothing if its entry is stale."""
    if own.state[run] != RUNS or own.end[run] != at:
        return
    own.state[run] = OVER
    own.stirred[own.queue[run]] = True
    for i in range(own.seats[run]):
        own.free[own.node[run, i]] += own.usage[run, i]


@inner
def _start_all(own: Any, now: int) -> None:
    for q in range(own.stirred.size):
        if own.stirred[q]:
            own.stirred[q] = False
            _start_those_of(own, q, now)


@inner
def _start_those_of(own: Any, q: int, now: int) -> None:
    """In order; what is as large as one that was refused is not tried. What was withdrawn goes."""
    before, run, refused = NOBODY, own.head[q], 1 << 60
    while run != NOBODY:
        after, gpus = own.next[run], own.need[run] * own.members[run]
        gone = own.run_s[run] == 0
        alike = own.wish.shape[0] == 1
        if gone:
            own.state[run] = OVER
        elif not (alike and gpus >= refused) and _seat(own, run, q, NOBODY):
            gone = True
            _begin(own, run, now)
        elif alike and own.members[run] == 1:
            refused = min(refused, gpus)
        if not gone:
            before = run
        elif before == NOBODY:
            own.head[q] = after
        else:
            own.next[before] = after
        run = after
    own.tail[q] = before


@inner
def _begin(own: Any, run: int, now: int) -> None:
    own.state[run], own.start[run] = RUNS, now
    own.started[own.count[STARTED]] = run
    own.count[STARTED] += 1
    if own.run_s[run] != UNKNOWN:
        _end_at(own, run, now + _takes(own, run))


@inner
def _seat(own: Any, run: int, q: int, before: int) -> bool:
    """By its ``before``-th preference if it fits there, else by the first that has room."""
    if before >= 0 and _seat_by(own, run, q, before):
        return True
    for k in range(own.wish.shape[0]):
        if own.wish[k, run] < 0:
            return False
        if _seat_by(own, run, q, k):
            return True
    return False


@inner
def _seat_by(own: Any, run: int, q: int, k: int) -> bool:
    c = own.wish[k, run]
    first, end = own.first[c, q], own.first[c, q + 1]
    if first < end and _seat_on(own, run, first, end):
        own.on[run] = k
        return True
    return False


@inner
def _seat_on(own: Any, run: int, first: int, end: int) -> bool:
    """On the fullest node that takes all; else on the first wholly free ones, the rest on the freest."""
    gpus, most = own.need[run] * own.members[run], own.size[first]
    if gpus <= most:
        n = _fullest(own, first, end, gpus)
        if n >= 0:
            _sit(own, run, 0, n, gpus)
            own.seats[run] = 1
        return bool(n >= 0)
    fits = most // own.need[run]
    if fits == 0:
        return False
    full, rest = fits * own.need[run], own.members[run] % fits * own.need[run]
    nodes = own.members[run] // fits
    if nodes + (rest > 0) > own.node.shape[1]:
        return False
    return _seat_across(own, run, first, end, nodes, full, rest)


@inner
def _seat_across(
    own: Any, run: int, first: int, end: int, nodes: int, full: int, rest: int
) -> bool:
    sat = 0
    for n in range(first, end):
        if sat == nodes:
            break
        if own.free[n] == own.size[first]:
            _sit(own, run, sat, n, full)
            sat += 1
    if sat == nodes and rest > 0:
        n = _freest(own, first, end, rest)
        if n >= 0:
            _sit(own, run, sat, n, rest)
            sat += 1
    if sat == nodes + (rest > 0):
        own.seats[run] = sat
        return True
    for i in range(sat):
        own.free[own.node[run, i]] += own.usage[run, i]
    return False


@inner
def _sit(own: Any, run: int, seat: int, n: int, gpus: int) -> None:
    own.node[run, seat], own.usage[run, seat] = n, gpus
    own.free[n] -= gpus


@inner
def _fullest(own: Any, first: int, end: int, gpus: int) -> int:
    best, least = -1, 1 << 60
    for n in range(first, end):
        if gpus <= own.free[n] < least:
            best, least = n, own.free[n]
            if least == gpus:
                break
    return best


@inner
def _freest(own: Any, first: int, end: int, gpus: int) -> int:
    best = -1
    for n in range(first, end):
        if own.free[n] >= gpus and (best < 0 or own.free[n] > own.free[best]):
            best = n
    return best


@kernel
def submit_run(own: Any, run: int) -> None:
    """``submit`` for Python."""
    submit(own, run)


@kernel
def end_run(own: Any, run: int, run_s: int, now: int) -> None:
    """``tell_run_time`` for Python."""
    tell_run_time(own, run, run_s, now)


@kernel
def play(own: Any, now: int) -> None:
    """``play_until`` for Python. A caller that reports an event has played until before it."""
    play_until(own, now)


@kernel
def restore_run(own: Any, run: int, start: int, run_s: int, before: int) -> bool:
    """``run``, which began at ``start`` on its own by its ``before``-th preference (-1: nobody knows), goes
    on where it fits; returns whether it does.
    """
    q = own.queue[run]
    if not _seat(own, run, q, before):
        return False
    own.state[run], own.start[run], own.end[run], own.run_s[run] = RUNS, start, UNKNOWN, run_s
    if run_s != UNKNOWN:
        _end_at(own, run, start + _takes(own, run))
    return True
