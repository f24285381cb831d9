"""The event loop, compiled: no Python between events, the shipped engine at every plan.

At one second runs end, then jobs arrive, then the engine plans and what it decides is carried out,
exactly as ``simulator`` does it with one object a job. Arrivals that cannot but wait, as another of
their kind does, ask for no plan of their own.
"""

from __future__ import annotations

from typing import Any

from scheduling.engine import codes
from scheduling.engine.compile.heap import pop, push
from scheduling.engine.compile.kernel import inner, kernel, plan_at
from scheduling.engine.compile.structs import Ints
from scheduling.engine.order.refusals import waits_like_another
from scheduling.engine.snapshot.events import (
    HOLDS,
    SLOTS,
    arrive,
    finish,
    forget_promise,
    leave,
    promise,
    requeue,
    resize,
    start,
    take_slot,
)
from scheduling.engine.state.units import GPUS, RUNNING
from scheduling.simulation.loop.outlook import (
    foresee,
    next_virtual_end,
    note_arrival,
    note_end,
    play_before,
    play_on,
)
from scheduling.simulation.run.options import MAX_PLANS_AT_ONCE
from scheduling.simulation.run.usage import count_up, note_held

from .life import NEVER, copy_row

OVER, SHORT, UNSETTLED = 0, 1, 2
"""Why ``live`` returned: nothing is left to come, tables must grow, the engine keeps changing its mind."""


@kernel
def live(
    world: Any, cast: Any, jobs: Any, clock: Any, usage: Any, outlook: Any, entries: Any, ends: Ints,
    job_in: Ints, plan: int, stop: int,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Live until ``stop`` (included). ``cast`` describes the jobs as ``Work``, ``outlook`` is foreseen of
    them, ``ends`` a heap of runs by their end, ``job_in`` the job of each slot, ``plan`` the planner's
    address.

    Returns why it stopped, the time, the entries of the heap and the plans made. After SHORT the caller
    grows what is short and calls again with the same life.
    """
    state = _go_on(world, cast, jobs, clock, usage, outlook, entries, ends, job_in, plan, stop)
    return state, clock.now, clock.ends, clock.plans


@inner
def _go_on(
    world: Any, cast: Any, jobs: Any, clock: Any, usage: Any, outlook: Any, entries: Any, ends: Ints,
    job_in: Ints, plan: int, stop: int,
) -> int:  # fmt: skip
    while True:
        if _is_short(world, jobs, clock, entries, ends):
            return SHORT
        now = min(_next(jobs, clock, ends), next_virtual_end(outlook))
        if now >= NEVER or now > stop:
            clock.now = min(now, stop) if stop < NEVER else clock.now
            return OVER
        clock.now = now
        play_before(outlook, now)
        while clock.ends > 0 and ends[0] // jobs.submit.size == now:
            job = ends[0] % jobs.submit.size
            clock.ends = pop(ends, 0, clock.ends)
            _end(world, jobs, clock, usage, outlook, job)
        while clock.arrived < jobs.submit.size and jobs.submit[clock.arrived] == now:
            if world.pool.left[SLOTS] == 0:
                return SHORT
            _arrive(world, cast, jobs, clock, outlook, job_in)
        _ask_for_plan(clock, play_on(world, jobs, outlook, clock.origin, now))
        if clock.plan_at == now:
            clock.at_once = clock.at_once + 1 if clock.planned == now else 0
            if clock.at_once > MAX_PLANS_AT_ONCE:
                return UNSETTLED
            clock.planned, clock.plan_at = now, NEVER
            count_up(usage, world, clock.origin + now)
            if clock.waiting == 0 and clock.patient:
                continue
            _save(world, jobs, clock, job_in)
            if outlook.on:
                foresee(world, jobs, outlook, clock.origin, now, clock.arrived, job_in)
            plan_at(plan, world, clock.origin + now, True)
            if world.out.pool.size[0] > min(world.pool.left[HOLDS], world.out.pool.node.size):
                clock.plan_at = now
                return SHORT
            clock.plans += 1
            _carry_out(world, jobs, clock, usage, outlook, entries, ends, job_in)


@inner
def _is_short(world: Any, jobs: Any, clock: Any, entries: Any, ends: Ints) -> bool:
    """Whether the acts of one plan might not find room: each of the slots acts at most once."""
    slots = world.work.phase.size
    return entries.used[0] + slots > entries.at.size or clock.ends + slots > ends.size


@inner
def _next(jobs: Any, clock: Any, ends: Ints) -> int:
    now = clock.plan_at
    if clock.arrived < jobs.submit.size:
        now = min(now, jobs.submit[clock.arrived])
    if clock.ends > 0:
        now = min(now, ends[0] // jobs.submit.size)
    return now


@inner
def _ask_for_plan(clock: Any, at: int) -> None:
    clock.plan_at = min(clock.plan_at, max(at, clock.planned + clock.cycle))


@inner
def _arrive(world: Any, cast: Any, jobs: Any, clock: Any, outlook: Any, job_in: Ints) -> None:
    job = clock.arrived
    clock.arrived += 1
    clock.waiting += 1
    w = take_slot(world)
    jobs.slot[job], job_in[w] = w, job
    copy_row(cast, job, world.work, w)
    arrive(world, w)
    note_arrival(outlook, job)
    # Between plans that keep a distance one left out would move those after it.
    asks = clock.cycle > 0 or clock.plans == 0 or outlook.on
    if asks or not waits_like_another(world, w):
        _ask_for_plan(clock, clock.now)


@inner
def _end(world: Any, jobs: Any, clock: Any, usage: Any, outlook: Any, job: int) -> None:
    """A run has done all the work, or an evicted one is gone; nothing if it was evicted in between."""
    if jobs.free_at[job] != clock.now:
        return
    w = jobs.slot[job]
    if world.work.leaving[w]:
        _release(world, jobs, clock, usage, job)
        return
    _stop(world, jobs, clock, usage, job)
    note_end(world, outlook, job, w, jobs.duration[job], clock.now)
    jobs.end[job], jobs.slot[job], jobs.left[job] = clock.now, -1, 0
    finish(world, w)
    _ask_for_plan(clock, clock.now)


@inner
def _stop(world: Any, jobs: Any, clock: Any, usage: Any, job: int) -> None:
    """The run is over."""
    w, work = jobs.slot[job], world.work
    gpus = work.need[GPUS, w] * work.members[w]
    now = clock.origin + clock.now
    note_held(usage, world, work.user[w], work.queue[w], work.gpu_class[w], -gpus, now)
    jobs.gpu_s[job] += gpus * (clock.now - jobs.since[job])
    jobs.free_at[job], jobs.saves[job] = -1, NEVER


@inner
def _release(world: Any, jobs: Any, clock: Any, usage: Any, job: int) -> None:
    """The GPUs of an evicted run are free: it waits again."""
    _stop(world, jobs, clock, usage, job)
    clock.waiting += 1
    requeue(world, jobs.slot[job])
    _ask_for_plan(clock, clock.now)


@inner
def _save(world: Any, jobs: Any, clock: Any, job_in: Ints) -> None:
    """Write down the last checkpoints of what runs: who ran in the plan before, and who started since."""
    ordering = world.ordering
    for k in range(ordering.running.size[0]):
        _save_one(world, jobs, clock, ordering.running.slot[k], job_in)
    for k in range(ordering.changes.running_size[0]):
        _save_one(world, jobs, clock, ordering.changes.running[k], job_in)


@inner
def _save_one(world: Any, jobs: Any, clock: Any, w: int, job_in: Ints) -> None:
    work, job = world.work, job_in[w]
    if work.phase[w] == RUNNING and jobs.saves[job] <= clock.now:
        step = jobs.checkpoint[job]
        done = (clock.now - jobs.warm[job]) // step * step
        work.checkpointed[w] = clock.origin + jobs.warm[job] + done
        jobs.saves[job] = jobs.warm[job] + done + step


@inner
def _carry_out(
    world: Any,
    jobs: Any,
    clock: Any,
    usage: Any,
    outlook: Any,
    entries: Any,
    ends: Ints,
    job_in: Ints,
) -> None:
    """Do what the plan says, in its order; look again when the first of the blocks passes by itself."""
    out, work, alarm = world.out, world.work, float(NEVER)
    for k in range(out.size[0]):
        w = out.order[k]
        job = job_in[w]
        if out.action[w] == codes.ADMIT:
            _note(world, clock, entries, w, job)
            _start(world, jobs, clock, usage, ends, w, job)
        elif out.action[w] == codes.EVICT:
            _note(world, clock, entries, w, job)
            outlook.evicted[0] += 1
            _evict(world, jobs, clock, usage, ends, w, job)
        elif out.action[w] == codes.GROW or out.action[w] == codes.SHRINK:
            _note(world, clock, entries, w, job)
            _resize(world, jobs, clock, usage, ends, w, job)
        elif out.action[w] == codes.MOVE:
            _note(world, clock, entries, w, job)
            _move(world, jobs, clock, ends, w, job)
        elif out.reason[w] == codes.AWAITS_VICTIMS:
            first = out.pool.first[w]
            last = first + out.members[w]
            seats = out.pool.node[first:last], out.pool.device[first:last]
            if out.lapsed[w] >= 0:
                forget_promise(world, w)
            promise(world, w, out.gpu_class[w], seats[0], seats[1])
        else:
            if work.claims[w]:
                forget_promise(world, w)
            if out.until[w] > clock.origin + clock.now:
                alarm = min(alarm, out.until[w] - clock.origin)
    _expect_room(world, jobs, clock, job_in)
    if outlook.on:
        next_due, again = world.ordering.merit.next_due[0], world.candidates.merit.asks_again[0]
        alarm = min(alarm, next_due - clock.origin, again - clock.origin)
    if alarm < NEVER:
        _ask_for_plan(clock, max(clock.now + 1, -int(-alarm // 1)))


@inner
def _expect_room(world: Any, jobs: Any, clock: Any, job_in: Ints) -> None:
    """Write down of each claim when its room is due."""
    out, work, running, now = world.out, world.work, world.ordering.running, clock.now
    for k in range(out.size[0]):
        w, gone_by = out.order[k], -1
        if out.action[w] == codes.ADMIT or out.reason[w] != codes.AWAITS_VICTIMS:
            continue
        for i in range(running.size[0]):
            v = running.slot[i]
            if work.leaving[v] and work.evicted_for[v] == work.tie[w]:
                gone_by = max(gone_by, jobs.free_at[job_in[v]])
        if gone_by >= 0:
            work.room_due[w] = clock.origin + gone_by
        else:
            work.room_due[w] = min(work.room_due[w], clock.origin + now)


@inner
def _note(world: Any, clock: Any, entries: Any, w: int, job: int) -> None:
    at, out = entries.used[0], world.out
    entries.at[at], entries.job[at] = clock.now, job
    entries.action[at], entries.reason[at] = out.action[w], out.reason[w]
    entries.gpus[at] = out.members[w] * world.work.need[GPUS, w]
    entries.lost[at] = out.lost[w]
    entries.used[0] += 1


@inner
def _start(world: Any, jobs: Any, clock: Any, usage: Any, ends: Ints, w: int, job: int) -> None:
    work, now = world.work, clock.now
    again = jobs.first[job] >= 0
    if not again:
        jobs.first[job] = now
    _set_off(world, jobs, clock, ends, w, job, jobs.restart[job] if again else 0)
    gpus, c = work.members[w] * work.need[GPUS, w], work.gpu_class[w]
    note_held(usage, world, work.user[w], work.queue[w], c, gpus, clock.origin + now)
    clock.waiting -= 1


@inner
def _set_off(world: Any, jobs: Any, clock: Any, ends: Ints, w: int, job: int, late_s: int) -> None:
    """A run begins on the seats of the plan, its useful time ``late_s`` later."""
    out, now = world.out, clock.now
    first, members = out.pool.first[w], out.members[w]
    nodes = out.pool.node[first : first + members]
    devices = out.pool.device[first : first + members]
    start(world, w, out.gpu_class[w], nodes, devices, clock.origin + now)
    world.work.taken[w] = 0
    jobs.since[job], jobs.warm[job] = now, now + late_s
    step = jobs.checkpoint[job]
    jobs.saves[job] = jobs.warm[job] + step if step > 0 else NEVER
    _await(jobs, clock, ends, job, jobs.warm[job] + -(-jobs.left[job] // members))


@inner
def _move(world: Any, jobs: Any, clock: Any, ends: Ints, w: int, job: int) -> None:
    """It starts again elsewhere; its former GPUs are free at once for whom it moved."""
    members, now = world.work.members[w], clock.now
    _lose(jobs, now, job, members)
    jobs.gpu_s[job] += world.work.need[GPUS, w] * members * (now - jobs.since[job])
    _set_off(world, jobs, clock, ends, w, job, jobs.restart[job])
    _ask_for_plan(clock, now)


@inner
def _lose(jobs: Any, now: int, job: int, members: int) -> None:
    """What the last checkpoint does not hold has to be done again."""
    step, useful = jobs.checkpoint[job], max(0, now - jobs.warm[job])
    saved = useful // step * step if step > 0 else 0
    jobs.left[job] -= min(jobs.left[job], saved * members)


@inner
def _resize(world: Any, jobs: Any, clock: Any, usage: Any, ends: Ints, w: int, job: int) -> None:
    """It goes on with other members from where it is, which is as good as a checkpoint. Members given
    up are gone at once, and their GPUs free for whom they were wanted.
    """
    out, work, now = world.out, world.work, clock.now
    had, has, one = work.members[w], out.members[w], work.need[GPUS, w]
    jobs.left[job] -= max(0, now - jobs.warm[job]) * had
    jobs.gpu_s[job] += one * had * (now - jobs.since[job])
    jobs.since[job], jobs.warm[job] = now, max(now, jobs.warm[job])
    step = jobs.checkpoint[job]
    jobs.saves[job] = jobs.warm[job] + step if step > 0 else NEVER
    first = out.pool.first[w]
    resize(world, w, out.pool.node[first : first + has], out.pool.device[first : first + has])
    work.checkpointed[w] = clock.origin + now
    c, gpus = work.gpu_class[w], one * (has - had)
    note_held(usage, world, work.user[w], work.queue[w], c, gpus, clock.origin + now)
    _await(jobs, clock, ends, job, jobs.warm[job] + -(-jobs.left[job] // has))
    if out.action[w] == codes.SHRINK:
        _ask_for_plan(clock, now)


@inner
def _await(jobs: Any, clock: Any, ends: Ints, job: int, at: int) -> None:
    jobs.free_at[job] = at
    clock.ends = push(ends, 0, clock.ends, at * jobs.submit.size + job)


@inner
def _evict(world: Any, jobs: Any, clock: Any, usage: Any, ends: Ints, w: int, job: int) -> None:
    """The GPUs stay held while the workload leaves."""
    _lose(jobs, clock.now, job, world.work.members[w])
    jobs.evictions[job] += 1
    most = max(1, world.work.most[w])
    world.work.saved[w] = jobs.duration[job] - jobs.left[job] / most
    rival, work = world.out.rival[w], world.work
    if rival >= 0:
        work.taken[rival] += work.need[GPUS, w] * work.members[w]
    leave(world, w, rival, clock.origin + clock.now)
    if clock.leave == 0:
        _release(world, jobs, clock, usage, job)
        return
    _await(jobs, clock, ends, job, clock.now + clock.leave)
