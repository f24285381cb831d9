"""What is claimed, by bench: which of its figures the page shows, and what each ought to reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Goal(StrEnum):
    """How a figure is held against its goal."""

    AT_MOST = "≤"
    AT_LEAST = "≥"
    EQUAL = "="
    WITHIN = "within"


@dataclass(frozen=True, slots=True)
class Line:
    """One figure: its name in ``measured``, how it reads with its unit, and its goal if it has one, of which
    ``WITHIN`` has two bounds.
    """

    name: str
    said: str
    goal: Goal | None = None
    bounds: tuple[float, ...] = ()
    digits: int = 2

    def is_met(self, value: float) -> bool | None:
        """None where there is no goal."""
        if self.goal is None:
            return None
        if self.goal == Goal.WITHIN:
            return self.bounds[0] <= value <= self.bounds[1]
        bound = self.bounds[0]
        if self.goal == Goal.EQUAL:
            return value == bound
        return value <= bound if self.goal == Goal.AT_MOST else value >= bound


@dataclass(frozen=True, slots=True)
class Claim:
    """Of the bench ``bench``; ``traces`` are folders without which it cannot run."""

    bench: str
    lines: Sequence[Line]
    traces: Sequence[str] = ()


def at_most(name: str, said: str, bound: float, digits: int = 2) -> Line:
    return Line(name, said, Goal.AT_MOST, (bound,), digits)


def at_least(name: str, said: str, bound: float, digits: int = 2) -> Line:
    return Line(name, said, Goal.AT_LEAST, (bound,), digits)


def equal(name: str, said: str, bound: float) -> Line:
    return Line(name, said, Goal.EQUAL, (bound,))


def within(name: str, said: str, low: float, high: float) -> Line:
    return Line(name, said, Goal.WITHIN, (low, high), 1)


PHILLY, SWF, OPENB = ("philly",), ("swf", "philly"), ("openb",)
HERE: Sequence[Claim] = (
    Claim("division", (
        at_most("ms_1000", "1,000 leaves, CPU-ms", 5),
        at_most("ms_10000", "10,000 leaves, CPU-ms", 30),
        at_most("max_abs_error_vs_lp", "furthest from linear programmes, GPUs", 1e-9, 15),
    )),
    Claim("reclaim", (
        at_most("s_1000", "1,000 nodes, CPU-s", 0.1, 4),
        at_most("s_10000", "10,000 nodes, CPU-s", 2, 4),
        Line("evictions_1000", "evictions, 1,000 nodes", digits=0),
        Line("minimum_1000", "fewest that can do, 1,000 nodes", digits=0),
    )),
    Claim("cycle", (
        at_most("scratch_s", "from scratch, CPU-s", 0.3, 3),
        at_most("one_percent_ms", "after 1 % of change, CPU-ms", 100, 1),
        at_least("placements_per_s", "placements a CPU-second", 100_000, 0),
        at_most("explain_ms", "what would start a waiting workload, CPU-ms", 50, 1),
        Line("larger_scratch_s", "jobs of 3.8 GPUs on average: from scratch, CPU-s", digits=3),
        Line("larger_one_percent_ms", "the same after 1 % of change, CPU-ms", digits=1),
    )),
    Claim("what-if", (
        at_most("s", "72 nodes, call to answer, CPU-s", 2),
        at_most("pooled48_s", "48 nodes, call to answer, CPU-s", 2),
    ), PHILLY),
    Claim("replay", (
        equal("fifo_avg_jct_s", "strict FIFO, static 91 nodes, average JCT, s", 168_591.0),
        equal("sjf_avg_jct_s", "strict SJF, static 91 nodes, average JCT, s", 29_265.75),
        at_least("jobs_per_cpu_s", "jobs a CPU-second, shipped engine", 20_000, 0),
        Line("pooled72_avg_wait_s", "shipped engine, 72 nodes, average wait, s", digits=0),
        Line("pooled72_p99_wait_s", "the same, P99, s", digits=0),
        Line("pooled72_evictions_per_job", "the same, evictions a job", digits=3),
    ), PHILLY),
    Claim("openb", (
        at_least("default_allocated_pct", "default list, allocated, %", 95.5),
        at_least("multigpu20_allocated_pct", "multigpu20, above FGD's published 95.53, %", 95.53),
        at_least("gpuspec20_allocated_pct", "gpuspec20, above FGD's published 94.66, %", 94.66),
        at_least("gpushare60_allocated_pct", "gpushare60, above FGD's published 91.26, %", 91.26),
        Line("default_bound_pct", "what no placement passes on the default list, %"),
        at_most("run_cpu_s", "one run, CPU-s", 5),
    ), OPENB),
    Claim("duration", (
        at_most("LCG-2005-0_median_abs_log2_error", "LCG, median error, powers of two", 0.496, 3),
        at_most("wagap-2013_median_abs_log2_error", "wagap, median error, powers of two", 1.2, 3),
        within("LCG-2005-0_coverage_p10_p90_pct", "LCG, runs within P10 to P90, %", 78, 82),
        within("wagap-2013_coverage_p10_p90_pct", "wagap, runs within P10 to P90, %", 78, 82),
    ), SWF),
    Claim("fairness-philly", (
        at_most("worst_vc_ratio", "worst queue's mean JCT over its own part's", 1.05),
        at_most("unfair_pct", "jobs that end later than on their own part, %", 0.8),
        at_least("jain", "Jain's index", 0.978, 3),
        at_most("evictions_per_job", "evictions a job", 0.05, 3),
        at_most("lost_gpu_hours_pct", "GPU-hours lost, %", 0.1),
        at_most("max_evictions_of_a_job", "most evictions of one job", 3, 0),
    ), PHILLY),
    Claim("eta", (
        within("band_p50_p90_pct", "starts within P50 to P90, %", 35, 45),
        Line("band_low_pct", "the same, 95 % from, %"),
        Line("band_high_pct", "the same, 95 % to, %"),
        Line("before_p50_pct", "starts before P50, %"),
        Line("before_p90_pct", "starts before P90, %"),
        Line("forecasts", "forecasts judged", digits=0),
        at_most("median_relative_error_pct", "median error of waits over 10 min, % of the wait", 25, 1),
    ), PHILLY),
    Claim("jct-philly", (
        at_most("promise_pooled72_avg_wait_s", "promise, 72 nodes, average wait, s", 2_900, 0),
        at_most("promise_pooled72_p99_wait_s", "the same, P99, s", 25_000, 0),
        at_most("promise_pooled64_avg_wait_s", "promise, 64 nodes, average wait, s", 7_200, 0),
        at_most("throughput_pooled72_avg_wait_s", "throughput, 72 nodes, average wait, s", 2_400, 0),
        at_most("throughput_pooled72_p99_wait_s", "the same, P99, s", 12_000, 0),
        at_most("throughput_pooled64_avg_wait_s", "throughput, 64 nodes, average wait, s", 6_200, 0),
        Line("fair_share_pooled72_avg_wait_s", "fair share, 72 nodes, average wait, s", digits=0),
        Line("fifo_skip_pooled72_avg_wait_s", "rival: FIFO that skips, 72 nodes, average wait, s", digits=0),
        Line("kueue_pooled72_avg_wait_s", "rival: Kueue's fair sharing, 72 nodes, average wait, s", digits=0),
        Line("kai_pooled72_avg_wait_s", "rival: KAI's division, 72 nodes, average wait, s", digits=0),
    ), PHILLY),
    Claim("cycle-huge", (
        at_most("scratch_s", "from scratch, CPU-s", 5),
        at_most("one_percent_s", "after 1 % of change, CPU-s", 1),
        at_most("peak_gib", "memory of the process at its peak, GiB", 12),
        Line("by_class_slowest_scratch_s", "4 shards by class, the slowest from scratch, CPU-s"),
        Line("by_class_slowest_one_percent_s", "the same after 1 % of change, CPU-s"),
        Line("by_block_slowest_scratch_s", "8 shards by block, the slowest from scratch, CPU-s"),
        Line("by_block_slowest_one_percent_s", "the same after 1 % of change, CPU-s"),
        Line("placements", "placements of one planner", digits=0),
        Line("by_class_placements", "placements of the shards by class", digits=0),
        Line("by_block_placements", "placements of the shards by block", digits=0),
        Line("eight_scratch_s", "400,000 GPUs, 8 a node: from scratch, CPU-s"),
        Line("eight_one_percent_s", "the same after 1 % of change, CPU-s"),
    )),
)  # fmt: skip
"""Run on any machine, the quick ones first."""
PLANE: Sequence[Claim] = (
    Claim("kueue-baseline", (
        at_most("makespan_s", "15,000 Jobs, makespan, s", 95, 1),
        at_most("large_s", "large, mean time to admission, s", 6.6, 1),
        at_most("medium_s", "medium, s", 20.9, 1),
        at_most("small_s", "small, s", 53.2, 1),
    )),
    Claim("kueue-large", (
        at_most("makespan_s", "50,000 Jobs, makespan, s", 240, 1),
        at_most("large_s", "large, mean time to admission, s", 34.8, 1),
        at_most("medium_s", "medium, s", 77.8, 1),
        at_most("small_s", "small, s", 159.8, 1),
    )),
    Claim("live", (
        at_most("p50_ms", "created to unsuspended, median, ms", 300, 0),
        at_most("p99_ms", "created to unsuspended, P99, ms", 1_000, 0),
    )),
    Claim("pages", (
        at_most("p95_ms", "50 people, P95 of a page, ms", 200, 0),
        at_most("max_queries", "most queries of one page", 25, 0),
    )),
)  # fmt: skip
"""Need a control plane or PostgreSQL; run where they are asked for by name."""
CLAIMS = {claim.bench: claim for claim in (*HERE, *PLANE)}
