"""Running work that may leave for others, and what is tried with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from scheduling.engine.compile.structs import Flags, Floats, Ints, declare, per

ANY, READY = 0, 1
"""All candidates, and those of whom their queue has too much, inside no min run time for any search."""
UNRATED = 1 << 40
LOOSE, BOUND = 0, 1
"""What may go for somebody, and what is inside its min run time for any search."""


@declare
class VictimOrder(NamedTuple):
    """In which order candidates are looked at, by leaf and by node (``eviction.victim_order``)."""

    leaf_sorted: Annotated[Flags, per("queue")]
    node_sorted: Annotated[Flags, per("node")]  # it has its part of ``node_slot``, in order
    node_begin: Annotated[Ints, per("node")]  # node_slot[node_begin[n]:node_end[n]]
    node_end: Annotated[Ints, per("node")]
    node_slot: Annotated[Ints, per("hold")]
    node_used: Annotated[Ints, per("1")]  # of node_slot
    below_slot: Annotated[Ints, per("slot")]  # those of one class below one queue, for one search
    scratch: Annotated[Ints, per("holder")]


@declare
@dataclass(slots=True)
class StatementLog:
    """What is tried, virtually (``statement.statement``): ``slot[first:size]`` by the search at work."""

    slot: Annotated[Ints, per("trial")]  # which, in order of choice
    part: Annotated[Ints, per("trial")]  # the hold of a member given up, or what else it does
    size: int
    first: int
    leaves: Annotated[Flags, per("slot")]
    members_given: Annotated[Ints, per("slot")]  # up, and no longer its own
    members_given_on: Annotated[Ints, per("hold")]


@declare
class CostHeap(NamedTuple):
    """Nodes, or blocks of them, by what it costs to clear them (``eviction.cheapest_node``)."""

    node: Annotated[Ints, per("on_heap")]
    position: Annotated[Ints, per("on_heap", fill=-1)]
    size: Annotated[Ints, per("1")]
    cost: Annotated[Floats, per("on_heap")]  # GPU-seconds
    costed_at: Annotated[Ints, per("on_heap")]  # number of the search, 0 never


@declare
class NodeBounds(NamedTuple):
    """What room on a node costs at least, and how much there is to take."""

    search_number: Annotated[Ints, per("1")]
    least_loss: Annotated[Floats, per("2", "node")]  # [any or ready] GPU-seconds by milli-GPU
    most_given: Annotated[Ints, per("2", "node")]  # milli-GPU that they give back at most
    scratch: Annotated[Ints, per("2", "node")]  # what one leaf holds there
    own_at: Annotated[Ints, per("node")]  # the last search inside a leaf that has work there
    own_least_loss: Annotated[Floats, per("node")]  # of that leaf
    rated: Annotated[Ints, per("1", fill=UNRATED)]  # evictions since these were found, or UNRATED
    risen: Annotated[Flags, per("queue")]  # leaves that hold more than then


@declare
class NodeBlocks(NamedTuple):
    """Bounds over neighbours of one class (``eviction.cheapest_node``), as those in ``NodeBounds``."""

    most_free: Annotated[Ints, per("class_block")]  # milli-GPU on one node, later
    seen: Annotated[Ints, per("class", fill=-1)]  # the clock up to which that is right
    least_loss: Annotated[Floats, per("2", "class_block")]
    most_given: Annotated[Ints, per("2", "class_block")]
    own_at: Annotated[Ints, per("class_block")]
    own_least_loss: Annotated[Floats, per("class_block")]
    open: Annotated[Flags, per("class_block")]  # its nodes have joined the heap of nodes
    heap: CostHeap  # of closed blocks


@declare
class QueueBounds(NamedTuple):
    """What searches could take from queues at most (``eviction.bounds``)."""

    evictable: Annotated[Ints, per("2", "class", "queue", "rank")]  # [loose or bound] milli-GPU
    evictable_at_start: Annotated[Ints, per("2", "class", "queue", "rank")]
    largest_gang: Annotated[Ints, per("class", "queue")]  # in the subtree
    unbounded: Annotated[Flags, per("queue")]  # shares of GPUs, or members to do without
    takeable: Annotated[Ints, per("queue")]
    takeable_below: Annotated[Ints, per("queue")]


@declare
class FailedSearches(NamedTuple):
    """What searched in vain since somebody was evicted."""

    slot: Annotated[Ints, per("class", "queue")]  # -1 none
    starts_then: Annotated[Ints, per("class", "queue")]
    in_vain: Annotated[Ints, per("class", "queue")]  # least that was asked
    in_vain_at: Annotated[Ints, per("class", "queue")]  # ``Refusals.change`` then


@declare
class MeritSearches(NamedTuple):
    """What searches by merit remember of each other (``eviction.giving_way``)."""

    evictions_left: Annotated[Floats, per("queue")]  # that the subtree may still order
    calm: Annotated[Flags, per("slot")]  # what its subtree lends comes back to it later
    price: Annotated[Floats, per("slot")]  # GPU-seconds by which it is weighed; infinite: it stays
    node_price: Annotated[Floats, per("node")]  # of freeing it wholly
    taken_by: Annotated[Ints, per("slot")]  # number of the search that chose it last
    chosen: Annotated[Ints, per("slot+1")]  # whom the search at work would evict, their number last
    searches: Annotated[Ints, per("1")]  # searches of this plan
    number: Annotated[Ints, per("1")]  # of searches
    asks_again: Annotated[Floats, per("1")]  # when somebody may evict who may not now
    failed: Annotated[Ints, per("class")]  # the least sought in vain since ``failed_at``
    failed_at: Annotated[Ints, per("class")]


@declare
class Candidates(NamedTuple):
    """Running preemptible work by leaf (``eviction.candidates``)."""

    ready: Annotated[Flags, per("1")]  # whether it was listed in this cycle
    number: Annotated[Ints, per("1")]  # of listings
    listed_in: Annotated[Ints, per("slot")]  # number of the listing that it was in last
    leaf_begin: Annotated[Ints, per("queue+1")]  # slot[leaf_begin[q]:leaf_begin[q + 1]]
    slot: Annotated[Ints, per("slot")]
    size_of_class: Annotated[Ints, per("class")]
    shortest_min_run_s: Annotated[Floats, per("rank")]  # for work of the queue looked at
    lost_gpu_s: Annotated[Floats, per("slot")]  # thrown away by an eviction
    price: Annotated[Floats, per("slot")]  # GPU-seconds by which victims are compared
    dearest: Annotated[Floats, per("class", "rank")]  # scratch: the most that one leaf loses there
    barred: Annotated[Ints, per("slot")]  # number of the last search that does without it
    owing: Annotated[Flags, per("queue")]  # on the way from the searching queue: see ``note_owed``
    order: VictimOrder
    log: StatementLog
    heap: CostHeap
    bounds: NodeBounds
    blocks: NodeBlocks
    by_queue: QueueBounds
    failed: FailedSearches
    merit: MeritSearches
