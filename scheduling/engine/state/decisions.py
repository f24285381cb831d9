"""The decisions of a plan, by slot."""

from __future__ import annotations

from typing import NamedTuple

from scheduling.engine.compile.structs import Flags, Floats, Ints, declare


@declare
class Out(NamedTuple):
    """Decisions by slot, in ``order``; ``figures`` are the numbers a sentence quotes."""

    action: Ints
    reason: Ints
    gpu_class: Ints
    members: Ints
    rival: Ints  # the workload it is for, or that goes first
    blame: Ints  # the queue at which it failed
    until: Floats
    lost: Floats
    figures: Floats  # [slot, place], see ``reasons.figures``
    searches: Ints  # [slot] see ``Facts.searches``
    noted: Flags  # [slot]: stands in ``order``
    served: Flags  # [slot]: others leave for it
    stepped_back: Flags  # [slot]: see ``precedence``
    like: Ints  # [slot]: whose line tells all but action, reason and until, -1 its own; see ``spell_out``
    order: Ints
    begun: Ints  # who started on free room in this cycle, ``book.rounds[BEGUN]`` of them
    first: Ints  # [slot] first seat in the pool, members seats long
    pool_node: Ints
    pool_device: Ints
    used: Ints  # [0] decisions, [1] seats
