"""Which reports there are, in the order of their tabs."""

from __future__ import annotations

from portal.reports import energy, reservations, starts, words
from portal.reports.declaration import Letter, Report
from portal.reports.fairness import fairness
from portal.reports.forecast import forecast
from portal.reports.fragmentation import fragmentation
from portal.reports.longest import longest
from portal.reports.preemptions import preemptions
from portal.reports.showback import showback
from portal.reports.use import use
from portal.reports.utilization import utilization
from portal.reports.waits import waits

_ALL = (
    Report(
        "utilization", "Utilization",
        "Capacity, allocated and really used GPU-hours by class, queue, user and type; how work ended.",
        utilization, words.utilization_finding,
        Letter("classes", "gpu_class", (
            ("allocated_share_of_ready|allocated_share_of_nominal", "{} allocated"),
            ("really_used_share_of_allocated", "{} of it really used"),
        )),
        compares=True,
    ),
    Report(
        "use", "Real use",
        "Allocated GPUs that were really used, those that idle now, asked for against used.",
        use, words.use_finding,
        Letter("idle_now", "workload", (("gpus", "{} GPUs idle"), ("user", "of {}"))),
        compares=True,
    ),
    energy.REPORT,
    Report(
        "waits", "Queue waits",
        "Queue waits: percentiles over time, by size, by hour of the week.",
        waits, words.waits_finding,
        Letter("classes", "gpu_class", (("p50_s", "P50 {}"), ("p90_s", "P90 {}"))),
        compares=True,
    ),
    starts.REPORT,
    Report(
        "longest", "Longest waits",
        "The longest waits and why, and all waiting by reason and queue.",
        longest, words.longest_finding,
        Letter("causes", "cause", (("hours", "{} h"), ("share", "{} of all waiting"))),
        compares=True,
    ),
    reservations.REPORT,
    Report(
        "preemptions", "Preemptions",
        "Evictions: over time, who for whom, by rule, GPU-hours lost.",
        preemptions, words.preemptions_finding,
        Letter("queues", "queue", (
            ("evictions", "{} evictions"), ("lost_gpu_hours", "{} GPU-hours lost"),
        )),
        compares=True,
    ),
    Report(
        "fairness", "Fairness",
        "How far work was ahead of the quota of its queue alone, and who ended later than alone.",
        fairness, words.fairness_finding,
        Letter("entitled", "queue", (("received_share", "received {} of what it was entitled to"),)),
        compares=True,
    ),
    Report(
        "fragmentation", "Fragmentation",
        "Free GPUs that nobody can use: now, over time, by node, and what waited for whole room.",
        fragmentation, words.fragmentation_finding,
        Letter("now", "gpu_class", (
            ("free_gpus", "{} free"), ("fragmented_gpus", "{} of them fragmented"),
        )),
        compares=True,
    ),
    Report(
        "showback", "Showback",
        "Costs by queue, class and person, idle and lost apart; budgets with their forecast.",
        showback, words.showback_finding,
        Letter("classes", "gpu_class", (("gpu_hours", "{} GPU-hours"),)),
        compares=True,
    ),
    Report(
        "forecast", "Forecast",
        "Demand ahead against capacity, by the hour and week, with bands and how earlier forecasts did.",
        forecast, words.forecast_finding,
        Letter("classes", "gpu_class", (
            ("hours_above_of_next_168", "{} of the next 168 hours above what there is"),
        )),
    ),
)  # fmt: skip
REPORTS = {report.name: report for report in _ALL}
