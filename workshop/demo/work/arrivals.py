"""Streams of work for the embedded cluster: recorded traces and the example organisation's own.

A stream is an iterator of arrivals in order of cluster time; each arrival is the Job a person would
have submitted. What only a simulated cluster can know (how long it runs) stands in annotations that
the embedded kubelet reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scheduling.models import MILLI, Cluster, GpuClass, Queue
from scheduling.services.workloads.manifest import build_job_manifest
from scheduling.simulation.run.jobs import Submission
from scheduling.simulation.traces import Trace, TraceError, TraceFault, TraceJob, gang
from workshop.demo.work.uses import notes_of
from workshop.simulator.partition import nominal_gpus, static_nodes
from workshop.simulator.recordings import read_recorded
from workshop.simulator.replay import workload_of

Json = dict[str, Any]
Ints = npt.NDArray[np.int64]

RUN_SECONDS = "weir.dev/run-seconds"
EXIT_CODE = "weir.dev/exit-code"
CHECKPOINT_SECONDS = "weir.dev/checkpoint-seconds"
IMAGE = "registry.example/train:1"
KEEP_FINISHED_S = 3600
"""Finished Jobs leave the cluster after this; the ledger keeps them."""
KEEP_FAILED_S = 25 * 3600
"""Those that failed stay, with their logs, while their owners' page names them: for a day."""
TRACE_CHECKPOINT_S = 1800
DAY_S = 86_400
WEEK, LIVED_DAYS = 7, 14
SPARSE = 0.01


RUN_TIME_LIMIT_S = 7 * 86_400
"""What people of the example organisation set, whose runs end long before."""


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
    """From here on it is lived through."""
    start: datetime
    """From here on it is played."""
    nodes: int
    gpus_per_node: int
    nominal_gpus: Mapping[str, int]
    trace: Trace

    def __len__(self) -> int:
        return len(self.trace)

    @property
    def first(self) -> int:
        """Position of the first job that is played."""
        played_s = (self.start - self.origin).total_seconds()
        return int(np.searchsorted(self.trace.submit_s, played_s))

    def time_of(self, position: int) -> datetime:
        """When the job at ``position`` arrives; the start for the first that is played and for none."""
        if self.first < position < len(self):
            return self.trace.submitted_at(position)
        return self.start

    def past(self, gpu_class: str, priority_class: str) -> Iterator[Submission]:
        """The jobs before the start, to be lived through on ``gpu_class``."""
        for position in range(self.first):
            job = self.trace[position]
            work = replace(
                workload_of(self.trace, job, self.nodes),
                user=_named(job.queue, job.user)[1],
                priority_class=priority_class,
                gpu_classes=(gpu_class,),
            )
            yield Submission(work, job.duration_s, TRACE_CHECKPOINT_S)

    def people(self) -> list[tuple[str, str]]:
        """(queue, user) of everybody whose jobs come."""
        trace = self.trace
        pairs = np.unique(np.stack([trace.queue, trace.user]), axis=1).T.tolist()
        return [_named(trace.queues[queue], trace.users[user]) for queue, user in pairs]

    def arrivals(self, cluster: Cluster, start: int) -> Iterator[Arrival]:
        """The jobs from position ``start`` on."""
        queues = {q.name: q for q in cluster.queues.all()}
        classes = list(cluster.gpu_classes.all())
        for position in range(start, len(self.trace)):
            job = self.trace[position]
            pods = gang(job.gpus, self.gpus_per_node, self.nodes)
            manifest = _trace_manifest(job, queues[job.queue], classes, pods)
            at = self.trace.submitted_at(position)
            yield Arrival(position, at, manifest, _named(job.queue, job.user)[1])


def _named(queue: str, user: str) -> tuple[str, str]:
    """Whose job it is; of a recording without users those of a queue are one person's."""
    return queue, user or f"user-{queue}"


def open_trace(path: Path, *, nodes: int | None = None, day: date | None = None) -> TraceStream:
    """The trace at ``path``, played from ``day`` on (UTC; None: from its busiest week on) and lived through
    for up to two weeks before. ``nodes`` None: as many as its queues' own partitions sum to.

    Raises TraceError (a ValueError; one line per fault: file, line, what was expected).
    """
    trace = _from_first_busy_day(read_recorded(path))
    nodes = nodes or sum(static_nodes(trace).values())
    nominal = nominal_gpus(trace, nodes)
    start = _busiest_week(trace) if day is None else _midnight(path, trace, day)
    lived = _from(trace, start - timedelta(days=LIVED_DAYS))
    return TraceStream(
        name=trace.name,
        origin=min(lived.origin, start),
        start=start,
        nodes=nodes,
        gpus_per_node=trace.gpus_per_node,
        nominal_gpus=nominal,
        trace=lived,
    )


def _from_first_busy_day(trace: Trace) -> Trace:
    """Without the sparse days at the start, as recordings often begin with weeks of almost nothing: from the
    first day with a hundredth of the busiest day's jobs."""
    if not len(trace):
        return trace
    day = _days(trace)
    jobs = np.bincount(day)
    first = int(np.argmax(jobs >= jobs.max() * SPARSE))
    return _part(trace, day >= first)


def _days(trace: Trace) -> Ints:
    """The day, counted from that of the origin in UTC, on which each job arrives."""
    midnight_s = trace.origin.timestamp() % DAY_S
    return (trace.submit_s + midnight_s).astype(np.int64) // DAY_S


def _busiest_week(trace: Trace) -> datetime:
    """Midnight before the seven days in which most GPU time is asked for, among those with a past to live
    through; the origin of an empty one."""
    if not len(trace):
        return trace.origin
    day = _days(trace)
    demand = np.bincount(day, weights=np.asarray(trace.gpus) * np.asarray(trace.duration_s))
    weeks = np.convolve(demand, np.ones(WEEK), "valid") if demand.size >= WEEK else demand[:1]
    earliest = min(LIVED_DAYS, weeks.size - 1)
    first = earliest + int(np.argmax(weeks[earliest:]))
    return _day_begin(trace) + timedelta(days=first)


def _day_begin(trace: Trace) -> datetime:
    return trace.origin - timedelta(seconds=trace.origin.timestamp() % DAY_S)


def _midnight(path: Path, trace: Trace, day: date) -> datetime:
    """The beginning of ``day``. Raises TraceError for one on which nothing of the trace happens."""
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    begin = _day_begin(trace)
    last = trace.submitted_at(len(trace) - 1) if len(trace) else trace.origin
    if begin <= start <= last:
        return start
    days = f"a day from {begin.date()} to {last.date()}"
    raise TraceError([TraceFault(str(path), 0, str(day), days)])


def _from(trace: Trace, begin: datetime) -> Trace:
    """What arrives at or after ``begin``."""
    return _part(trace, trace.submit_s >= (begin - trace.origin).total_seconds())


def _part(trace: Trace, which: Any) -> Trace:
    """Those jobs; the origin moves to the first of them."""
    part = trace.take(np.flatnonzero(which))
    if not len(part):
        return part
    shift_s = int(part.submit_s[0])
    return replace(
        part, origin=trace.origin + timedelta(seconds=shift_s), submit_s=part.submit_s - shift_s
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
        run_time_limit_s=RUN_TIME_LIMIT_S,
        checkpoint_interval_s=submission.checkpoint_s,
    )
    run_s = submission.duration_s if left_s is None else left_s
    made = simulated(manifest, run_s=run_s, checkpoint_s=submission.checkpoint_s)
    notes = made["spec"]["template"]["metadata"]["annotations"]
    notes.update(notes_of(name))
    if submission.outcome == "failed":
        notes[EXIT_CODE] = "1"
        made["spec"]["ttlSecondsAfterFinished"] = KEEP_FAILED_S
    return made


def _trace_manifest(job: TraceJob, queue: Queue, classes: list[GpuClass], pods: int) -> Json:
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
