"""How time passes in a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Outage:
    """Seconds after the origin. Work on ``node`` falls back to its last checkpoint and waits again at once;
    until ``up_s`` the node takes none."""

    node: str
    down_s: int
    up_s: int


MAX_PLANS_AT_ONCE = 1000
"""More plans than this within one second mean that the engine undoes what it did."""


class UnsettledError(RuntimeError):
    """The engine keeps changing its mind without time passing."""


@dataclass(frozen=True, slots=True)
class Options:
    """``cycle_s``: at least so long between plans (0: at every event). ``leave_s``: how long victims hold
    their GPUs after the eviction. ``until``: stop there, whatever still runs. ``checked``: hold every plan
    against the laws."""

    cycle_s: int = 0
    leave_s: int = 0
    until: datetime | None = None
    checked: bool = False
    spell_s: int = 0
    """What an observer hears of shares and waits, at most so often; acts always come at once."""
    speeds: Mapping[str, float] = field(default_factory=dict)
    """GPU class -> how many times sooner work ends there than it says; 1 for what is not named."""
    outages: tuple[Outage, ...] = ()
    """With any, each plan is made on a fresh snapshot, which takes longer."""


EVERY_EVENT = Options()
