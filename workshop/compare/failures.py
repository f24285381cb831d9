"""Draws when nodes break: times between failures and times to repair are exponential, each node for itself.

Hazards of GPU nodes are near constant over their middle life, and repairs are short beside them (Kokolis et
al., "Revisiting Reliability in Large-Scale Machine Learning Research Clusters", HPCA 2025: 6.5 failures in a
thousand node-days), so exponential times are a fair first picture.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np

from workshop.simulator.options import Outage

MTBF_H = 24 * 1000 / 6.5
REPAIR_H = 4.0


def outages(
    nodes: Iterable[str],
    until_s: int,
    seed: int,
    *,
    mtbf_h: float = MTBF_H,
    repair_h: float = REPAIR_H,
) -> tuple[Outage, ...]:
    """Outages that begin before ``until_s``, in order of time, then name; the same for the same arguments.

    A node's dice are seeded by (seed, its name), so another node more or less changes nobody else's. Raises
    ValueError unless both times are above 0.
    """
    if mtbf_h <= 0 or repair_h <= 0:
        raise ValueError(
            f"expected hours above 0, found {mtbf_h} between failures, {repair_h} to repair"
        )
    found: list[Outage] = []
    for node in nodes:
        dice = np.random.default_rng([seed, zlib.crc32(node.encode())])
        at_s = up_after(0, dice, mtbf_h)
        while at_s < until_s:
            back_s = up_after(at_s, dice, repair_h)
            found.append(Outage(node, at_s, back_s))
            at_s = up_after(back_s, dice, mtbf_h)
    return tuple(sorted(found, key=lambda outage: (outage.down_s, outage.node)))


def up_after(at_s: int, dice: np.random.Generator, mean_h: float) -> int:
    """A second at least 1 after ``at_s``."""
    return at_s + max(1, round(float(dice.exponential(mean_h * 3600))))
