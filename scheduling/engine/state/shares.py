"""The division as it was filled, step by step."""

from __future__ import annotations

from typing import NamedTuple

from scheduling.engine.compile.structs import Flags, Floats, Ints, declare


@declare
class Division(NamedTuple):
    """The division ``[class, queue]``. ``capacity`` is what the subtree divides: share + kept.

    A share is ``guaranteed + spare + remainder``: the guarantee, the part of its tier's spare by ``ratio``
    (w of the rule, from ``norm``, n, and ``usage``, u), and what those with a ratio left over, by weight
    alone. ``want`` and ``pull`` are scratch of the filling.
    """

    fair: Floats
    guaranteed: Floats
    kept: Floats
    kept_below: Floats  # kept back by the children together
    demand: Ints
    capacity: Floats
    short: Flags  # its guarantee was not met: oversubscribed
    spare: Floats
    remainder: Floats
    norm: Floats
    ratio: Floats
    usage: Floats
    want: Floats
    pull: Floats
