"""The division as it was filled, step by step."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from scheduling.engine.compile.structs import Flags, Floats, Ints, declare
from scheduling.engine.state.axes import per

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
