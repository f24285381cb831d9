"""The learned order: found on October of Philly, judged on work that it never saw.

Windows begin on an empty cluster. An order is judged against every hand-written one on each window, as
means of five lives, all intervals together at 95 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scheduling.benches.engine.outcomes import Outcome, Progress
from scheduling.engine.model import Sharing
from scheduling.simulation.learning.frozen import read_frozen, write_frozen
from scheduling.simulation.learning.judging import (
    Order,
    bounded,
    broken,
    difference,
    is_promoted,
    lived,
    lived_by_rival,
)
from scheduling.simulation.learning.search import Found, Training, train, yardstick
from scheduling.simulation.learning.windows import Window, cut, keep_apart, whole
from scheduling.simulation.partition import mean_load_nodes
from scheduling.simulation.replay.sharing_lives import LIVES, mean
from scheduling.simulation.replications import Difference
from scheduling.simulation.result import Metrics
from scheduling.simulation.traces import Ties, Trace, read_trace

POOLED_NODES = 72
TRAINED_ON = ((4, 6), (19, 21))
"""Days of October 2017: from the first of each pair until the second begins."""
WEIGHED = (
    "expected_rest", "size", "waited", "behind", "below_share", "fits_node", "saved", "evicted",
)  # fmt: skip
"""All features but what users hold: Philly names no users."""
IDEAS: Mapping[str, Training] = {
    "wait": Training(Sharing.THROUGHPUT, WEIGHED),
    "wait-fairly": Training(Sharing.THROUGHPUT, WEIGHED, penalty=0.2),
    "promise-fairly": Training(Sharing.PROMISE, WEIGHED, penalty=0.2),
}
"""What the search minimises: the wait alone, or with what fairness bounds are passed by."""
HANDWRITTEN = (
    Order("fair", Sharing.FAIR_SHARE),
    Order("promise", Sharing.PROMISE),
    Order("throughput", Sharing.THROUGHPUT),
)
RIVALS = {
    "native": "native",
    "fifo_skip": "fifo-skip",
    "predicted": "predicted",
    "gittins": "gittins",
}
LIMIT = "sjf-skip"
OTHERS = ("wagap-2013",)


def philly(traces: Path) -> Trace:
    begin, end = datetime(2017, 10, 1, tzinfo=UTC), datetime(2017, 11, 30, 23, 59, tzinfo=UTC)
    return read_trace(traces / "philly", begin=begin, end=end, ties=Ties.PUBLISHED)


def training_windows(trace: Trace) -> list[Window]:
    return [
        cut(f"october_{a}_to_{b}", trace, POOLED_NODES, october(a), october(b))
        for a, b in TRAINED_ON
    ]


def october(day: int) -> datetime:
    return datetime(2017, 10, day, tzinfo=UTC)


def judged_windows(traces: Path, trace: Trace) -> list[Window]:
    """November of Philly, and recordings of other clusters on their own size, or on one that the mean
    load fills to 80 %.
    """
    found = [november(trace)]
    for name in OTHERS:
        other = read_trace(traces / "swf" / f"{name}.swf.gz")
        short = name.partition("-")[0].partition("_")[0].lower()
        found.append(whole(short, other, other.nodes or mean_load_nodes(other)))
    return found


def november(trace: Trace) -> Window:
    begin, end = datetime(2017, 11, 1, tzinfo=UTC), datetime(2017, 12, 1, tzinfo=UTC)
    return cut("november", trace, POOLED_NODES, begin, end)


def bench_training(traces: Path, progress: Progress) -> Outcome:
    """Finds the weights of each idea on October again and writes them into the file that is judged."""
    trace = philly(traces)
    windows, rows = training_windows(trace), []
    outcome = Outcome(inputs=trace.checksums(), seeds=[t.seed for t in IDEAS.values()])
    for name, training in IDEAS.items():
        progress(name)
        found, key = train(training, windows, progress), name.replace("-", "_")
        rows.append(row_of(name, training, found, windows))
        outcome.measured[f"{key}_cost"] = round(found.cost, 4)
        outcome.measured[f"{key}_start_cost"] = round(found.start_cost, 4)
        outcome.measured |= {f"{key}_weight_{n}": w for n, w in found.weights.items()}
    chosen_first(rows, windows)
    write_frozen(rows)
    return outcome


def row_of(
    name: str, training: Training, found: Found, windows: Sequence[Window]
) -> dict[str, Any]:
    """As it stands in the file."""
    made = {
        **asdict(training),
        "windows": [window.name for window in windows],
        "cost": round(found.cost, 4),
        "start_cost": round(found.start_cost, 4),
        "course": [round(cost, 4) for cost in found.course],
    }
    return {
        "name": name,
        "sharing": str(training.sharing),
        "weights": dict(found.weights),
        "made": made,
    }


def chosen_first(rows: list[dict[str, Any]], windows: Sequence[Window]) -> None:
    """Sorts by one yardstick on the training windows: throughput with fairness counted."""
    cost = yardstick(IDEAS["wait-fairly"], windows)
    for row in rows:
        order = Order(row["name"], Sharing(row["sharing"]), row["weights"])
        row["made"]["chosen_by"] = round(cost(order), 4)
    rows.sort(key=lambda row: (row["made"]["chosen_by"], row["name"]))


def bench_learned_policy(traces: Path, progress: Progress) -> Outcome:
    """The order chosen on October against every hand-written one, on windows and traces that it never saw."""
    trace = philly(traces)
    windows = judged_windows(traces, trace)
    keep_apart(training_windows(trace), windows)
    order = read_frozen()[0].order
    outcome = Outcome(seeds=list(range(LIVES)), notes=notes(order.name))
    against: list[Difference] = []
    bounds: list[dict[str, float]] = []
    for window in windows:
        outcome.inputs |= window.trace.checksums()
        judged = judge(order, window, len(windows) * (len(HANDWRITTEN) + len(RIVALS)), progress)
        outcome.measured |= judged.measured
        against += judged.against
        bounds.append(judged.bounds)
    outcome.measured["promoted"] = float(is_promoted(against, bounds))
    return outcome


class Judged(NamedTuple):
    """What one window says: its figures by name, distances from the hand-written orders, bounded figures."""

    measured: dict[str, float]
    against: list[Difference]
    bounds: dict[str, float]


def judge(order: Order, window: Window, comparisons: int, progress: Progress) -> Judged:
    hand, limit = by_hand(window, progress)
    mine = lived(order, window, LIVES, progress)
    gaps = {name: difference(other, mine, comparisons) for name, other in hand.items()}
    measured = told(window, {**hand, "sjf": limit, "learned": mine}) | told_of(window, mine, gaps)
    best = min(measured[f"{window.name}_{name}_avg_jct_s"] for name in hand)
    measured[f"{window.name}_best_handwritten_avg_jct_s"] = best
    return Judged(measured, list(gaps.values()), bounded(mine))


def by_hand(window: Window, progress: Progress) -> tuple[dict[str, list[Metrics]], list[Metrics]]:
    """Every hand-written order of the tree, and as a limit the shortest of known run times first."""
    progress(f"hand-written orders, {window.name}")
    found = {name: lived_by_rival(rival, window) for name, rival in RIVALS.items()}
    for order in HANDWRITTEN:
        found[order.name] = lived(order, window, LIVES, progress)
    return found, lived_by_rival(LIMIT, window)


def told(window: Window, found: Mapping[str, Sequence[Metrics]]) -> dict[str, float]:
    """Mean completion time, wait and who was later than on the own partition, of each order."""
    lines: dict[str, float] = {}
    for name, lives in found.items():
        start = f"{window.name}_{name}"
        lines[f"{start}_avg_jct_s"] = round(mean([m.avg_jct_s for m in lives]), 2)
        lines[f"{start}_avg_wait_s"] = round(mean([m.avg_wait_s for m in lives]), 2)
        lines[f"{start}_unfair_pct"] = round(bounded(lives)["unfair_pct"], 3)
    return lines


def told_of(
    window: Window, mine: Sequence[Metrics], gaps: Mapping[str, Difference]
) -> dict[str, float]:
    """Of the learned order: its bounded figures, and its distance from each other order, seconds."""
    found, start = bounded(mine), f"{window.name}_learned"
    lines = {f"{start}_{figure}": round(value, 4) for figure, value in found.items()}
    lines[f"{start}_bounds_passed"] = float(len(broken(found)))
    for other, gap in gaps.items():
        lines[f"{start}_less_{other}_s"] = round(gap.mean, 2)
        lines[f"{start}_less_{other}_half_s"] = round(float(gap.half or np.nan), 2)
    return lines


def notes(name: str) -> list[str]:
    return [
        f"learned_* is the order {name}, chosen on October among those of the file",
        "trained on 4, 5, 19 and 20 October 2017 of Philly; every window begins on an empty cluster",
        "*_less_ORDER_s: mean completion time less that of ORDER, life by life, and half of its interval; "
        "all intervals together hold at 95 %",
        "sjf_* knows run times: a limit, not a competitor",
        "promoted is 1 where it is better than every hand-written order on every window, all bounds kept",
    ]
