"""Kubernetes' own scheduler on gangs: pods one by one, so that a gang may hold GPUs while it is not whole.

As in kube-scheduler (``pkg/scheduler/backend/queue``, plugins PrioritySort and NodeResourcesFit): pods go by
priority (equal here), then by when they joined the queue; each takes the node with most free
(least-allocated; lowest index on ties, where Kubernetes draws). Who fits nowhere is parked, and whenever GPUs
are freed all who are parked come back, but not before their back-off of 1 s, doubled at each failure up to
10 s. Every 30 s who has been parked for 5 min comes back too. Nobody is evicted among equals.

Work begins when the last pod of a job runs. A gang that is not whole after ``GIVES_UP_S`` fails (the default
``join_timeout`` of torchrun), lets go, and its Job makes the pods anew after 10 s, doubled each time up to
6 min (Kubernetes, Job, pod back-off failure policy; that it stops after six is left out, else work would be
lost).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scheduling.engine.compile.heap import pop, push
from scheduling.engine.compile.kernel import inner, kernel
from scheduling.engine.compile.structs import Ints
from scheduling.simulation.result import Replay
from scheduling.simulation.traces import Trace

from .costs import Costs
from .queues import NEVER, check_size

FIRST_BACKOFF_S, MOST_BACKOFF_S = 1, 10
PARKED_S, LOOKED_EVERY_S = 300, 30
GIVES_UP_S = 600
FIRST_REMAKE_S, MOST_REMAKE_S = 10, 360


class Pods(NamedTuple):
    """By pod; those of a job stand side by side."""

    job: Ints
    gpus: Ints
    node: Ints  # -1 while it has none
    failures: Ints
    ready: Ints  # second at which its back-off ends
    parked: Ints  # second at which it was parked


class Gangs(NamedTuple):
    """By job."""

    first: Ints  # its first pod
    size: Ints
    seated: Ints  # pods that have a node
    since: Ints  # first pod of this try seated
    again: Ints  # second at which its pods are made anew, NEVER without need
    start: Ints
    end: Ints
    tries: Ints  # gangs that gave up
    held: Ints  # GPU-seconds


class Lines(NamedTuple):
    """Where pods wait: a heap by (joined, pod), who backs off, who is parked in order of parking."""

    active: Ints
    backing: Ints
    parked: Ints
    size: Ints  # [active, backing, parked, pods that ever joined]


def replay_native(trace: Trace, nodes: int, _costs: Costs) -> Replay:
    """All jobs on ``nodes`` nodes; ``evictions`` counts gangs that gave up. Raises TooLargeError."""
    check_size(trace, nodes)
    jobs = len(trace)
    count = np.array([parts(int(g), trace.gpus_per_node) for g in trace.gpus], dtype=np.int64)
    job_of_pod = np.repeat(np.arange(jobs), count)
    total = len(job_of_pod)
    pods = Pods(
        job=job_of_pod,
        gpus=(trace.gpus // count)[job_of_pod],
        node=np.full(total, -1, np.int64),
        failures=np.zeros(total, np.int64),
        ready=np.zeros(total, np.int64),
        parked=np.zeros(total, np.int64),
    )
    gangs = Gangs(
        first=np.concatenate([[0], np.cumsum(count)[:-1]]).astype(np.int64),
        size=count,
        seated=np.zeros(jobs, np.int64),
        since=np.full(jobs, NEVER, np.int64),
        again=np.full(jobs, NEVER, np.int64),
        start=np.full(jobs, -1, np.int64),
        end=np.full(jobs, -1, np.int64),
        tries=np.zeros(jobs, np.int64),
        held=np.zeros(jobs, np.int64),
    )
    active, backing, parked = (np.zeros(total, np.int64) for _ in range(3))
    lines = Lines(active, backing, parked, np.zeros(4, np.int64))
    free = np.full(nodes, trace.gpus_per_node, dtype=np.int64)
    live(trace.submit_s, trace.duration_s, pods, gangs, lines, free)
    return Replay.of(
        trace,
        start_s=gangs.start,
        end_s=gangs.end,
        capacity_gpus=nodes * trace.gpus_per_node,
        evictions=gangs.tries,
        lost_gpu_s=(gangs.held - trace.gpus * trace.duration_s).astype(np.float64),
    )


def parts(gpus: int, per_node: int) -> int:
    """Pods of a job: the fewest equal ones that each fit on a node."""
    return next(n for n in range(-(-gpus // per_node), gpus + 1) if gpus % n == 0)


@kernel
def live(
    submit_s: Ints, duration_s: Ints, pods: Pods, gangs: Gangs, lines: Lines, free: Ints
) -> None:
    """The event loop: who ends or gives up lets go, who arrives or comes back joins, then pods are tried."""
    jobs = len(submit_s)
    ends, running, next_job = np.empty(jobs, dtype=np.int64), 0, 0
    partial, halves = (
        np.empty(jobs, dtype=np.int64),
        0,
    )  # gangs with some pods seated, or to be made anew
    while next_job < jobs or running or halves or lines.size[:3].sum():
        now = next_second(submit_s, next_job, ends, running, partial, halves, pods, gangs, lines)
        freed = False
        while running and ends[0] // jobs == now:
            job = ends[0] % jobs
            running = pop(ends, 0, running)
            gangs.end[job] = now
            let_go(job, now, pods, gangs, free)
            freed = True
        for i in range(halves):
            freed = give_up(partial[i], now, pods, gangs, lines, free) or freed
        come_back(now, freed, pods, lines)
        for i in range(halves):
            if gangs.again[partial[i]] == now:
                gangs.again[partial[i]] = NEVER
                join_all(partial[i], pods, gangs, lines)
        while next_job < jobs and submit_s[next_job] == now:
            join_all(next_job, pods, gangs, lines)
            next_job += 1
        running, halves = try_all(
            now, duration_s, pods, gangs, lines, free, ends, running, partial, halves
        )
        halves = not_whole(partial, halves, gangs)


@inner
def try_all(
    now: int,
    duration_s: Ints,
    pods: Pods,
    gangs: Gangs,
    lines: Lines,
    free: Ints,
    ends: Ints,
    running: int,
    partial: Ints,
    halves: int,
) -> Any:
    """Each pod that waits is tried once; returns how many jobs run and how many gangs are not whole."""
    while lines.size[0]:
        pod = lines.active[0] % len(pods.job)
        lines.size[0] = pop(lines.active, 0, lines.size[0])
        job = pods.job[pod]
        if not seat(pod, now, pods, lines, free):
            continue
        if gangs.seated[job] == 0:
            gangs.since[job] = now
            if gangs.tries[job] == 0 and gangs.size[job] > 1:
                partial[halves] = job
                halves += 1
        gangs.seated[job] += 1
        gangs.held[job] -= pods.gpus[pod] * now
        if gangs.seated[job] == gangs.size[job]:
            gangs.start[job], gangs.since[job] = now, NEVER
            running = push(ends, 0, running, (now + duration_s[job]) * len(duration_s) + job)
    return running, halves


@inner
def not_whole(partial: Ints, halves: int, gangs: Gangs) -> int:
    """Leaves out whose work has begun."""
    kept = 0
    for i in range(halves):
        if gangs.start[partial[i]] < 0:
            partial[kept] = partial[i]
            kept += 1
    return kept


@inner
def next_second(
    submit_s: Ints,
    next_job: int,
    ends: Ints,
    running: int,
    partial: Ints,
    halves: int,
    pods: Pods,
    gangs: Gangs,
    lines: Lines,
) -> int:
    now = submit_s[next_job] if next_job < len(submit_s) else NEVER
    if running:
        now = min(now, ends[0] // len(submit_s))
    for i in range(halves):
        job = partial[i]
        now = min(now, gangs.again[job])
        if gangs.since[job] != NEVER:
            now = min(now, gangs.since[job] + GIVES_UP_S)
    for i in range(lines.size[1]):
        now = min(now, pods.ready[lines.backing[i]])
    if lines.size[2]:
        now = min(now, looked_at(pods.parked[lines.parked[0]]))
    return now


@inner
def looked_at(parked: int) -> int:
    """The second at which who was parked then is brought back without anything being freed."""
    return -(-(parked + PARKED_S) // LOOKED_EVERY_S) * LOOKED_EVERY_S


@inner
def let_go(job: int, now: int, pods: Pods, gangs: Gangs, free: Ints) -> None:
    for pod in range(gangs.first[job], gangs.first[job] + gangs.size[job]):
        if pods.node[pod] >= 0:
            free[pods.node[pod]] += pods.gpus[pod]
            gangs.held[job] += pods.gpus[pod] * now
            pods.node[pod] = -1
    gangs.seated[job] = 0


@inner
def give_up(job: int, now: int, pods: Pods, gangs: Gangs, lines: Lines, free: Ints) -> bool:
    """A gang that has waited too long for its rest lets go; whether it did."""
    if gangs.since[job] == NEVER or now < gangs.since[job] + GIVES_UP_S:
        return False
    let_go(job, now, pods, gangs, free)
    gangs.since[job] = NEVER
    wait_s = FIRST_REMAKE_S << min(gangs.tries[job], 10)
    gangs.again[job] = now + min(wait_s, MOST_REMAKE_S)
    gangs.tries[job] += 1
    for line, place in ((lines.backing, 1), (lines.parked, 2)):
        kept = 0
        for i in range(lines.size[place]):
            if pods.job[line[i]] != job:
                line[kept] = line[i]
                kept += 1
        lines.size[place] = kept
    return True


@inner
def come_back(now: int, freed: bool, pods: Pods, lines: Lines) -> None:
    """Who is parked comes back where GPUs were freed or it has been long, else when its back-off ends."""
    moved = 0
    while moved < lines.size[2]:
        pod = lines.parked[moved]
        if not (freed or looked_at(pods.parked[pod]) <= now):
            break
        lines.backing[lines.size[1]] = pod
        lines.size[1] += 1
        moved += 1
    for i in range(moved, lines.size[2]):
        lines.parked[i - moved] = lines.parked[i]
    lines.size[2] -= moved
    kept = 0
    for i in range(lines.size[1]):
        pod = lines.backing[i]
        if pods.ready[pod] <= now:
            join(pod, pods, lines)
        else:
            lines.backing[kept] = pod
            kept += 1
    lines.size[1] = kept


@inner
def join_all(job: int, pods: Pods, gangs: Gangs, lines: Lines) -> None:
    """New pods, which know of no failure."""
    for pod in range(gangs.first[job], gangs.first[job] + gangs.size[job]):
        pods.failures[pod] = 0
        join(pod, pods, lines)


@inner
def join(pod: int, pods: Pods, lines: Lines) -> None:
    """Behind all who joined before; who comes back together keeps its order."""
    lines.size[3] += 1
    lines.size[0] = push(lines.active, 0, lines.size[0], lines.size[3] * len(pods.job) + pod)


@inner
def seat(pod: int, now: int, pods: Pods, lines: Lines, free: Ints) -> bool:
    """On the node with most free, else parked."""
    node = np.argmax(free)
    if free[node] >= pods.gpus[pod]:
        free[node] -= pods.gpus[pod]
        pods.node[pod] = node
        return True
    pods.failures[pod] += 1
    backoff_s = min(FIRST_BACKOFF_S << min(pods.failures[pod] - 1, 10), MOST_BACKOFF_S)
    pods.ready[pod], pods.parked[pod] = now + backoff_s, now
    lines.parked[lines.size[2]] = pod
    lines.size[2] += 1
    return False
