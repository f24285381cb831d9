"""How long each kind of row is kept, in cluster time."""

from __future__ import annotations

from datetime import timedelta

MINUTES_KEPT = timedelta(days=2)
HOURS_KEPT = timedelta(days=400)
CYCLES_KEPT = timedelta(days=30)
RECORDS_KEPT = timedelta(days=1)
"""Of cycles that only started work."""
FORECASTS_KEPT = timedelta(days=90)
USE_KEPT = timedelta(days=90)
"""What single workloads did with their GPUs; queues and classes keep it in their samples."""
RUNS_KEPT = timedelta(days=800)
"""Of work that has ended, with what was decided about it; its days keep what it held and how it ended."""
MOST_RUNS = 5000
"""In one pass."""
CONTESTED_KEPT = timedelta(days=14)
"""Of cycles that took GPUs from somebody."""
