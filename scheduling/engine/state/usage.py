"""What queues and users hold, and what is kept for whom."""

from __future__ import annotations

from typing import NamedTuple

from scheduling.engine.compile.structs import Floats, Ints, declare


@declare
class Book(NamedTuple):
    """What queues hold, kept up as decisions fall."""

    held: Ints  # [class, queue] without leaving work, with what is reserved
    fixed: Ints  # the part of it that is not preemptible
    leaving: Ints  # [class, queue] what leaving work still holds
    kept: Ints  # [class, queue] what it keeps back of the nominal that it does not hold
    lends: Ints  # [class] 1 where any queue with nominal has a lending limit
    by_user: (
        Ints  # what pairs (queue, user) held of late and hold, classes weighed by exchange rate
    )
    budget: Ints
    ratio: Floats  # dominant ratio of the queue
    fair_size: Ints  # [queue] its fair shares in milli-GPU of the reference class, together
    waits_since: Floats  # [queue] when the first of those who wait in the subtree was submitted
    turn: Ints  # [class, queue]: the waiting workload that goes first, -1 none
    turn_until: Floats  # [class, queue]: when its turn is expected to come
    holder: Ints  # [class]: the workload that reserves free GPUs, -1 none
    holder_seats: Ints  # [class]: how many members it holds nodes for
    holder_until: Floats  # [class]: when the reserved GPUs are expected to be free
    promised: Ints  # [class]: the first to whom room was promised, -1 none
    spent: Ints  # [1]: GPUs evicted for the workload at hand
    forbidden: Ints  # [5]: 1 where a search was denied a victim, by what it might overlook
    supply: Ints  # [class]: GPUs to divide
    asked: Ints  # [class, queue]: what leaves hold and ask for as the cycle begins
    asking: Ints  # [class, queue]: the same as it was divided last
    shifts: Ints  # [2]: SINCE_DIVIDED, DIVISIONS
    charged: Ints  # [class, queue]: micro-GPU of usage that recent starts are charged beforehand
    graced: Floats  # [class]: when the last grace of a lowering ends, 0 if none runs
    ceiling: Ints  # [class, queue]: the lowest limit on the way to the root
    rationed: Ints  # [class]: 1 where any queue has spent its GPU-hours
    limited: Ints  # [1]: 1 where any queue limits workloads or users; the rest is kept up only then
    running: Ints  # [queue] workloads
    user_running: Ints  # [pair]
    user_gpus: Ints  # [pair]
    queued: Ints  # [queue] waiting workloads that the limits let ask
    user_queued: Ints  # [pair]
    user_asks: Ints  # [pair] what they ask for
    extra: Ints  # [class, queue]: what those ask for who are left out of the line
    begun: Ints  # [class, queue]: what started in this cycle
    rounds: Ints  # [7]: LEFT and so on
    in_vain: Ints  # [own or others, class, queue]: the last for whom stepping back would not do
    in_vain_at: Ints  # [own or others, class, queue]: the memo's epoch then
    begun_until: Floats  # [class, queue]: when the last of it is expected to be over (P90)
