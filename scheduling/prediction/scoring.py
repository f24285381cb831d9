"""How good quantiles are: what held, by how much they were off, and whether a simpler one is as good."""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass, field

from .quantiles import LEVELS, Quantiles

KEPT = 20_000


def pinball(said: Quantiles, log2_s: float) -> float:
    """Mean loss over ``LEVELS`` in logarithms: the proper score of quantiles (Koenker and Bassett 1978)."""
    values = (said.p10, said.p50, said.p90)
    losses = (
        max(level * (log2_s - value), (level - 1) * (log2_s - value))
        for level, value in zip(LEVELS, values, strict=True)
    )
    return sum(losses) / len(LEVELS)


@dataclass(slots=True)
class Score:
    """Of predictions that were made before the run and judged after it; ``recent`` fades."""

    fade: float = 0.998
    errors: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))
    runs: int = 0
    within: int = 0
    upper: int = 0
    loss: float = 0.0
    recent: float = 0.0
    weight: float = 0.0

    def note(self, said: Quantiles, log2_s: float) -> None:
        loss = pinball(said, log2_s)
        self.errors.append(abs(log2_s - said.p50))
        self.runs += 1
        self.within += said.p10 <= log2_s <= said.p90
        self.upper += said.p50 <= log2_s <= said.p90
        self.loss += loss
        self.recent = self.recent * self.fade + loss * (1 - self.fade)
        self.weight = self.weight * self.fade + 1 - self.fade

    @property
    def recent_loss(self) -> float:
        return self.recent / self.weight if self.weight else 0.0

    def figures(self) -> dict[str, float]:
        """As a row keeps them; empty before anything has ended."""
        if not self.runs:
            return {}
        return {
            "runs": self.runs,
            "median_abs_log2_error": round(statistics.median(self.errors), 4),
            "pinball": round(self.loss / self.runs, 4),
            "p10_p90_pct": round(100 * self.within / self.runs, 2),
            "p50_p90_pct": round(100 * self.upper / self.runs, 2),
        }
