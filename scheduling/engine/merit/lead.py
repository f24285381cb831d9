"""Lead: how much later a workload would end on the nominal of its queue alone, as far as that is known.

Work that checkpoints hold + virtual start - now. Late by more than a twentieth of what is known of its
completion time there, a workload is due a little before that.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner

LEAST_SLACK_S, SLACK_SHARE, MARGIN_S, RESTART_S = 60.0, 0.05, 45.0, 30.0
"""Late by less than that, seconds and a share of the completion time on its own quota, is not late;
due is work as late but for the margin, and for the restart if it was evicted before.
"""
TOO_LATE_S = 86_400.0
"""A promise that was broken for so long keeps the cluster busy no longer: its work is due no more."""
EVICTIONS_PER_ARRIVAL = 0.05
"""What a subtree may evict to keep its promise, or for throughput, for each workload that was submitted."""


@inner
def due_at(submitted: float, virtual: float, saved: float, evicted: bool) -> float:
    """When waiting work with that much ``saved`` is due: infinite before its virtual start."""
    if virtual == np.inf:
        return np.inf
    known = virtual - submitted + saved
    slack = max(LEAST_SLACK_S, SLACK_SHARE * known) - MARGIN_S - (RESTART_S if evicted else 0.0)
    return virtual + saved + slack
