"""What a learned score weighs, of who waits and of who may leave: each feature by name, with its unit and a
sentence.

A score is the sum of weight x feature, inside what the rules of sharing allow. Of those who wait, who has
most goes first. Of those who may leave, each unit of it halves what an eviction is weighed with. Times and
sizes are logarithms, so the hand-written orders are scores too: expected work of the promise is
``{"expected_rest": -1, "size": -1}``, that of throughput ``{"expected_rest": -1, "size": -0.25}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

MOST_WEIGHT = 100.0
"""A weight may be as large, either way."""


class Feature(NamedTuple):
    name: str
    unit: str
    sentence: str


FEATURES = (
    Feature("expected_rest", "doublings of 1 h", "Least expected run time to an end."),
    Feature("size", "doublings of 1 GPU", "GPUs of the whole gang."),
    Feature("waited", "doublings of 10 min", "Time since it was submitted."),
    Feature("behind", "doublings of 10 min", "How much later it is than on its queue's own quota."),
    Feature(
        "below_share", "-1 to 1", "How far its queue is below its fair share, as a part of it."
    ),
    Feature(
        "user_share", "doublings of 1 GPU", "What its user holds and held of late in its queue."
    ),
    Feature("fits_node", "0 or 1", "Whether one node has all its GPUs free at the moment."),
    Feature("saved", "doublings of 10 min", "Work of it that checkpoints of earlier runs hold."),
    Feature("evicted", "times", "How often it was evicted."),
)
"""Of who waits. Their place is their number in the engine."""

VICTIM_FEATURES = (
    Feature(
        "at_risk",
        "doublings of 0.1 GPU-hours",
        "Work that its eviction would lose, restart included.",
    ),
    Feature("expected_rest", "doublings of 1 h", "Least expected run time to an end."),
    Feature("size", "doublings of 1 GPU", "GPUs of the whole gang."),
    Feature(
        "above_share", "-1 to 1", "How far its queue is above its fair share, as a part of it."
    ),
    Feature("ran", "doublings of 10 min", "Time since this run of it started."),
    Feature("evicted", "times", "How often it was evicted."),
)
"""Of who runs and may leave. Their place is their number in the engine."""

NAMES = tuple(feature.name for feature in FEATURES)
VICTIM_NAMES = tuple(feature.name for feature in VICTIM_FEATURES)


def vector(weights: Mapping[str, float], names: Sequence[str] = NAMES) -> list[float]:
    """Weights by number of the feature among ``names``; none at all where none is stated. Raises KeyError."""
    unknown = set(weights) - set(names)
    if unknown:
        raise KeyError(min(unknown))
    return [float(weights.get(name, 0.0)) for name in names] if weights else []
