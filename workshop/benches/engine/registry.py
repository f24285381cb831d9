"""The benchmarks by name: what each runs and the numbers it reports."""

from __future__ import annotations

import os
import platform
import resource
import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from scheduling.engine import MILLI, Frame, codes
from scheduling.engine.model import Sharing, Topology
from scheduling.simulation.traces import Trace
from scheduling.simulation.traces.model import checksum
from workshop.benches.engine.dividing import SEED, division_ms, organisation
from workshop.benches.engine.durations import bench_duration
from workshop.benches.engine.fragmentation import Run, frame_of, place_all
from workshop.benches.engine.huge import EIGHT, HUGE, measure_huge, of_one
from workshop.benches.engine.large import TRAINING, LargeLoad, figures, measure_large
from workshop.benches.engine.learned_times import bench_learned_policy
from workshop.benches.engine.lp import shares_by_lp
from workshop.benches.engine.moving import bounds_pct, with_moves
from workshop.benches.engine.openb import (
    LISTS,
    NODES,
    OpenbNode,
    OpenbPod,
    find_list,
    read_nodes,
    read_pods,
)
from workshop.benches.engine.outcomes import Outcome, Progress
from workshop.benches.engine.reclaim import reclaim_large_job
from workshop.benches.engine.together import HOSTS, placed, read_hosts
from workshop.compare.replays import POLICIES, WEIR, measure, replay
from workshop.compare.sharing_lives import (
    LIVES,
    SHARINGS,
    fairness_figures,
    live_all,
    months,
    wait_figures,
)
from workshop.rivals.queues import Rival
from workshop.simulator.replay import SHIPPED, lived_replay
from workshop.simulator.ties import BUSY_FROM, BUSY_TO, Ties, read_published

OPENB_SEEDS = range(42, 52)
FGD_PUBLISHED_PCT = {
    "default": 95.23, "multigpu20": 95.53, "gpuspec20": 94.66, "gpushare40": 93.96, "gpushare60": 91.26,
    "cpu050": 95.00, "cpu100": 95.21, "cpu200": 94.82,
}  # fmt: skip
"""Mean of ten seeds at 100 % of arrivals, hkust-adsl/kubernetes-scheduler-simulator."""

Bench = Callable[[Path, Progress], Outcome]
"""Takes the folder of traces and whom to tell how far it is."""


def run(name: str, bench: Bench, traces: Path, progress: Progress) -> dict[str, Any]:
    """The report of ``bench`` as one JSON object. Raises TraceError."""
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    outcome = bench(traces, progress)
    return {
        "bench": name,
        "inputs": outcome.inputs,
        "seeds": outcome.seeds,
        "cpu_s": round(time.process_time() - cpu_s, 3),
        "wall_s": round(time.perf_counter() - wall_s, 3),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "machine": machine(),
        "measured": outcome.measured,
        "notes": outcome.notes,
    }


def machine() -> dict[str, Any]:
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
    }


def cpu_model() -> str:
    """Linux names it in /proc/cpuinfo; elsewhere the platform's word has to do."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def busy_months(traces: Path, ties: Ties = Ties.PUBLISHED) -> Trace:
    """The two months of Philly that published comparisons replay."""
    return read_published(traces / "philly", begin=BUSY_FROM, end=BUSY_TO, ties=ties)


def average_jct(trace: Trace, policy: str, nodes: int | None) -> float:
    return round(float(replay(trace, policy, nodes).jct_s.mean()), 2)


def bench_replay(traces: Path, progress: Progress) -> Outcome:
    """Exactness of the rivals on static clusters, and jobs per CPU-second of the shipped engine."""
    trace = busy_months(traces)
    in_file_order = busy_months(traces, Ties.FILE)
    progress(f"{len(trace)} jobs through the shipped engine, 72 pooled nodes")
    ours = engine_rate(trace, 72)
    return Outcome(
        measured={
            "fifo_avg_jct_s": average_jct(trace, Rival.FIFO, None),
            "sjf_avg_jct_s": average_jct(trace, Rival.SJF, None),
            "fifo_skip_avg_jct_s": average_jct(trace, Rival.FIFO_SKIP, None),
            "sjf_skip_avg_jct_s": average_jct(trace, Rival.SJF_SKIP, None),
            "fifo_pooled91_avg_jct_s": average_jct(trace, Rival.FIFO, 91),
            "fifo_file_order_avg_jct_s": average_jct(in_file_order, Rival.FIFO, None),
            **ours,
        },
        inputs=trace.checksums(),
        notes=[
            "jobs_per_cpu_s: a plan at every event while anybody waits, but for arrivals that wait as "
            "another of their kind and user does; all that the engine decides and a ledger of it, without "
            "reading the trace and without compiling (a short run before loads the kernels)"
        ],
    )


def engine_rate(trace: Trace, nodes: int) -> dict[str, float]:
    """Jobs per CPU-second of the shipped engine, what its ledger holds, and how the jobs fared."""
    SHIPPED.live(trace.head(200), nodes)
    began_s = time.process_time()
    life = SHIPPED.live(trace, nodes)
    spent_s = time.process_time() - began_s
    ours = lived_replay(trace, life, nodes * trace.gpus_per_node)
    done = life.ledger.action[: life.ledger.used[0]]
    return {
        "jobs_per_cpu_s": round(len(trace) / spent_s, 1),
        "replay_cpu_s": round(spent_s, 3),
        "plans": life.plans,
        "ledger_acts": len(done),
        "ledger_starts": int((done == codes.ADMIT).sum()),
        "ledger_evictions": int((done == codes.EVICT).sum()),
        f"pooled{nodes}_avg_wait_s": round(float(ours.wait_s.mean()), 2),
        f"pooled{nodes}_p99_wait_s": round(float(np.percentile(ours.wait_s, 99)), 2),
        f"pooled{nodes}_evictions_per_job": round(float(ours.evictions.mean()), 4),
    }


def bench_jct_philly(traces: Path, progress: Progress) -> Outcome:
    """Waits and completion times, pooled on 72 and 64 nodes and on the static 91: the engine's three policies
    of sharing as means of several lives, rivals on the trace.
    """
    trace = busy_months(traces)
    outcome = Outcome(inputs=trace.checksums(), seeds=list(range(LIVES)))
    for (sharing, prefixes), nodes in product(SHARINGS.items(), (72, 64)):
        lived = live_all(trace, sharing, nodes, LIVES, progress)
        for prefix in prefixes:
            outcome.measured |= wait_figures(lived, f"{prefix}pooled{nodes}_")
            outcome.measured |= wait_figures(lived[:1], f"trace_{prefix}pooled{nodes}_")
    outcome.measured["static91_avg_jct_s"] = average_jct(trace, WEIR, None)
    for policy in POLICIES:
        if policy != WEIR:
            progress(policy)
            outcome.measured |= jct_figures(trace, policy, policy.replace("-", "_") + "_")
    outcome.notes += [LIVES_NOTE]
    return outcome


LIVES_NOTE = (
    "means of five lives, trace_* the trace itself, the others with 1 to 5 s more on one run time in a "
    "hundred; run times are not known to the engine"
)


def bench_fairness_philly(traces: Path, progress: Progress) -> Outcome:
    """What pooling costs whom: against each queue alone on its static part, 72 pooled nodes."""
    trace = busy_months(traces)
    outcome = Outcome(inputs=trace.checksums(), seeds=list(range(LIVES)))
    ways = {Sharing.PROMISE: ("", "default_"), Sharing.FAIR_SHARE: ("fair_share_",)}
    for sharing, prefixes in ways.items():
        lived = live_all(trace, sharing, 72, LIVES, progress)
        for prefix in prefixes:
            outcome.measured |= fairness_figures([life.figures() for life in lived], prefix)
            outcome.measured |= fairness_figures([lived[0].figures()], f"{prefix}trace_")
            outcome.measured |= months(lived, trace, prefix)
    for rival in (Rival.FIFO_SKIP, Rival.SJF_SKIP):
        progress(rival)
        found = measure(trace, replay(trace, rival, 72))
        outcome.measured |= fairness_figures([found], rival.replace("-", "_") + "_")
    outcome.notes += [
        LIVES_NOTE,
        "chosen_on_* is submitted in October, on which parameters were chosen, judged_on_* in November",
    ]
    return outcome


def jct_figures(trace: Trace, policy: str, prefix: str) -> dict[str, float]:
    """The names of ``jct-philly`` for one policy; static is each virtual cluster on its own nodes."""
    figures: dict[str, float] = {}
    for nodes in (72, 64):
        pooled = measure(trace, replay(trace, policy, nodes))
        figures |= {
            f"{prefix}pooled{nodes}_avg_wait_s": round(pooled.avg_wait_s, 2),
            f"{prefix}pooled{nodes}_p99_wait_s": round(pooled.p99_wait_s, 2),
            f"{prefix}pooled{nodes}_avg_jct_s": round(pooled.avg_jct_s, 2),
        }
    return figures | {f"{prefix}static91_avg_jct_s": average_jct(trace, policy, None)}


def bench_reclaim(_traces: Path, progress: Progress) -> Outcome:
    """A gang that takes a tenth of a full cluster back from single-GPU jobs."""
    measured: dict[str, float] = {}
    for nodes in (1_000, 10_000):
        progress(f"{nodes} nodes")
        found = reclaim_large_job(nodes)
        measured |= {
            f"s_{nodes}": round(found.cpu_s, 4),
            f"evictions_{nodes}": found.evictions,
            f"minimum_{nodes}": found.minimum,
            f"promised_members_{nodes}": found.promised,
        }
    return Outcome(measured, notes=["s_*: CPU seconds of one whole cycle, the snapshot in arrays"])


def bench_topology(traces: Path, progress: Progress) -> Outcome:
    """Switches that gangs span on a cluster whose topology has three levels of its own names."""
    hosts, measured = read_hosts(traces / HOSTS), dict[str, float]()
    placed(hosts, Topology(), SEED)  # loads the kernels
    wishes = {
        "without": Topology(),
        "preferred": Topology(preferred="ASW"),
        "inside_pod": Topology("PSW", "ASW"),
        "required": Topology("ASW"),
    }
    cases = [(name, wish, "") for name, wish in wishes.items()]
    cases += [(f"segments_{rule}", Topology("PSW"), rule) for rule in ("required", "preferred")]
    for name, wish, segments in cases:
        progress(name)
        found = placed(hosts, wish, SEED, segments)
        measured |= {
            f"{name}_cpu_s": round(found.cpu_s, 4),
            f"{name}_started": found.started,
            f"{name}_switches": round(found.switches, 3),
            f"{name}_outside": found.outside,
            f"{name}_segmented": found.segmented,
        }
    return Outcome(
        measured,
        inputs={HOSTS.name: checksum(traces / HOSTS)},
        seeds=[SEED],
        notes=[
            "*_switches: mean by gang; *_outside: gangs that left the domain that they require;"
            " *_segmented: gangs whose every 4 hosts (2, 3) lie below one switch"
        ],
    )


def bench_division(_traces: Path, progress: Progress) -> Outcome:
    """One division of 1,000 and of 10,000 leaves, and how far it lies from linear programmes."""
    measured: dict[str, float] = {}
    for leaves in (1_000, 10_000):
        progress(f"{leaves} leaves")
        frame = organisation(leaves, 100_000)
        measured[f"ms_{leaves}"] = round(division_ms(frame), 3)
        if leaves == 1_000:
            progress("linear programmes for the same organisation")
            measured["max_abs_error_vs_lp"] = largest_error(frame)
    return Outcome(
        measured,
        seeds=[SEED],
        notes=[
            "ms_*: CPU milliseconds, the median of 21; demand is summed from 100,000 workloads each time",
            "max_abs_error_vs_lp: GPUs, over all queues and classes of the 1,000 leaves",
        ],
    )


def largest_error(frame: Frame) -> float:
    """Largest difference, in GPUs, between the frame's division and the linear programmes'."""
    fair = frame.buffers.division.fair
    exact = (shares_by_lp(frame, c) for c in range(fair.shape[0]))
    return max(
        abs(float(Fraction(float(fair[c, q])) - share)) / MILLI
        for c, shares in enumerate(exact)
        for q, share in enumerate(shares)
    )


def bench_cycle(_traces: Path, progress: Progress) -> Outcome:
    """One cycle of 10,000 nodes, 1,000 leaves and 120,000 workloads; what would start one of them."""
    progress("job sizes as in Philly")
    measured = figures(measure_large(seed=SEED))
    progress("larger jobs")
    larger = figures(measure_large(LargeLoad(odds=TRAINING), SEED))
    return Outcome(
        measured | {f"larger_{name}": value for name, value in larger.items()},
        seeds=[SEED],
        notes=[
            "CPU seconds; scratch_s: the frame's tables laid out, division, placements, reasons",
            "larger_*: the same with 3.8 GPUs a job on average, where 20,000 running fill the cluster",
        ],
    )


def bench_cycle_huge(_traces: Path, progress: Progress) -> Outcome:
    """One cycle of 50,000 nodes, 5,000 leaves and 1,025,000 workloads, by one planner and by several."""
    outcome = measure_huge(HUGE, progress)
    progress("the same with 8 GPUs a node, 400,000 in all")
    larger = of_one(measure_large(EIGHT, SEED))
    outcome.measured |= {f"eight_{name}": value for name, value in larger.items()}
    outcome.notes.append("eight_*: one planner, 8 GPUs a node and work as in bench cycle")
    return outcome


def bench_openb(traces: Path, progress: Progress) -> Outcome:
    """Allocated share of GPUs on Alibaba's trace by FGD's protocol, nodes renamed at every placement; on the
    default list also with moves.
    """
    folder = traces / "openb"
    nodes = read_nodes(folder / NODES)
    outcome = Outcome(inputs={NODES: checksum(folder / NODES)}, seeds=list(OPENB_SEEDS))
    cpu_s = []
    for name in LISTS:
        file = find_list(folder, name)
        outcome.inputs[file.name] = checksum(file)
        runs, spent_s = openb_runs(nodes, read_pods(file))
        cpu_s.append(spent_s)
        mean = float(np.mean([run.allocated_pct for run in runs]))
        outcome.measured[f"{name}_allocated_pct"] = round(mean, 3)
        progress(f"{name} {mean:.2f} (FGD published {FGD_PUBLISHED_PCT[name]})")
        if name == "default":
            progress("the same with moves")
            outcome.measured |= moved_figures(nodes, runs)
    outcome.measured["run_cpu_s"] = round(float(np.max(cpu_s)), 3)
    outcome.notes += [
        "run_cpu_s: mean of one list's runs, the slowest list; kernels are loaded before",
        "default_moved_1pct_*: at most one move for a hundred arrivals, by the engine's consolidation",
        "default_bound_pct: no placement passes it; default_kept_bound_pct: nor one that keeps who came "
        "before the first refusal, with any number of moves (linear programmes without CPUs, memory and "
        "nodes)",
    ]
    return outcome


def openb_runs(nodes: list[OpenbNode], pods: list[OpenbPod]) -> tuple[list[Run], float]:
    """A run for each seed, and the CPU seconds that one takes."""
    frame = frame_of(nodes, pods)
    place_all(frame, pods, 0)
    began_s = time.process_time()
    runs = [place_all(frame, pods, seed) for seed in OPENB_SEEDS]
    return runs, (time.process_time() - began_s) / len(runs)


def moved_figures(nodes: list[OpenbNode], runs: list[Run]) -> dict[str, float]:
    """The runs again with moves, means of the seeds: allocated, moved, and what nobody can pass."""
    ends = [
        with_moves(nodes, run, len(run.pods) // 100, seed)
        for run, seed in zip(runs, OPENB_SEEDS, strict=True)
    ]
    free, bound = np.mean([bounds_pct(run, sum(n.gpus for n in nodes)) for run in runs], axis=0)
    return {
        "default_moved_1pct_allocated_pct": round(
            float(np.mean([end.allocated_pct() for end in ends])), 3
        ),
        "default_moved_1pct_moves": round(float(np.mean([end.moves for end in ends])), 1),
        "default_bound_pct": round(float(free), 3),
        "default_kept_bound_pct": round(float(bound), 3),
    }


BENCHES: Mapping[str, Bench] = {
    "replay": bench_replay,
    "jct-philly": bench_jct_philly,
    "fairness-philly": bench_fairness_philly,
    "reclaim": bench_reclaim,
    "topology": bench_topology,
    "division": bench_division,
    "cycle": bench_cycle,
    "cycle-huge": bench_cycle_huge,
    "openb": bench_openb,
    "duration": bench_duration,
    "learned-policy": bench_learned_policy,
}
