"""How queues stand in a cycle: what they hold, ask for and are kept from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from scheduling.engine.compile.structs import Flags, Floats, Ints, declare, per

BY_QUEUE = per("class", "queue")


@declare
class Usage(NamedTuple):
    """What queues and users hold, kept up as decisions fall (``quota.usage``). GPUs are milli-GPU."""

    gpus: Annotated[Ints, BY_QUEUE]  # without leaving work, with what is reserved
    held_fixed: Annotated[Ints, BY_QUEUE]  # the part of it that is not preemptible
    leaving: Annotated[Ints, BY_QUEUE]  # what leaving work still holds
    kept_back: Annotated[Ints, BY_QUEUE]  # of the nominal that it does not hold
    lends: Annotated[Ints, per("class")]  # 1 where any queue with nominal has a lending limit
    user_weighted: Annotated[Ints, per("pair")]  # held of late and now, by exchange rate
    eviction_budget: Annotated[Ints, per("queue")]
    dominant_share: Annotated[Floats, per("queue")]
    fair_size: Annotated[Ints, per("queue")]  # its fair shares in GPUs of the reference class
    waits_since: Annotated[Floats, per("queue")]  # when the first who waits there was submitted
    running: Annotated[Ints, per("queue")]  # workloads; this and the rest only where limits are set
    user_running: Annotated[Ints, per("pair")]
    user_gpus: Annotated[Ints, per("pair")]


@declare
@dataclass(slots=True)
class Limits:
    """Which limits there are (``quota.limits``)."""

    ceiling: Annotated[Ints, BY_QUEUE]  # the lowest limit on the way to the root
    hours_spent: Annotated[Ints, per("class")]  # 1 where any queue has spent its GPU-hours
    any: int  # 1 where any queue limits workloads or users


@declare
class Demand(NamedTuple):
    """What is there to divide, and what is asked for (``division.demand``)."""

    supply: Annotated[Ints, per("class")]
    requests: Annotated[Ints, BY_QUEUE]  # what leaves hold and ask for as the cycle begins
    asked_outside: Annotated[Ints, BY_QUEUE]  # by those left out of the pending order
    charged_micro: Annotated[Ints, BY_QUEUE]  # micro-GPU that recent starts are charged beforehand
    queued: Annotated[Ints, per("queue")]  # waiting workloads that the limits let ask
    user_queued: Annotated[Ints, per("pair")]
    user_asks: Annotated[Ints, per("pair")]


@declare
@dataclass(slots=True)
class Redivision:
    """When the division is found anew inside a cycle (``division.share_out``)."""

    divided: Annotated[Ints, BY_QUEUE]  # what was asked for when it was divided last
    grace_until_s: Annotated[Floats, per("class")]  # end of the last grace of a lowering, 0 if none
    changed_asks: int  # how many ask for something else since then
    divisions: int  # how often they were found anew before a search for victims


@declare
class Turns(NamedTuple):
    """What goes first in its queue (``admission.turns``)."""

    slot: Annotated[Ints, BY_QUEUE]  # -1 none
    until_s: Annotated[Floats, BY_QUEUE]  # when its turn is expected to come


@declare
class Reservations(NamedTuple):
    """Which gang keeps free nodes of a class (``admission.reserve``)."""

    slot: Annotated[Ints, per("class")]  # -1 none
    members: Annotated[Ints, per("class")]  # for how many of them
    until_s: Annotated[Floats, per("class")]  # when the reserved GPUs are expected to be free


@declare
class Starts(NamedTuple):
    """What this cycle started, or will once others have left (``statement.operations``)."""

    started: Annotated[Ints, BY_QUEUE]  # milli-GPU
    promised: Annotated[Ints, BY_QUEUE]  # milli-GPU that those claim who had no claim before
    until_s: Annotated[Floats, BY_QUEUE]  # when the last of it is expected to be over
    first_promised: Annotated[Ints, per("class")]  # the first to whom room was promised, -1 none


@declare
@dataclass(slots=True)
class Round:
    """Counters of a cycle that bound its time; the first two are of one round."""

    left: int  # rounds that follow in this cycle
    asks_again: int  # 1 where somebody stepped back or shares are others
    moves: int  # how many move
    starts: int  # how many have started on free room
    trials: int  # how often some of those were to step back
    stretched: int  # searches for victims that went further than to fair shares
    mixed: int  # searches for moves beside evictions


@declare
class Search(NamedTuple):
    """What searches for victims found (``eviction``)."""

    forbidden: Annotated[Ints, per("5")]  # 1 where a victim was denied, by what might be overlooked
    evicted: Annotated[Ints, per("1")]  # milli-GPU evicted for the workload at hand
    vain_slot: Annotated[Ints, per("2", "class", "queue")]  # own or others' starts: vain for whom
    vain_epoch: Annotated[Ints, per("2", "class", "queue", fill=-1)]  # epoch of the refusals then


@declare
class Queues(NamedTuple):
    usage: Usage
    limits: Limits
    demand: Demand
    redivision: Redivision
    turns: Turns
    reservations: Reservations
    starts: Starts
    round: Round
    search: Search


BY_QUEUE = per("class", "queue")


@declare
class Division(NamedTuple):
    """The division ``[class, queue]``. ``capacity`` is what the subtree divides: share + kept.

    A share is ``guaranteed + spare + remainder``: the guarantee, the part of its tier's spare by ``ratio``
    (w of the rule, from ``norm``, n, and ``usage``, u), and what those with a ratio left over, by weight
    alone. ``want`` and ``pull`` are scratch of the filling.
    """

    fair: Annotated[Floats, BY_QUEUE]
    guaranteed: Annotated[Floats, BY_QUEUE]
    kept_back: Annotated[Floats, BY_QUEUE]
    kept_below: Annotated[Floats, BY_QUEUE]  # kept back by the children together
    demand: Annotated[Ints, BY_QUEUE]
    capacity: Annotated[Floats, BY_QUEUE]
    short: Annotated[Flags, BY_QUEUE]  # its guarantee was not met: oversubscribed
    spare: Annotated[Floats, BY_QUEUE]
    remainder: Annotated[Floats, BY_QUEUE]
    norm: Annotated[Floats, BY_QUEUE]
    ratio: Annotated[Floats, BY_QUEUE]
    usage: Annotated[Floats, BY_QUEUE]
    want: Annotated[Floats, BY_QUEUE]
    pull: Annotated[Floats, BY_QUEUE]
