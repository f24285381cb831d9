"""Replays a recorded trace under one policy and prints what it did to waits, use and fairness."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scheduling.files.arguments import instant, whole
from scheduling.management.command import FileCommand
from scheduling.simulation.run.jobs import CHECKPOINT_S, RESTART_S
from scheduling.simulation.traces import Trace, TraceError
from workshop.arguments import MOST_NODES, MOST_S, factor
from workshop.compare.failures import REPAIR_H, outages
from workshop.compare.replays import POLICIES, WEIR, measure, replay
from workshop.compare.replicas import lived, means_of
from workshop.rivals.costs import Costs
from workshop.simulator.options import Outage, SimulatorOptions
from workshop.simulator.partition import static_nodes
from workshop.simulator.replay import EngineRun, TooLargeError, node_names
from workshop.simulator.result import Metrics
from workshop.simulator.ties import Ties, read_published

MOST_LIVES = 1_000
FAILING_S = 400 * 86_400
"""Nodes break for so long; the trace and its drain are shorter."""
nodes = whole(1, MOST_NODES)
seconds = whole(1, MOST_S)


class Command(FileCommand):
    help = (
        "Simulates a trace (a .csv or .swf file, packed or not, or a folder with one) and prints "
        "jobs, waits, completion times, utilization, evictions and fairness."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("trace", type=Path, metavar="TRACE")
        parser.add_argument("--policy", choices=POLICIES, default=WEIR)
        _of_the_work(parser)
        _of_the_cluster(parser)
        _of_costs(parser)
        _of_lives(parser)
        parser.add_argument("--json", action="store_true", dest="as_json")

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
            where = None if wanted == "static" else size
            if options["mtbf_h"] and options["policy"] != WEIR:
                raise ValueError(f"--mtbf-h: nodes break under {WEIR} alone; leave it out")
            found = [
                measure(
                    each,
                    replay(
                        each, options["policy"], where, run_of(options, size, costs.seed), costs
                    ),
                    options["warm_up_s"],
                )
                for each, costs in lived(trace, options["lives"], costs_of(options))
            ]
        except (TraceError, TooLargeError, ValueError) as error:
            self.refuse(str(error).splitlines())
        about = describe(trace, options, size) | {"cpu_s": time.process_time() - started_s}
        if options["as_json"]:
            self.stdout.write(json.dumps(about | figures_of(found), indent=2))
            return
        for line in table(about, found).splitlines():
            self.say(line)

    def read(self, options: dict[str, Any]) -> Trace:
        trace = read_published(
            options["trace"], begin=options["begin"], end=options["end"], ties=options["ties"]
        )
        return trace.head(options["limit"]) if options["limit"] else trace


def _of_the_work(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
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
        "--asked-factor",
        type=factor,
        default=1.0,
        help="easy, conservative: requested over real run time, where the trace names none",
    )


def _of_the_cluster(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--nodes", type=nodes_argument, help="pooled nodes, or 'static': each queue alone")
    add(
        "--mtbf-h",
        type=factor,
        help="weir: mean hours between failures of a node, drawn with the seed; none fails if left out",
    )
    add("--repair-h", type=factor, default=REPAIR_H, help="weir: mean hours to repair a node")


def _of_costs(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--cycle-s",
        type=seconds,
        default=0,
        help="weir: seconds between plans; every event if left out",
    )
    add(
        "--checkpoint-s",
        type=seconds,
        help=f"useful run time between checkpoints; if left out {CHECKPOINT_S} for weir, and rivals "
        "save work when they evict it",
    )
    add("--restart-s", type=seconds, default=RESTART_S, help="cost of a resumption")


def _of_lives(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--lives", type=whole(1, MOST_LIVES), default=1, help="means of so many jittered lives")
    add(
        "--warm-up-s",
        type=whole(0, MOST_S),
        default=0,
        help="work submitted in the first so many seconds does not count",
    )
    add("--seed", type=whole(0, 1_000_000_000), default=0, help="of lives, and rivals that draw")


def run_of(options: dict[str, Any], size: int, seed: int) -> EngineRun:
    broken: tuple[Outage, ...] = ()
    if options["mtbf_h"]:
        names = node_names(size)
        times = {"mtbf_h": options["mtbf_h"], "repair_h": options["repair_h"]}
        broken = outages(names, FAILING_S, seed, **times)
    return EngineRun(
        SimulatorOptions(cycle_s=options["cycle_s"], outages=broken),
        CHECKPOINT_S if options["checkpoint_s"] is None else options["checkpoint_s"],
        options["restart_s"],
    )


def costs_of(options: dict[str, Any]) -> Costs:
    return Costs(
        options["checkpoint_s"] or 0, options["restart_s"], options["asked_factor"], options["seed"]
    )


def figures_of(found: list[Metrics]) -> dict[str, Any]:
    """The figures of one life; of several their means, and ``half`` of each mean's 95 % interval."""
    if len(found) == 1:
        return asdict(found[0])
    return means_of(found)


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
        "lives": options["lives"],
        "seed": options["seed"],
    }


def table(about: dict[str, Any], found: list[Metrics]) -> str:
    """One figure a line, right-aligned, with its unit; of several lives the mean and half its interval."""
    figures = means_of(found)
    worst = f"x its own static part ({figures['worst_queue']})"
    rows = [
        ("jobs", "jobs", ",", ""),
        ("average wait", "avg_wait_s", ",.0f", "s"),
        ("median wait", "p50_wait_s", ",.0f", "s"),
        ("90th percentile", "p90_wait_s", ",.0f", "s"),
        ("99th percentile", "p99_wait_s", ",.0f", "s"),
        ("average completion", "avg_jct_s", ",.2f", "s"),
        ("utilization", "utilization", ".3f", "of all GPUs"),
        ("evictions", "evictions", ",.0f", ""),
        ("evictions a job", "evictions_per_job", ".3f", ""),
        ("lost work", "lost_gpu_hours", ",.1f", "GPU-hours"),
        ("lost of all work", "lost_gpu_hours_pct", ".2f", "%"),
        ("fairness (Jain)", "jain", ".3f", "of the queues' mean slowdowns"),
        ("worst queue", "worst_queue_ratio", ".2f", worst),
        ("later than there", "unfair_pct", ".1f", "% of jobs"),
    ]
    place = "static" if about["static"] else "pooled"
    head = (
        f"{about['trace']}: {about['policy']}, {place}, {about['nodes']} nodes, lives: {len(found)}"
    )
    return "\n".join([head, *(row(figures, *each) for each in rows)])


def row(figures: dict[str, Any], title: str, name: str, form: str, unit: str) -> str:
    half = figures["half"].get(name)
    spread = "" if half is None else f" ± {half:{form}}"
    return f"  {title:<20}{figures[name]:>14{form}}{spread} {unit}"


def nodes_argument(text: str) -> int | str:
    return text if text == "static" else nodes(text)
