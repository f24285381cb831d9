"""What ``kubectl get jobs,pods -A -o json`` says of work that is over: Jobs, and pods that belong to no Job.

A Job runs from the start of its last pod where its pods are in the file, else from its own start, until it
completed or failed; a pod from its start to the end of its last container. GPUs are what its containers ask
for times its pods. The queue is the label that Weir or Kueue routes by, else the namespace; the user is what
Weir's annotation says. What asks for no GPU, never ran or is not over is left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from scheduling.files import BrokenFileError, read, read_text
from scheduling.simulation.traces import Trace
from scheduling.simulation.traces.lines import FIRST_S, LAST_S, MOST_GPUS, Faults
from scheduling.simulation.traces.model import Ints
from scheduling.simulation.traces.philly import in_window, positions

GPU = "nvidia.com/gpu"
QUEUE_LABELS = ("weir.dev/queue", "kueue.x-k8s.io/queue-name")
USER = "weir.dev/user"
OVER = ("Complete", "Failed")
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """POSIX seconds."""

    submit_s: int
    duration_s: int
    gpus: int
    queue: str
    user: str
    index: int
    limit_s: int


class PathError(ValueError):
    """A field that is not what it should be: where, what was found, what is expected."""

    def __init__(self, path: str, found: object, expected: str) -> None:
        super().__init__(path)
        text = repr(found)
        self.found = f"{path} {text if len(text) <= 60 else text[:60] + '…'}"
        self.expected = expected


def read_kubernetes(
    file: Path, *, begin: datetime | None = None, end: datetime | None = None
) -> Trace:
    """The work in a ``.json`` of a List or of an array of objects, only with ``begin <= created <= end``.

    Submit times count from the first job kept. Raises TraceError with file, line or path of every fault (up
    to 20); then nothing is imported.
    """
    objects = read_objects(file)
    faults = Faults(file)
    started = pod_starts(objects, faults)
    runs, seen = [], 0
    for path, each in objects:
        if each.get("kind") not in ("Job", "Pod") or job_of(each):
            continue
        seen += 1
        try:
            run = run_of(each, path, seen - 1, started)
        except PathError as error:
            faults.add(0, error.found, error.expected)
            continue
        if run:
            runs.append(run)
    faults.raise_if_any()
    return trace_of(file, runs, seen, begin, end)


def trace_of(
    file: Path, runs: list[RecordedRun], seen: int, begin: datetime | None, end: datetime | None
) -> Trace:
    def column(name: str) -> Ints:
        return np.array([getattr(run, name) for run in runs], dtype=np.int64)

    at_s = column("submit_s")
    order = np.argsort(at_s, kind="stable")
    order = order[in_window(at_s, begin, end)[order]]
    first_s = int(at_s[order[0]]) if len(order) else 0
    queues = tuple(sorted({run.queue for run in runs}))
    users = tuple(sorted({run.user for run in runs}))
    return Trace(
        name=file.name.partition(".json")[0],
        origin=datetime.fromtimestamp(first_s, UTC),
        submit_s=at_s[order] - first_s,
        duration_s=column("duration_s")[order],
        gpus=column("gpus")[order],
        queue=positions([run.queue for run in runs], queues)[order],
        user=positions([run.user for run in runs], users)[order],
        index=column("index")[order],
        queues=queues,
        users=users,
        files=(file,),
        left_out=seen - len(order),
        asked_s=column("limit_s")[order],
    )


def read_objects(file: Path) -> list[tuple[str, Object]]:
    """(path, object) of a List's items or an array's. Raises TraceError."""
    faults = Faults(file)
    try:
        whole = read(read_text(str(file)), str(file))
    except BrokenFileError as error:
        fault = error.faults[0]
        faults.fail(fault.line, fault.found, fault.expected)
    items = whole.get("items") if isinstance(whole, dict) else whole
    root = "items" if isinstance(whole, dict) else ""
    if not isinstance(items, list):
        found = f"kind {whole.get('kind')!r}" if isinstance(whole, dict) else type(whole).__name__
        faults.fail(0, found, "a List of objects, as kubectl get -o json prints it, or an array")
    for place, each in enumerate(items):
        if not isinstance(each, dict):
            faults.add(0, f"{root}[{place}] {type(each).__name__}", "an object")
    faults.raise_if_any()
    return [(f"{root}[{place}]", each) for place, each in enumerate(items)]


def pod_starts(objects: list[tuple[str, Object]], faults: Faults) -> dict[str, int]:
    """Namespace and name of a Job -> start of the last of its pods."""
    starts: dict[str, int] = {}
    for path, each in objects:
        job = job_of(each) if each.get("kind") == "Pod" else ""
        if not job:
            continue
        try:
            at_s = instant(each, f"{path}.status.startTime")
        except PathError as error:
            faults.add(0, error.found, error.expected)
            continue
        if at_s is not None:
            starts[job] = max(at_s, starts.get(job, 0))
    return starts


def job_of(each: Object) -> str:
    """Namespace and name of the Job that a pod belongs to; empty for none."""
    meta = each.get("metadata") or {}
    owners = meta.get("ownerReferences") or [] if isinstance(meta, dict) else []
    for owner in owners if isinstance(owners, list) else []:
        if isinstance(owner, dict) and owner.get("kind") == "Job":
            return f"{meta.get('namespace', '')}/{owner.get('name', '')}"
    return ""


def run_of(each: Object, path: str, index: int, started: Mapping[str, int]) -> RecordedRun | None:
    """None for what asks for no GPU, never ran or is not over. Raises PathError."""
    submit_s = instant(each, f"{path}.metadata.creationTimestamp")
    if submit_s is None:
        raise PathError(f"{path}.metadata.creationTimestamp", None, "a time")
    job = each["kind"] == "Job"
    pods = at(each, f"{path}.spec.parallelism", int, 1) if job else 1
    gpus = pods * gpus_of(each, f"{path}.spec.template.spec" if job else f"{path}.spec")
    if gpus > MOST_GPUS:
        raise PathError(f"{path}.spec", gpus, f"at most {MOST_GPUS:,} GPUs")
    meta = each["metadata"]
    name = f"{meta.get('namespace', '')}/{meta.get('name', '')}"
    begin_s = started.get(name) if job else None
    if begin_s is None:
        begin_s = instant(each, f"{path}.status.startTime")
    end_s = (job_end if job else pod_end)(each, path)
    if gpus <= 0 or begin_s is None or end_s is None:
        return None
    if end_s < begin_s:
        raise PathError(f"{path}.status", end_s - begin_s, "an end that is not before the start")
    labels = at(each, f"{path}.metadata.labels", dict) or {}
    notes = at(each, f"{path}.metadata.annotations", dict) or {}
    queue = next((str(labels[key]) for key in QUEUE_LABELS if labels.get(key)), "")
    limit_s = at(each, f"{path}.spec.activeDeadlineSeconds", int, 0)
    return RecordedRun(
        submit_s=submit_s,
        duration_s=max(1, end_s - begin_s),
        gpus=gpus,
        queue=queue or str(meta.get("namespace", "")) or "default",
        user=str(notes.get(USER, "")),
        index=index,
        limit_s=max(0, limit_s),
    )


def gpus_of(each: Object, path: str) -> int:
    """Whole GPUs that the containers of the pod at ``path`` ask for together."""
    total = 0
    for container in at(each, f"{path}.containers", list) or []:
        resources = container.get("resources") if isinstance(container, dict) else None
        for kind in ("requests", "limits"):
            amount = ((resources or {}).get(kind) or {}).get(GPU)
            if amount is not None:
                digits = str(amount)
                if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
                    raise PathError(f"{path} {GPU}", amount, "a whole number of GPUs")
                total += int(digits)
                break
    return total


def job_end(each: Object, path: str) -> int | None:
    """When it completed, or the controller found that it had failed."""
    done_s = instant(each, f"{path}.status.completionTime")
    if done_s is not None:
        return done_s
    conditions = at(each, f"{path}.status.conditions", list) or []
    for place, condition in enumerate(conditions):
        met = isinstance(condition, dict) and condition.get("status") == "True"
        if met and condition.get("type") in OVER:
            where = f"{path}.status.conditions[{place}].lastTransitionTime"
            return parse(condition.get("lastTransitionTime"), where)
    return None


def pod_end(each: Object, path: str) -> int | None:
    """When the last of its containers ended; None while one runs."""
    states = at(each, f"{path}.status.containerStatuses", list) or []
    ends = list(container_ends(states, path))
    return max((end for end in ends if end is not None), default=None) if None not in ends else None


def container_ends(states: list[Any], path: str) -> Iterator[int | None]:
    for place, each in enumerate(states):
        state = each.get("state") if isinstance(each, dict) else None
        over = (state or {}).get("terminated")
        where = f"{path}.status.containerStatuses[{place}].state.terminated.finishedAt"
        yield parse(over.get("finishedAt"), where) if isinstance(over, dict) else None


def at(each: Object, path: str, kind: type, missing: Any = None) -> Any:
    """The value at ``path`` (its first step is ``each``). Raises PathError for another kind."""
    value: Any = each
    for step in path.split(".")[1:]:
        if not isinstance(value, dict):
            raise PathError(path, value, "an object above it")
        value = value.get(step)
        if value is None:
            return missing
    if not isinstance(value, kind) or isinstance(value, bool):
        raise PathError(path, value, f"a value of kind {kind.__name__}")
    return value


def instant(each: Object, path: str) -> int | None:
    """POSIX seconds at ``path``; None where it stands not. Raises PathError."""
    return parse(at(each, path, object), path)


def parse(value: Any, path: str) -> int | None:
    if value is None:
        return None
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        raise PathError(path, value, "a time such as 2026-01-05T10:00:00Z") from None
    at_s = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    if not FIRST_S <= at_s < LAST_S:
        raise PathError(path, value, "a time in the years 1971 to 2199")
    return at_s
