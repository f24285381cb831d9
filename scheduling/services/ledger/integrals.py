"""Integrals over time of loads that come and stay: what is held between two moments is a difference."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def until(times: Floats, since: Floats, loads: Floats) -> Floats:
    """Load-seconds up to each of ``times`` of ``loads`` that stay for ever from ``since`` on: the sum of
    load * (time - since) over those that have come.

    Times in seconds from a nearby moment: since 1970, sums of products would lose the seconds.
    """
    order = np.argsort(since, kind="stable")
    since, loads = since[order], loads[order]
    count = np.searchsorted(since, times)
    total, moment = np.append(0.0, np.cumsum(loads)), np.append(0.0, np.cumsum(loads * since))
    return np.asarray(total[count] * times - moment[count])
