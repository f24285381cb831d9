"""Replays a recorded trace under one policy and prints what it did to waits, use and fairness."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scheduling.files.arguments import MOST_NODES, MOST_S, instant, whole
from scheduling.management.command import WeirCommand
from scheduling.simulation.replay.partition import static_nodes
from scheduling.simulation.replay.replays import POLICIES, WEIR, measure, replay
from scheduling.simulation.replay.weir import EngineRun
from scheduling.simulation.result import Metrics
from scheduling.simulation.rivals.queues import TooLargeError
from scheduling.simulation.run.jobs import CHECKPOINT_S, RESTART_S
from scheduling.simulation.run.options import Options
from scheduling.simulation.traces import Ties, Trace, TraceError, read_trace

nodes = whole(1, MOST_NODES)
seconds = whole(1, MOST_S)


class Command(WeirCommand):
    help = (
        "Simulates a trace (a .csv or .swf file, packed or not, or a folder with one) and prints "
        "jobs, waits, completion times, utilization, evictions and fairness."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("trace", type=Path, metavar="TRACE")
        add("--nodes", type=nodes_argument, help="pooled nodes, or 'static': each queue alone")
        add("--policy", choices=POLICIES, default=WEIR)
        add("--from", dest="begin", type=instant, help="first submit time (UTC), included")
        add("--to", dest="end", type=instant, help="last submit time (UTC), included")
        add("--limit", type=whole(1, 1_000_000_000), help="only the first N jobs")
        add(
            "--ties",
            type=Ties,
            choices=list(Ties),
            default=Ties.PUBLISHED,
            help="order of equal submit times in a .csv: as in the file or as published figures take them",
        )
        add(
            "--cycle-s",
            type=seconds,
            default=0,
            help="weir: seconds between plans; every event if left out",
        )
        add(
            "--checkpoint-s",
            type=seconds,
            default=CHECKPOINT_S,
            help="weir: useful run time between checkpoints",
        )
        add("--restart-s", type=seconds, default=RESTART_S, help="weir: cost of a resumption")
        add("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        started_s = time.process_time()
        try:
            trace = self.read(options)
            wanted = options["nodes"]
            size = sum(static_nodes(trace).values()) if wanted in (None, "static") else wanted
            if size > MOST_NODES:
                self.refuse(
                    [f"{options['trace']}: found {size:,} nodes, expected at most {MOST_NODES:,}"]
                )
            self.note(f"{len(trace)} jobs, {size} nodes of {trace.gpus_per_node} GPUs")
            run = EngineRun(
                Options(cycle_s=options["cycle_s"]), options["checkpoint_s"], options["restart_s"]
            )
            result = replay(trace, options["policy"], None if wanted == "static" else size, run)
            figures = measure(trace, result)
        except (TraceError, TooLargeError, ValueError) as error:
            self.refuse(str(error).splitlines())
        about = describe(trace, options, size) | {"cpu_s": time.process_time() - started_s}
        if options["as_json"]:
            self.stdout.write(json.dumps(about | asdict(figures), indent=2))
            return
        for line in table(about, figures).splitlines():
            self.say(line)

    def read(self, options: dict[str, Any]) -> Trace:
        trace = read_trace(
            options["trace"], begin=options["begin"], end=options["end"], ties=options["ties"]
        )
        return trace.head(options["limit"]) if options["limit"] else trace


def describe(trace: Trace, options: dict[str, Any], size: int) -> dict[str, Any]:
    return {
        "trace": trace.name,
        "inputs": trace.checksums(),
        "policy": options["policy"],
        "static": options["nodes"] == "static",
        "nodes": size,
        "capacity_gpus": size * trace.gpus_per_node,
        "ties": str(options["ties"]),
        "left_out": trace.left_out,
    }


def table(about: dict[str, Any], figures: Metrics) -> str:
    """One figure a line, right-aligned, with its unit."""
    fair = figures.fairness
    rows = [
        ("jobs", f"{figures.jobs:,}", ""),
        ("average wait", f"{figures.avg_wait_s:,.0f}", "s"),
        ("median wait", f"{figures.p50_wait_s:,.0f}", "s"),
        ("90th percentile", f"{figures.p90_wait_s:,.0f}", "s"),
        ("99th percentile", f"{figures.p99_wait_s:,.0f}", "s"),
        ("average completion", f"{figures.avg_jct_s:,.2f}", "s"),
        ("utilization", f"{100 * figures.utilization:.1f}", "%"),
        ("evictions", f"{figures.evictions:,}", f"({figures.evictions_per_job:.3f} a job)"),
        (
            "lost work",
            f"{figures.lost_gpu_hours:,.1f}",
            f"GPU-hours ({figures.lost_gpu_hours_pct:.2f} %)",
        ),
        ("fairness (Jain)", f"{fair.jain:.3f}", "of the queues' mean slowdowns"),
        (
            "worst queue",
            f"{fair.worst_queue_ratio:.2f}",
            f"x its own static part ({fair.worst_queue})",
        ),
        ("later than there", f"{fair.unfair_pct:.1f}", "% of jobs"),
    ]
    place = "static" if about["static"] else "pooled"
    head = f"{about['trace']}: {about['policy']}, {place}, {about['nodes']} nodes"
    return "\n".join([head, *(f"  {name:<20}{value:>14} {unit}" for name, value, unit in rows)])


def nodes_argument(text: str) -> int | str:
    return text if text == "static" else nodes(text)
