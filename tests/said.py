"""Figures as a decision of any reason has them."""

from __future__ import annotations

from typing import Any

from scheduling.engine import Reason
from scheduling.engine.reasons.catalogue import figures_of
from scheduling.engine.reasons.figures import MIN_RUN_TIME


def figures(reason: Reason, row: tuple[float, ...] = (3e3, 2e3, 4e3, 5e3, 1.0, 1.0, 0.0)) -> Any:
    """``row`` by name; others are protected by their min run time."""
    said = figures_of(reason, row)
    protects = reason is Reason.VICTIMS_PROTECTED
    return said._replace(waits_itself=0, protection=MIN_RUN_TIME) if protects else said
