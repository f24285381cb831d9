"""Train on days of a Philly recording and judge on later ones; prints the table of README.md.

python -m workshop.training DIRECTORY --nodes 72 --hours 6 --train 2017-10-04 --judge 2017-11-06
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from scheduling.simulation.traces import Trace
from workshop.simulator.ties import read_published
from workshop.training.environment import KNOBS
from workshop.training.judge import is_better, judge
from workshop.training.train import Rule, Training, train
from workshop.training.windows import Window, cut


def main(given: Sequence[str] | None = None) -> None:
    arguments = _arguments().parse_args(given)
    read = _trace(arguments.trace, [*arguments.train, *arguments.judge], arguments.hours)
    trained = [_window(read, day, arguments.nodes, arguments.hours) for day in arguments.train]
    training = Training(arguments.seed, arguments.generations, arguments.population)
    found = train(training, trained, _say)
    print(f"least cost on what was trained on: {found.cost:.3f} of the shipped policy's wait")
    print(_choices(found.rule))
    for day in arguments.judge:
        window = _window(read, day, arguments.nodes, arguments.hours)
        print(_table(window, *judge(found.rule, trained, window, tell=_say)))


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m workshop.training", description=__doc__)
    parser.add_argument("trace", type=Path, help="directory of the recording")
    parser.add_argument("--nodes", type=int, default=72)
    parser.add_argument("--hours", type=int, default=6, help="length of each window")
    for name in ("--train", "--judge"):
        parser.add_argument(name, type=_day, nargs="+", required=True, help="days, as 2017-10-04")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--generations", type=int, default=4)
    parser.add_argument("--population", type=int, default=8)
    return parser


def _day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _trace(path: Path, days: Sequence[datetime], hours: int) -> Trace:
    end = max(days) + timedelta(hours=hours)
    return read_published(path, begin=min(days), end=end)


def _window(trace: Trace, day: datetime, nodes: int, hours: int) -> Window:
    return cut(f"{day:%Y-%m-%d}", trace, nodes, day, day + timedelta(hours=hours))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _choices(rule: Rule) -> str:
    names = ("few wait", "some wait", "many wait")
    rows = [
        f"{name}: "
        + ", ".join(f"{k.field} {k.values[int(i)]}" for k, i in zip(KNOBS, row, strict=True))
        for name, row in zip(names, rule.choices, strict=True)
    ]
    return "\n".join(rows)


def _table(window: Window, mine: list[float], found: dict) -> str:  # type: ignore[type-arg]
    lines = [
        f"\n{window.name}: {len(window.trace)} jobs; better than all by hand: {is_better(found)}",
        "| policy | hours waited | trained less it |",
        "|---|---|---|",
        f"| **trained** | {np.mean(mine):,.1f} | |",
    ]
    for name, (hours, gap) in sorted(found.items(), key=lambda one: float(np.mean(one[1][0]))):
        apart = f"{gap.mean:+,.1f} ± {gap.half or 0:,.1f}, {gap.verdict}"
        lines.append(f"| {name} | {np.mean(hours):,.1f} | {apart} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
