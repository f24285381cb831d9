"""What the numbers in the arrays stand for: resources, levels, phases, which room counts."""

from __future__ import annotations

EPS = 1e-3
"""Two shares closer than this (milli-GPU) are equal: far below the smallest quantity, 1 milli-GPU."""

GPUS, CPUS, MEMORY = 0, 1, 2
ANYWHERE = -1
SPREADS = 1.0  # the weight of an even load with which nothing else counts

FREE, PENDING, RUNNING = 0, 1, 2
"""Phase of a workload's slot; a free slot holds no workload."""

NOW, LATER, RAW, BACKFILL = 0, 1, 2, 4
"""Which room counts: free now and unclaimed, free once leaving work is gone, free now whoever claims
it, or free now though reserved for later."""

DAY_S = 86_400.0
"""Evictions of a workload are counted for so long."""
