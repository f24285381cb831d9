"""What rivals are told and charged beyond a trace: what evictions cost, how run times are guessed, dice."""

from __future__ import annotations

from dataclasses import dataclass

from scheduling.simulation.run.jobs import RESTART_S


@dataclass(frozen=True, slots=True)
class Costs:
    """``checkpoint_s``: useful run time between checkpoints; 0 saves work as it is evicted, which is what the
    authors of the rivals assume. ``restart_s``: seconds that coming back takes. ``asked_factor``: requested
    over real run times, where a trace knows no requested ones. ``seed`` is for rivals that draw.
    """

    checkpoint_s: int = 0
    restart_s: int = RESTART_S
    asked_factor: float = 1.0
    seed: int = 0


USUAL = Costs()
