"""What is kept where nothing could be planned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduling.services.errors import ServiceError

Json = dict[str, Any]
PLAIN = ("cluster_unreachable", "gone", "no_class")
"""Codes of refusals that name no queue but the one that asks."""
POOR = "gives_too_much"


def fault(refused: ServiceError) -> Json:
    """What is kept where no plan can be made: without a name that not everybody who reads it may see."""
    if refused.code in PLAIN:
        return {"fault": str(refused)}
    if refused.code == POOR:
        return {
            "fault": "The queue that it is taken from has too little to give. Name another one."
        }
    return {"fault": "As things are now, it cannot be planned. Decide without a plan, and say why."}


def or_fault(make: Callable[[], Json]) -> Json:
    """What ``make`` plans; where it refuses, the sentence that is kept instead."""
    try:
        return make()
    except ServiceError as refused:
        return fault(refused)
