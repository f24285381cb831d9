"""A cluster of 100,000 GPUs on 50,000 nodes with a million waiting workloads: one planner, and several that
share it out.
"""

from __future__ import annotations

import gc
import resource
from dataclasses import replace
from statistics import median

from workshop.benches.engine.dividing import SEED
from workshop.benches.engine.large import (
    CLASSES,
    ON_SMALL_NODES,
    LargeLoad,
    LargeResult,
    Part,
    measure_large,
)
from workshop.benches.engine.outcomes import Outcome, Progress

HUGE = LargeLoad(
    nodes=50_000,
    leaves=5_000,
    running=25_000,
    pending=1_000_000,
    changes=10_250,
    gpus_per_node=2,
    sizes=ON_SMALL_NODES,
    questions=5,
)
"""``bench cycle`` made larger, with nodes of two GPUs; ``changes`` are a hundredth of its work."""
EIGHT = LargeLoad(
    nodes=50_000, leaves=5_000, running=100_000, pending=1_000_000, changes=11_000, questions=5
)
"""The same with nodes of eight, 400,000 GPUs, and the work of ``bench cycle``."""
SHARES = {
    "by_class": [Part(number, CLASSES, by_class=True) for number in range(CLASSES)],
    "by_block": [Part(number, 8) for number in range(8)],
}
"""Shards: one of each GPU class, or of every eighth topology block; all have all queues."""


def measure_huge(load: LargeLoad, progress: Progress) -> Outcome:
    """The figures of one planner, then of each way to share ``load`` out: the slowest shard, which is the
    time with a core for each, and all of them, which is the time on one core.
    """
    progress(f"{load.nodes} nodes, {load.leaves} leaves, {load.pending} pending")
    whole = of_one(measure_large(load, SEED)) | {"peak_gib": peak_gib()}
    outcome = Outcome(seeds=[SEED], measured=whole)
    for way, parts in SHARES.items():
        gc.collect()
        found = []
        for part in parts:
            progress(f"{way.replace('_', ' ')}: shard {part.number + 1} of {part.of}")
            found.append(measure_large(replace(load, questions=0), SEED, part))
        outcome.measured |= of_shards(way, found)
    outcome.notes += [
        "CPU seconds of one core; peak_gib: of the process, when the one planner is done",
        "WAY_slowest_*: of the slowest shard, a snapshot of its own; WAY_all_*: all, one after the other",
        "by_class: work of two classes keeps its first; by_block: the n-th workload goes to shard n mod 8; "
        "shards do not lend to each other",
    ]
    return outcome


def peak_gib() -> float:
    """Largest resident memory of the process until now."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20), 3)


def of_one(found: LargeResult) -> dict[str, float]:
    return {
        "scratch_s": round(found.scratch_s, 3),
        "one_percent_s": round(median(found.after_change_s), 3),
        "one_percent_worst_s": round(max(found.after_change_s), 3),
        "placements": found.placements,
        "build_s": round(found.build_s, 3),
        "explain_s": round(median(found.explain_s), 3),
    }


def of_shards(way: str, found: list[LargeResult]) -> dict[str, float]:
    changed = [median(one.after_change_s) for one in found]
    scratch = [one.scratch_s for one in found]
    return {
        f"{way}_slowest_scratch_s": round(max(scratch), 3),
        f"{way}_all_scratch_s": round(sum(scratch), 3),
        f"{way}_slowest_one_percent_s": round(max(changed), 3),
        f"{way}_all_one_percent_s": round(sum(changed), 3),
        f"{way}_placements": sum(one.placements for one in found),
    }
