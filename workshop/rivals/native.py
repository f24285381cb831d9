"""Kubernetes' own scheduler on gangs: pods one by one, so that a gang may hold GPUs while it is not whole.

As in kube-scheduler (``pkg/scheduler/backend/queue``, plugins PrioritySort and NodeResourcesFit): pods go by
priority (equal here), then by when they joined the queue; each takes the node with most free
(least-allocated; lowest index on ties, where Kubernetes draws). A pod that fits nowhere is parked, and
whenever GPUs are freed all who are parked come back, but not before their back-off of 1 s, doubled at each
failure up to 10 s. Every 30 s who has been parked for 5 min comes back too. Nobody is evicted among equals.

Work begins when the last pod of a job runs. A gang that is not whole after ``GIVES_UP_S`` fails (the default
``join_timeout`` of torchrun), lets go, and its Job makes the pods anew after 10 s, doubled each time up to
6 min (Kubernetes, Job, pod back-off failure policy; that it stops after six is left out, else work would be
lost).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduling.engine.compile.heap import pop, push
from scheduling.engine.compile.kernel import inner, kernel
from scheduling.engine.compile.structs import Ints
from scheduling.simulation.traces import Trace
from workshop.simulator.replay import check_size
from workshop.simulator.result import Replay

from .costs import USUAL, Costs
from .queues import NEVER
from .running import Work, arrive, await_end, end, new_work, next_arrival, next_end, replayed

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
    """By job, but for ``partial``: those with some pods seated, or to be made anew, ``partials[0]`` of
    them."""

    first: Ints  # its first pod
    size: Ints
    seated: Ints  # pods that have a node
    since: Ints  # first pod of this try seated
    again: Ints  # second at which its pods are made anew, NEVER without need
    partial: Ints
    partials: Ints


class Lines(NamedTuple):
    """Where pods wait: a heap by (joined, pod), who backs off, who is parked in order of parking."""

    active: Ints
    backing: Ints
    parked: Ints
    size: Ints  # [active, backing, parked, pods that ever joined]


class State(NamedTuple):
    """``work.evictions`` counts the gangs that gave up, ``free`` GPUs by node."""

    work: Work
    pods: Pods
    gangs: Gangs
    lines: Lines
    free: Ints


def replay_native(trace: Trace, nodes: int, _costs: Costs) -> Replay:
    """All jobs on ``nodes`` nodes; ``evictions`` counts gangs that gave up. Raises TooLargeError."""
    check_size(trace, nodes)
    state = new_state(trace, np.full(nodes, trace.gpus_per_node, dtype=np.int64))
    live(state, NEVER)
    return replayed(trace, nodes, state.work)


def pods_after(trace: Trace, free: Ints, second: int) -> Pods:
    """What has become of each pod after all that happens until ``second``; ``free`` GPUs by node at the start
    become those that are free then."""
    state = new_state(trace, free)
    live(state, second + 1)
    return state.pods


def new_state(trace: Trace, free: Ints) -> State:
    """Nothing has arrived."""
    jobs = len(trace)
    count = np.array([parts(int(g), trace.gpus_per_node) for g in trace.gpus], dtype=np.int64)
    job_of_pod = np.repeat(np.arange(jobs), count)
    total = len(job_of_pod)
    failures, ready, since_parked = (np.zeros(total, np.int64) for _ in range(3))
    unseated = np.full(total, -1, np.int64)
    pods = Pods(
        job_of_pod, (trace.gpus // count)[job_of_pod], unseated, failures, ready, since_parked
    )
    gangs = Gangs(
        first=np.concatenate([[0], np.cumsum(count)[:-1]]).astype(np.int64),
        size=count,
        seated=np.zeros(jobs, np.int64),
        since=np.full(jobs, NEVER, np.int64),
        again=np.full(jobs, NEVER, np.int64),
        partial=np.zeros(jobs, np.int64),
        partials=np.zeros(1, np.int64),
    )
    active, backing, parked = (np.zeros(total, np.int64) for _ in range(3))
    lines = Lines(active, backing, parked, np.zeros(4, np.int64))
    return State(new_work(trace, USUAL), pods, gangs, lines, free)


def parts(gpus: int, per_node: int) -> int:
    """Pods of a job: the fewest equal ones that each fit on a node."""
    return next(n for n in range(-(-gpus // per_node), gpus + 1) if gpus % n == 0)


@kernel
def live(state: State, until_s: int) -> None:
    """The event loop: who ends or gives up lets go, who arrives or comes back joins, then pods are tried."""
    gangs = state.gangs
    now = next_second(state)
    while now < until_s:
        freed = let_end(now, state)
        for i in range(gangs.partials[0]):
            freed = give_up(gangs.partial[i], now, state) or freed
        come_back(now, freed, state.pods, state.lines)
        let_arrive(now, state)
        while state.lines.size[0]:
            try_next(now, state)
        leave_out_whole(state)
        now = next_second(state)


@inner
def next_second(state: State) -> int:
    """At which anything can change; NEVER once all is over."""
    gangs, lines, pods = state.gangs, state.lines, state.pods
    now = min(next_arrival(state.work), next_end(state.work))
    for i in range(gangs.partials[0]):
        job = gangs.partial[i]
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
def let_end(now: int, state: State) -> bool:
    """Whether anybody has ended."""
    job, any_ended = end(now, state.work), False
    while job >= 0:
        state.work.free_at[job] = -1
        let_go(job, now, state)
        job, any_ended = end(now, state.work), True
    return any_ended


@inner
def let_arrive(now: int, state: State) -> None:
    """Pods that are made anew, then those of new jobs."""
    gangs = state.gangs
    for i in range(gangs.partials[0]):
        if gangs.again[gangs.partial[i]] == now:
            gangs.again[gangs.partial[i]] = NEVER
            join_all(gangs.partial[i], state)
    job = arrive(now, state.work)
    while job >= 0:
        join_all(job, state)
        job = arrive(now, state.work)


@inner
def try_next(now: int, state: State) -> None:
    """The pod that joined first; with the last of its gang its work begins."""
    pods, gangs, lines, work = state.pods, state.gangs, state.lines, state.work
    pod = lines.active[0] % len(pods.job)
    lines.size[0] = pop(lines.active, 0, lines.size[0])
    job = pods.job[pod]
    if not seat(pod, now, state):
        return
    if gangs.seated[job] == 0:
        gangs.since[job] = now
        if work.evictions[job] == 0 and gangs.size[job] > 1:
            gangs.partial[gangs.partials[0]] = job
            gangs.partials[0] += 1
    gangs.seated[job] += 1
    work.gpu_s[job] -= pods.gpus[pod] * now
    if gangs.seated[job] == gangs.size[job]:
        gangs.since[job] = NEVER
        await_end(job, now, now + work.duration_s[job], work)


@inner
def leave_out_whole(state: State) -> None:
    gangs, count = state.gangs, 0
    for i in range(gangs.partials[0]):
        if state.work.first[gangs.partial[i]] < 0:
            gangs.partial[count] = gangs.partial[i]
            count += 1
    gangs.partials[0] = count


@inner
def let_go(job: int, now: int, state: State) -> None:
    pods, gangs = state.pods, state.gangs
    for pod in range(gangs.first[job], gangs.first[job] + gangs.size[job]):
        if pods.node[pod] >= 0:
            state.free[pods.node[pod]] += pods.gpus[pod]
            state.work.gpu_s[job] += pods.gpus[pod] * now
            pods.node[pod] = -1
    gangs.seated[job] = 0


@inner
def give_up(job: int, now: int, state: State) -> bool:
    """A gang that has waited too long for its rest lets go; whether it did."""
    gangs, lines, tries = state.gangs, state.lines, state.work.evictions
    if gangs.since[job] == NEVER or now < gangs.since[job] + GIVES_UP_S:
        return False
    let_go(job, now, state)
    gangs.since[job] = NEVER
    wait_s = FIRST_REMAKE_S << min(tries[job], 10)
    gangs.again[job] = now + min(wait_s, MOST_REMAKE_S)
    tries[job] += 1
    for line, place in ((lines.backing, 1), (lines.parked, 2)):
        count = 0
        for i in range(lines.size[place]):
            if state.pods.job[line[i]] != job:
                line[count] = line[i]
                count += 1
        lines.size[place] = count
    return True


@inner
def come_back(now: int, freed: bool, pods: Pods, lines: Lines) -> None:
    """A parked pod comes back where GPUs were freed or it has been long, else when its back-off ends."""
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
    count = 0
    for i in range(lines.size[1]):
        pod = lines.backing[i]
        if pods.ready[pod] <= now:
            join(pod, pods, lines)
        else:
            lines.backing[count] = pod
            count += 1
    lines.size[1] = count


@inner
def join_all(job: int, state: State) -> None:
    """New pods, which know of no failure."""
    gangs, pods = state.gangs, state.pods
    for pod in range(gangs.first[job], gangs.first[job] + gangs.size[job]):
        pods.failures[pod] = 0
        join(pod, pods, state.lines)


@inner
def join(pod: int, pods: Pods, lines: Lines) -> None:
    """Behind all who joined before; who comes back together keeps its order."""
    lines.size[3] += 1
    lines.size[0] = push(lines.active, 0, lines.size[0], lines.size[3] * len(pods.job) + pod)


@inner
def seat(pod: int, now: int, state: State) -> bool:
    """On the node with most free, else parked."""
    pods, lines, free = state.pods, state.lines, state.free
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
