"""What a learned order weighs and keeps, in words."""

from __future__ import annotations

from collections.abc import Mapping

FEATURES: Mapping[str, tuple[str, str, str]] = {
    "expected_rest": ("Expected run time", "longer goes first", "shorter goes first"),
    "size": ("Size, GPUs", "larger goes first", "smaller goes first"),
    "waited": ("Waits for", "longer goes first", "newer goes first"),
    "behind": ("Late on its own quota", "later goes first", "earlier goes first"),
    "below_share": ("Queue below its fair share", "further below goes first", "further above goes first"),
    "user_share": ("User’s share lately", "more goes first", "less goes first"),
    "fits_node": ("Fits one node now", "fitting goes first", "what must spread goes first"),
    "saved": ("Work in its checkpoints", "more goes first", "less goes first"),
    "evicted": ("Evicted before", "more often goes first", "less often goes first"),
}  # fmt: skip
"""By the engine's names: what people read, and what a weight above and below zero says."""
VICTIM_FEATURES: Mapping[str, tuple[str, str, str]] = {
    "at_risk": ("Work at risk", "more lost: taken first", "more lost: left alone"),
    "expected_rest": ("Expected run time", "longer: taken first", "little left: taken first"),
    "size": ("Size, GPUs", "larger: taken first", "smaller: taken first"),
    "above_share": ("Above its fair share", "further above: taken first", "further above: left alone"),
    "ran": ("Ran for", "longer: taken first", "longer: left alone"),
    "evicted": ("Evicted before", "already once: taken first", "already once: left alone"),
}  # fmt: skip
"""The same of who may leave."""
ORDER_GROUP = "Order inside a queue: score = sum of weight × feature, most goes first"
VICTIM_GROUP = "Victims, among those that the rules allow: sooner = taken first"
HARDLY = 0.05
"""Of the heaviest weight: less is said to count hardly."""
BOUNDS: Mapping[str, tuple[str, str]] = {
    "unfair_pct": ("Unfair jobs", "%"),
    "worst_queue_ratio": ("Worst queue, against its own nominal", ""),
    "evictions_per_job": ("Evictions per workload", ""),
    "lost_gpu_hours_pct": ("Lost GPU-hours", "%"),
    "max_evictions_of_a_job": ("Evicted at most", "times"),
    "others_wait_s": ("Average wait of all other work", "h:min"),
}
