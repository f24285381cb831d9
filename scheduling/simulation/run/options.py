"""How time passes in a simulation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

MAX_PLANS_AT_ONCE = 1000
"""More plans than this within one second mean that the engine undoes what it did."""


class UnsettledError(RuntimeError):
    """The engine keeps changing its mind without time passing."""


@dataclass(frozen=True, slots=True)
class Options:
    """``cycle_s``: at least so long between plans (0: at every event). ``leave_s``: how long victims hold
    their GPUs after the eviction. ``until``: stop there, whatever still runs."""

    cycle_s: int = 0
    leave_s: int = 0
    until: datetime | None = None


EVERY_EVENT = Options()
