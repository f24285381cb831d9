"""How time passes in the spelled-out simulator: what the compiled loop knows, and what it does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduling.simulation.run.options import Options


@dataclass(frozen=True, slots=True)
class Outage:
    """Seconds after the origin. Work on ``node`` falls back to its last checkpoint and waits again at once;
    until ``up_s`` the node takes none."""

    node: str
    down_s: int
    up_s: int


@dataclass(frozen=True, slots=True)
class SimulatorOptions(Options):
    """``checked``: hold every plan against the laws. ``on_ticks``: plan at all whole multiples of ``cycle_s``
    after the origin, and at no other time, as a worker does that nothing but its interval calls."""

    checked: bool = False
    on_ticks: bool = False
    spell_s: int = 0
    """What an observer hears of shares and waits, at most so often; acts always come at once."""
    speeds: Mapping[str, float] = field(default_factory=dict)
    """GPU class -> how many times sooner work ends there than it says; 1 for what is not named."""
    outages: tuple[Outage, ...] = ()
    """With any, each plan is made on a fresh snapshot, which takes longer."""


EVERY_EVENT = SimulatorOptions()
