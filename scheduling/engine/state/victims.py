"""Running work that may leave for others, and what is tried with it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduling.engine.compile.structs import Flags, Floats, Ints, declare

ANY, READY = 0, 1
"""All prey, and that of which its queue has too much, inside no min run time whoever hunts."""

UNRATED = 1 << 40

LOOSE, BOUND = 0, 1
"""Prey that may go for somebody, and prey inside its min run time whoever hunts."""

END, FIRST = 0, 1
"""Of ``count``: where the log of what is tried ends, and where that of the search at work begins."""


@declare
class Prey(NamedTuple):
    """Running preemptible work by leaf, and by node once somebody looks there (``ladder``)."""

    listed: Flags  # [1]: whether it is in this cycle
    hunts: Ints  # [1]: their number
    leaf_start: Ints  # by leaf: in_leaf[leaf_start[q]:leaf_start[q + 1]]
    in_leaf: Ints
    leaf_done: Flags  # [queue] its part of ``in_leaf`` is in order
    of_class: Ints  # [class] how many of it are listed
    ranked: Ints  # those of one class below one queue, in order, for one hunt
    start: Ints  # by node: on_node[start[n]:stop[n]]
    stop: Ints
    on_node: Ints
    filled: Ints  # [1] of on_node
    node_done: Flags  # [node] it has its part of ``on_node``, in order
    spare: Ints
    listings: Ints  # [1]: their number
    listing: Ints  # [slot] number of the listing that it was in last
    shield: (
        Floats  # [priority class] shortest min run time that may shield it in the queue looked at
    )
    lost: Floats  # [slot] GPU-seconds thrown away by an eviction
    chosen: Flags  # [slot]
    picked: Ints  # the log of what is tried (``statement``): who, in order of choice
    part: Ints  # the hold of which one member is given up, or what else it does
    count: Ints  # type: ignore[assignment] # [END, FIRST]; nobody asks a struct for tuple.count
    given: Ints  # [slot] members given up, which are no longer its own
    gone: Ints  # [hold] the same of one hold
    heap: Ints  # nodes by cost, see ``heap``
    spot: Ints  # [node] its position in the heap
    size: Ints  # [1] nodes in the heap
    fresh: Ints  # [node] epoch at which its cost was computed, 0: never
    near: Ints  # [node] number of the last hunt inside a queue that has work there
    rated: Ints  # [1]: evictions since ``rate`` was found, or UNRATED
    rate: (
        Floats  # [any or ready, node] least that such prey there loses per milli-GPU, else infinite
    )
    own_rate: Floats  # [node] the same of the leaf of the last hunt inside one
    risen: Flags  # [queue] a leaf that holds more than when nodes were rated
    yields: Ints  # [any or ready, node] milli-GPU that such prey there gives back at most
    of_leaf: Ints  # [any or ready, node] scratch: what one leaf holds there
    cost: Floats  # [node]
    mass: Ints  # [loose or bound, class, queue, rank] milli-GPU that leaves could lose
    kept_mass: Ints  # the same before anybody was taken
    barred: Ints  # [slot] number of the last hunt that does without it
    owing: Flags  # [queue] on the way from whoever hunts: see ``eviction.note_owed``
    price: Floats  # [slot] GPU-seconds by which victims are compared, see ``_set_prices``
    dearest: Floats  # [class, rank] scratch: the most that prey of one leaf loses there
    biggest: Ints  # [class, queue] the largest gang in the subtree
    unbounded: Flags  # [queue] it has shares of GPUs, or elastic gangs that can do without some
    take: Ints  # [queue] what a hunt could take from the subtree, of its children, and scratch
    below: Ints  # [queue]
    refused: (
        Ints  # [class, queue] the last workload whose hunt failed since somebody was evicted, -1
    )
    refused_at: Ints  # [class, queue] how many had started then


def empty_prey(
    slots: int, nodes: int, holds: int, classes: int, queues: int, ranks: int, seats: int
) -> Prey:
    """Tables for these numbers of things; nothing is listed."""
    ints, flags, many = np.zeros, np.zeros, max(holds, slots)
    return Prey(
        listed=flags(1, np.bool_), hunts=ints(1, np.int64),
        leaf_start=ints(queues + 1, np.int64), in_leaf=ints(slots, np.int64),
        leaf_done=flags(queues, np.bool_), of_class=ints(classes, np.int64),
        ranked=ints(slots, np.int64),
        start=ints(nodes, np.int64), stop=ints(nodes, np.int64),
        on_node=ints(holds, np.int64), filled=ints(1, np.int64),
        node_done=flags(nodes, np.bool_), spare=ints(many, np.int64),
        listings=ints(1, np.int64), listing=ints(slots, np.int64),
        shield=np.zeros(ranks), lost=np.zeros(slots),
        chosen=flags(slots, np.bool_), picked=ints(2 * slots + seats, np.int64),
        part=ints(2 * slots + seats, np.int64), count=ints(2, np.int64),
        given=ints(slots, np.int64), gone=ints(holds, np.int64),
        heap=ints(nodes, np.int64), spot=ints(nodes, np.int64) - 1,
        size=ints(1, np.int64), fresh=ints(nodes, np.int64), near=ints(nodes, np.int64),
        rated=ints(1, np.int64) + UNRATED, rate=np.zeros((2, nodes)), own_rate=np.zeros(nodes),
        risen=flags(queues, np.bool_), yields=ints((2, nodes), np.int64), of_leaf=ints((2, nodes), np.int64),
        cost=np.zeros(nodes), mass=ints((2, classes, queues, ranks), np.int64),
        kept_mass=ints((2, classes, queues, ranks), np.int64),
        biggest=ints((classes, queues), np.int64),
        unbounded=flags(queues, np.bool_), take=ints(queues, np.int64),
        below=ints(queues, np.int64), refused=ints((classes, queues), np.int64),
        refused_at=ints((classes, queues), np.int64), barred=ints(slots, np.int64),
        owing=flags(queues, np.bool_), price=np.zeros(slots), dearest=np.zeros((classes, ranks)),
    )  # fmt: skip
