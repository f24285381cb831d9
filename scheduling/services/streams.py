"""Streams of work for the embedded cluster: recorded traces and the example organisation's own.

A stream is an iterator of arrivals in order of cluster time; each arrival is the Job a person would
have submitted. What only a simulated cluster can know (how long it runs) stands in annotations that
the embedded kubelet reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from scheduling.models import MILLI, Cluster, GpuClass, Queue
from scheduling.services.manifests import build_job_manifest
from scheduling.simulation.jobs import Submission
from scheduling.simulation.partition import nominal_gpus, static_nodes
from scheduling.simulation.traces import Trace, TraceJob, read_trace
from scheduling.simulation.weir import gang

Json = dict[str, Any]

RUN_SECONDS = "weir.dev/run-seconds"
CHECKPOINT_SECONDS = "weir.dev/checkpoint-seconds"
IMAGE = "registry.example/train:1"
KEEP_FINISHED_S = 3600
"""Finished Jobs leave the cluster after this; the ledger keeps them."""
TRACE_CHECKPOINT_S = 1800
DAY_S = 86_400
SPARSE = 0.01


@dataclass(frozen=True, slots=True)
class Arrival:
    """A Job to be created at cluster time ``at`` in the name of ``user``; ``number`` counts from 0."""

    number: int
    at: datetime
    manifest: Json
    user: str


@dataclass(frozen=True, slots=True)
class TraceStream:
    """A recorded trace as a stream over a pool of ``nodes`` machines.

    ``nominal_gpus``: queue -> milli-GPU, the pool in proportion to the queues' own partitions.
    """

    name: str
    origin: datetime
    nodes: int
    gpus_per_node: int
    nominal_gpus: Mapping[str, int]
    trace: Trace

    def __len__(self) -> int:
        return len(self.trace)

    def time_of(self, position: int) -> datetime:
        """When the job at ``position`` arrives; the origin for the first and for none."""
        return self.trace.submitted_at(position) if 0 < position < len(self) else self.origin

    def arrivals(self, cluster: Cluster, start: int) -> Iterator[Arrival]:
        """The jobs from position ``start`` on."""
        queues = {q.name: q for q in cluster.queues.all()}
        classes = list(cluster.gpu_classes.all())
        for position in range(start, len(self.trace)):
            job = self.trace[position]
            manifest = _trace_manifest(job, queues[job.queue], classes, self.gpus_per_node)
            at = self.trace.submitted_at(position)
            yield Arrival(position, at, manifest, job.user or f"user-{job.queue}")


def open_trace(
    path: Path, *, nodes: int | None = None, begin: datetime | None = None
) -> TraceStream:
    """The trace at ``path`` from ``begin`` on. ``nodes`` None: as many as its queues' own partitions
    sum to. ``begin`` None: the first day with a hundredth of the busiest day's jobs, because recordings
    often start with weeks of almost nothing.

    Raises TraceError (a ValueError; one line per fault: file, line, what was expected).
    """
    trace = read_trace(path, begin=begin)
    if begin is None:
        trace = _from_first_busy_day(trace)
    nodes = nodes or sum(static_nodes(trace).values())
    return TraceStream(
        name=trace.name,
        origin=trace.origin,
        nodes=nodes,
        gpus_per_node=trace.gpus_per_node,
        nominal_gpus=nominal_gpus(trace, nodes),
        trace=trace,
    )


def _from_first_busy_day(trace: Trace) -> Trace:
    """Without the sparse days at the start; the origin moves to the first job kept."""
    if not len(trace):
        return trace
    midnight_s = trace.origin.timestamp() % DAY_S
    day = (trace.submit_s + midnight_s).astype(np.int64) // DAY_S
    jobs = np.bincount(day)
    first = int(np.argmax(jobs >= jobs.max() * SPARSE))
    kept = trace.take(np.flatnonzero(day >= first))
    shift_s = int(kept.submit_s[0])
    return replace(
        kept,
        origin=trace.origin + timedelta(seconds=shift_s),
        submit_s=kept.submit_s - shift_s,
    )


def simulated(manifest: Json, *, run_s: float, checkpoint_s: int | None) -> Json:
    """``manifest`` with what the embedded kubelet needs to know; changed in place and returned."""
    spec = manifest["spec"]
    spec["ttlSecondsAfterFinished"] = KEEP_FINISHED_S
    notes = spec["template"].setdefault("metadata", {}).setdefault("annotations", {})
    notes[RUN_SECONDS] = str(max(1, round(run_s)))
    if checkpoint_s:
        notes[CHECKPOINT_SECONDS] = str(checkpoint_s)
    return manifest


def manifest_of(
    submission: Submission,
    name: str,
    queue: Queue,
    classes: Mapping[str, GpuClass],
    *,
    left_s: float | None = None,
) -> Json:
    """The Job of a generated submission; ``left_s`` if part of its run time is done already."""
    work = submission.workload
    manifest = build_job_manifest(
        name=name,
        queue=queue.name,
        namespace=queue.namespace,
        image=IMAGE,
        gpu_classes=[classes[c] for c in work.gpu_classes],
        gpus_per_pod=work.gpus // MILLI,
        pods_min=work.members.min,
        pods_max=work.members.max,
        cpus_per_pod=work.cpus / MILLI,
        memory_gib_per_pod=work.memory_mib / 1024,
        priority_class=work.priority_class,
        checkpoint_interval_s=submission.checkpoint_s,
    )
    run_s = submission.duration_s if left_s is None else left_s
    return simulated(manifest, run_s=run_s, checkpoint_s=submission.checkpoint_s)


def _trace_manifest(job: TraceJob, queue: Queue, classes: list[GpuClass], per_node: int) -> Json:
    pods = gang(job.gpus, per_node)
    manifest = build_job_manifest(
        name=job.name,
        queue=queue.name,
        namespace=queue.namespace,
        image=IMAGE,
        gpu_classes=classes,
        gpus_per_pod=job.gpus // pods,
        pods_min=pods,
        checkpoint_interval_s=TRACE_CHECKPOINT_S,
    )
    return simulated(manifest, run_s=job.duration_s, checkpoint_s=TRACE_CHECKPOINT_S)
