"""What simulated work does with its GPUs over time: the same for the same seed and moment."""

from __future__ import annotations

import zlib

BLOCK_S = 5400
"""Whether anything runs is drawn anew after so long."""
WAVE_S = 300
REST = 0.004
"""Activity of a GPU on which nothing runs."""
REST_W, BUSY_W = 70.0, 430.0
"""Watts of a GPU at rest, and what it takes more at full activity."""
START_S = 120
"""A run loads its data first."""

Use = tuple[float, float]
"""Mean SM activity while it runs, and the share of time in which it does."""


def numbers_of(text: str, seed: str) -> Use:
    """What "MEAN" or "MEAN:BUSY" says; where it says nothing, drawn from ``seed``: 0.5 to 0.95, always."""
    mean, _, busy = text.partition(":")
    try:
        return float(mean), float(busy or 1.0)
    except ValueError:
        return 0.5 + 0.45 * drawn(seed, 0), 1.0


def activity_at(use: Use, seed: str, at_s: float, age_s: float = START_S) -> float:
    """SM activity, 0 to 1, ``age_s`` seconds after it began; blocks and waves follow the clock."""
    mean, busy = use
    if busy < 1.0 and drawn(seed, 1 + int(at_s // BLOCK_S)) >= busy:
        return REST
    wave = 0.85 + 0.3 * drawn(seed, -1 - int(at_s // WAVE_S))
    warm = 0.3 if age_s < START_S else 1.0
    return min(1.0, max(REST, mean * wave * warm))


def drawn(seed: str, number: int) -> float:
    """From 0 to 1, evenly."""
    return zlib.crc32(f"{seed} {number}".encode()) / 0xFFFFFFFF
