"""How it reads that a claim lapsed: GPUs were taken from others for work that did not get them."""

from __future__ import annotations

from collections.abc import Mapping

from scheduling.models import LapseCause

WHY: Mapping[LapseCause, str] = {
    LapseCause.SEATS_GONE: "its nodes are gone",
    LapseCause.EDITED: "it asks for something else by now",
    LapseCause.HELD: "it was held or may not start",
    LapseCause.GONE: "it ended or was cancelled",
    LapseCause.OVERDUE: "the cluster did not let the others go",
}


def sentence_of(cause: LapseCause, victims: int) -> str:
    """Of a claim that lapsed though no plan of the engine said so."""
    left = {0: "Nobody", 1: "One workload"}.get(victims, f"{victims} workloads")
    why = WHY.get(cause, "a plan gave it up")
    return f"What was kept for it is kept no longer: {why}. {left} left for it."
