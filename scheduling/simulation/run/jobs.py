"""What a simulation is given."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from scheduling.engine.model import Workload

CHECKPOINT_S = 1800
RESTART_S = 30


@dataclass(frozen=True, slots=True)
class Submission:
    """A workload as it arrives (pending), and what only the simulator knows about it.

    ``duration_s`` is useful run time. Every ``checkpoint_s`` of it is kept when it is evicted (None: nothing
    is); each resumption costs ``restart_s`` first. ``outcome`` is how it ends when it has run its time:
    "succeeded", "failed" or "cancelled".
    """

    workload: Workload
    duration_s: int
    checkpoint_s: int | None = CHECKPOINT_S
    restart_s: int = RESTART_S
    outcome: str = "succeeded"
    leave_s: int | None = None
    """How long its pods take to go once it is evicted; None is as the options of the simulation say."""

    @property
    def submitted(self) -> datetime:
        return self.workload.submitted
