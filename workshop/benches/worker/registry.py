"""Benchmarks of whole processes: the demo's pages before a crowd, and the worker on a real API server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from django.conf import settings

from workshop.benches.engine.outcomes import Outcome, Progress
from workshop.benches.engine.registry import Bench
from workshop.benches.worker.burst import bench_burst
from workshop.benches.worker.first_run import run_first_run
from workshop.benches.worker.foresight import bench_eta, bench_what_if
from workshop.benches.worker.live_eta import bench_live_eta
from workshop.benches.worker.live_loop import bench_live_loop
from workshop.benches.worker.managers import Start, start_reference, start_worker
from workshop.benches.worker.many_clusters import run_many_clusters
from workshop.benches.worker.overview import run_overview
from workshop.benches.worker.pages import run_pages
from workshop.benches.worker.prediction_cost import bench_foreseen
from workshop.benches.worker.record import Record, latency, throughput
from workshop.benches.worker.resting import DEMO, bench_demo
from workshop.benches.worker.stage import play, stage
from workshop.benches.worker.work import BASELINE, LARGE, LIVE, Load

Figures = Callable[[Record, Load], dict[str, float]]

SEEN_BY_CREATOR = (
    "times to admission: from sending the creation to seeing it unsuspended, by the runner's clock"
)

MANAGERS: Mapping[Start, str] = {
    start_worker: "worker_*: the process of Weir; cpu_s and peak_mib: the one that looked on",
    start_reference: "worker_*: a manager that only counts, in Weir's place: what the machine allows any",
}


def run_load(
    load: Load, figures: Figures, folder: Path, progress: Progress, start: Start = start_worker
) -> Outcome:
    """Play ``load`` on a control plane in ``folder`` to the manager that ``start`` starts. Raises
    NoBinariesError and other reasons why none starts."""
    progress(f"{load.jobs} Jobs, {len(load.queue_names)} queues")
    with stage(load, folder, progress, start) as at:
        record = play(load, at, progress)
    notes = [SEEN_BY_CREATOR, MANAGERS[start]]
    return Outcome(figures(record, load), notes=notes)


def _bench(
    load: Load, figures: Figures, _traces: Path, progress: Progress, start: Start = start_worker
) -> Outcome:
    return run_load(load, figures, settings.BASE_DIR / "var" / "bench", progress, start)


SERVICE_BENCHES: Mapping[str, Bench] = {
    "overview": run_overview,
    "first-run": run_first_run,
    "pages": run_pages,
    "many-clusters": run_many_clusters,
    "kueue-baseline": partial(_bench, BASELINE, throughput),
    "kueue-large": partial(_bench, LARGE, throughput),
    "kueue-baseline-reference": partial(_bench, BASELINE, throughput, start=start_reference),
    "kueue-large-reference": partial(_bench, LARGE, throughput, start=start_reference),
    "live": partial(_bench, LIVE, latency),
    "burst": bench_burst,
    "live-loop": bench_live_loop,
    "live-eta": bench_live_eta,
    DEMO: bench_demo,
    "what-if": bench_what_if,
    "eta": bench_eta,
    "foreseen": bench_foreseen,
}
