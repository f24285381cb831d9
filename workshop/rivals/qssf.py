"""Quasi-shortest service first (QSSF) of Helios: GPUs x a run time that is known but for an error.

Philly has neither users nor names, so its published figure rests on real run times with the error that the
estimator of Helios made on its own trace: up to 10 % for a tenth of the jobs, 10 to 50 % for the next four
tenths, 50 to 100 % for two, 1 to 10 times for two, 10 to 100 times for the last, up or down alike (Hu et al.,
SC 2021, and the artefact's ``philly_estimate.py``).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from scheduling.simulation.traces import Trace
from workshop.simulator.result import Replay

from .costs import Costs
from .queues import finished, starts_by

Floats = npt.NDArray[np.float64]
SHARES = (0.1, 0.5, 0.7, 0.9)
"""Up to which share of the jobs each error goes; the last has what is left."""
LEAST = np.array([0.0, 0.1, 0.5, 1.0, 10.0])
MOST = np.array([0.1, 0.5, 1.0, 10.0, 100.0])


def replay_qssf(trace: Trace, nodes: int, costs: Costs) -> Replay:
    """Strict, as published: who is first blocks the rest. Raises TooLargeError."""
    key = trace.gpus * noised(trace.duration_s.astype(np.float64), costs.seed)
    return finished(trace, starts_by(trace, key, nodes, skips=False), nodes)


def noised(duration_s: Floats, seed: int) -> Floats:
    """Run times with the error above; they may fall below zero, which only says that they go first."""
    dice = np.random.default_rng(seed)
    kind = np.searchsorted(SHARES, dice.random(len(duration_s)), side="left")
    error = dice.uniform(LEAST[kind], MOST[kind])
    return np.trunc(duration_s * (1 + error * dice.choice((-1.0, 1.0), len(duration_s))))
