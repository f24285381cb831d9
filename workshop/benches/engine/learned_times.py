"""What learned run times decide: completion where work goes first by what its like took, against the native
scheduler and the orders that people wrote.

Run times are learned as a life goes on, of what is over by then, so every window is work never seen. Windows
begin on an empty cluster; figures are means of five lives, all intervals together at 95 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from scheduling.engine.model import Policy, Sharing
from scheduling.simulation.replications import Verdict, compare
from scheduling.simulation.traces import Trace, read_trace
from workshop.benches.engine.outcomes import Outcome, Progress
from workshop.compare.replays import BASELINE, replay
from workshop.compare.sharing_lives import LIVES, SharingLife, lives, mean
from workshop.simulator.partition import mean_load_nodes
from workshop.simulator.replay import EngineRun
from workshop.simulator.result import Metrics
from workshop.simulator.ties import Ties, read_published

POOLED_NODES = 72
LEARNED = {"throughput": Sharing.THROUGHPUT, "promise": Sharing.PROMISE}
"""Rules of sharing that order by learned run times."""
RIVALS = {
    "native": "native",
    "fifo_skip": "fifo-skip",
    "predicted": "predicted",
    "gittins": "gittins",
}
LIMIT = "sjf-skip"
OTHER = "wagap-2013"


class Window(NamedTuple):
    """Recorded work on an empty cluster of ``nodes``."""

    name: str
    trace: Trace
    nodes: int


def bench_learned_policy(traces: Path, progress: Progress) -> Outcome:
    """Average completion under learned run times, and its distance from every other order."""
    windows = [november(traces), another(traces)]
    comparisons = len(windows) * len(LEARNED) * (1 + len(RIVALS))
    outcome = Outcome(seeds=list(range(LIVES)), notes=NOTES)
    for window in windows:
        outcome.inputs |= window.trace.checksums()
        outcome.measured |= measured(window, comparisons, progress)
    return outcome


def november(traces: Path) -> Window:
    """Of Philly; its clock begins with the month."""
    begin, end = datetime(2017, 11, 1, tzinfo=UTC), datetime(2017, 11, 30, 23, 59, tzinfo=UTC)
    trace = read_published(traces / "philly", begin=begin, end=end, ties=Ties.PUBLISHED)
    return Window("november", trace, POOLED_NODES)


def another(traces: Path) -> Window:
    """A recording of another cluster, on its own size, or on one that the mean load fills to 80 %."""
    trace = read_trace(traces / "swf" / f"{OTHER}.swf.gz")
    return Window(OTHER.partition("-")[0], trace, trace.nodes or mean_load_nodes(trace))


def measured(window: Window, comparisons: int, progress: Progress) -> dict[str, float]:
    mine = {name: by_engine(sharing, window, progress) for name, sharing in LEARNED.items()}
    others = {"fair": by_engine(Sharing.FAIR_SHARE, window, progress)}
    others |= {name: by_rival(rival, window, progress) for name, rival in RIVALS.items()}
    lines = _figures(window.name, {**mine, **others, "sjf": by_rival(LIMIT, window, progress)})
    for name, found in mine.items():
        for other, base in others.items():
            lines |= _distance(f"{window.name}_{name}_less_{other}", base, found, comparisons)
    return lines


def by_engine(sharing: Sharing, window: Window, progress: Progress) -> list[Metrics]:
    """Figures of each life of ``window`` under the shipped engine."""
    progress(f"{sharing}, {window.name}")
    run = EngineRun(policy=Policy(sharing=sharing))
    return [
        SharingLife(run.replay(each, window.nodes), replay(each, BASELINE, None)).figures()
        for each in lives(window.trace)
    ]


def by_rival(rival: str, window: Window, progress: Progress) -> list[Metrics]:
    """The same lives under a rival of ``rivals.registry`` on the whole pool."""
    progress(f"{rival}, {window.name}")
    return [
        SharingLife(replay(each, rival, window.nodes), replay(each, BASELINE, None)).figures()
        for each in lives(window.trace)
    ]


def _figures(window: str, found: Mapping[str, Sequence[Metrics]]) -> dict[str, float]:
    lines: dict[str, float] = {}
    for name, each in found.items():
        lines[f"{window}_{name}_avg_jct_s"] = round(mean([m.avg_jct_s for m in each]), 2)
        lines[f"{window}_{name}_avg_wait_s"] = round(mean([m.avg_wait_s for m in each]), 2)
        lines[f"{window}_{name}_unfair_pct"] = round(mean([m.fairness.unfair_pct for m in each]), 3)
    return lines


def _distance(
    name: str, base: Sequence[Metrics], found: Sequence[Metrics], comparisons: int
) -> dict[str, float]:
    """Of the mean completion time, seconds, life by life; below zero is sooner than ``base``."""
    gap = compare([m.avg_jct_s for m in base], [m.avg_jct_s for m in found], comparisons)
    return {
        f"{name}_s": round(gap.mean, 2),
        f"{name}_half_s": round(float(gap.half or np.nan), 2),
        f"{name}_better": float(gap.verdict is Verdict.BETTER),
    }


NOTES = [
    "throughput and promise order by learned run times; predicted and gittins do so too, without shares",
    "*_less_ORDER_s: mean completion time less that of ORDER, life by life, and half of its interval; all "
    "intervals together hold at 95 %",
    "sjf_* knows run times: a limit, not a competitor",
]
