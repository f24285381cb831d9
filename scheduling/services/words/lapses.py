"""How it reads that a claim lapsed: GPUs were taken from others for work that did not get them."""

from __future__ import annotations

from scheduling.models import LapseCause


def sentence_of(cause: LapseCause, victims: int) -> str:
    """Of a claim that lapsed though no plan of the engine said so."""
    left = {0: "Nobody", 1: "One workload"}.get(victims, f"{victims} workloads")
    return f"What was kept for it is kept no longer: {cause.label}. {left} left for it."
