"""The division: its steps, linear programmes as oracle, what limits and graces do to it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from scheduling.engine import (
    Action,
    GpuClass,
    Node,
    Phase,
    Policy,
    Queue,
    Quota,
    Reason,
    Snapshot,
    StepKind,
    Workload,
    divide,
    encode,
    plan,
    plan_frame,
)
from scheduling.engine.model import LoweredQuota
from tests.scheduling.engine.evolve import apply, held, let_leave
from tests.scheduling.engine.worlds import CLASSES, NOW, PRIORITIES, organisations, worlds
from workshop.benches.engine.lp import shares_by_lp


@given(worlds())
def test_steps_sum_to_the_share(world: Snapshot) -> None:
    for by_class in divide(world).values():
        for share in by_class.values():
            if share.steps:
                total = sum(step.amount for step in share.steps)
                assert total / 1000 == pytest.approx(share.fair_share / 1000, abs=1e-9)


@given(organisations())
def test_spare_steps_tell_weights_that_sum_to_one_a_tier(snapshot: Snapshot) -> None:
    shares = divide(snapshot)
    k = snapshot.policy.history_strength
    for kind in CLASSES:
        total: dict[tuple[str | None, int], float] = {}
        for queue in snapshot.queues:
            for step in shares[queue.name][kind].steps:
                if step.kind in (StepKind.SPARE, StepKind.REMAINDER) and step.n:
                    assert step.w == pytest.approx(max(0.0, step.n + k * (step.n - step.u)))
                    place = queue.parent, step.tier
                    total[place] = total.get(place, 0.0) + step.n
        assert all(n <= 1 + 1e-9 for n in total.values())


@given(organisations())
def test_division_equals_a_sequence_of_linear_programmes(snapshot: Snapshot) -> None:
    frame = encode(snapshot)
    plan_frame(frame)
    fair = frame.buffers.division.fair
    for c in range(fair.shape[0]):
        exact = shares_by_lp(frame, c)
        assert fair[c] / 1000 == pytest.approx([float(share) / 1000 for share in exact], abs=1e-9)


@given(worlds(), st.data())
def test_lowering_a_quota_evicts_nobody_whom_the_former_protects(
    world: Snapshot, data: st.DataObject
) -> None:
    """Law 11: before the grace ends, a reclaim leaves every leaf at least its former share, but for one
    gang that lies across it.
    """
    settled = world
    for _ in range(3):
        settled = let_leave(apply(settled, plan(settled)))
    lowered = [q for q in settled.queues if q.quotas and data.draw(st.booleans())]
    assume(lowered)
    until = settled.now + timedelta(hours=1)
    after = replace(
        settled, queues=tuple(_lowered(q, until) if q in lowered else q for q in settled.queues)
    )
    before, now = divide(settled), divide(after)
    made = plan(after)
    work = {w.name: w for w in after.workloads}
    has = held(after, with_leaving=False)
    for decision in made.decisions:
        if decision.action is not Action.EVICT or decision.reason is not Reason.RECLAIMED:
            continue
        victim = work[decision.workload]
        key = victim.queue, victim.gpu_class or ""
        keeps = max(before[key[0]][key[1]].fair_share, now[key[0]][key[1]].fair_share)
        assert has[key] > keeps - 0.01
        has[key] -= victim.gpus * sum(victim.placement.values())


def _lowered(queue: Queue, until: datetime) -> Queue:
    return replace(
        queue,
        quotas={
            kind: Quota(
                quota.nominal // 2000 * 1000,
                0 if quota.borrowing_limit is not None else None,
                quota.lending_limit,
                quota.weight,
                lowered=LoweredQuota(
                    until, quota.nominal, quota.borrowing_limit, quota.lending_limit, quota.weight
                ),
            )
            for kind, quota in queue.quotas.items()
        },
    )


@given(worlds(), st.integers(0, 3), st.integers(0, 3), st.integers(0, 6))
def test_limits_on_workloads_and_users_hold_in_any_plan(
    world: Snapshot, running: int, each: int, gpus: int
) -> None:
    limited = replace(
        world,
        queues=tuple(
            replace(
                q, max_running=running, max_running_per_user=each, max_gpus_per_user=1000 * gpus
            )
            if i % 2 == 0
            else q
            for i, q in enumerate(world.queues)
        ),
    )
    after = apply(limited, plan(limited))
    parents = {q.name: q.parent for q in limited.queues}
    had, has = _counts(limited, parents), _counts(after, parents)
    for queue in limited.queues[::2]:
        for user in (None, "ann", "bob"):
            count, held_now = has.get((queue.name, user), (0, 0))
            count_before, held_before = had.get((queue.name, user), (0, 0))
            assert count <= max(running if user is None else each, count_before)
            if user is not None:
                assert held_now <= max(1000 * gpus, held_before)


def _counts(
    world: Snapshot, parents: dict[str, str | None]
) -> dict[tuple[str, str | None], tuple[int, int]]:
    """(workloads, milli-GPU) that stay, by queue and user, and by queue for all users."""
    found: dict[tuple[str, str | None], tuple[int, int]] = {}
    for work in world.workloads:
        queue: str | None = work.queue
        while work.phase is Phase.RUNNING and not work.leaving and queue is not None:
            for user in (None, work.user):
                count, gpus = found.get((queue, user), (0, 0))
                more = work.gpus * sum(work.placement.values())
                found[queue, user] = (count + 1, gpus + more)
            queue = parents[queue]
    return found


def test_start_is_charged_before_it_is_measured() -> None:
    """Queues ``a`` and ``b`` have no measured usage; ``a`` started 8 of the 16 GPUs just now."""
    running = Workload(
        "a0", "a", "low", NOW, gpus=8000, gpu_classes=("h100",), phase=Phase.RUNNING,
        started=NOW, placement={"n": 1}, gpu_class="h100",
    )  # fmt: skip
    pending = [
        Workload(f"{q}{i}", q, "low", NOW, gpu_classes=("h100",))
        for q in ("a", "b")
        for i in range(1, 20)
    ]
    world = Snapshot(
        now=NOW,
        gpu_classes=(GpuClass("h100"),),
        nodes=(Node("n", "h100", 16000),),
        queues=(Queue("a"), Queue("b")),
        priority_classes=PRIORITIES,
        workloads=(running, *pending),
        policy=Policy(history_strength=1.0, usage_half_life_s=3600, charge_s=3600),
    )

    burst = divide(world)
    hour_later = divide(replace(world, now=NOW + timedelta(hours=1)))

    # Half of 8 of 16 GPUs is charged: w = .5 + (.5 - .25) of a, .5 + .5 of b.
    assert burst["a"]["h100"].fair_share / 1000 == pytest.approx(16 * 0.75 / 1.75)
    assert hour_later["a"]["h100"].fair_share / 1000 == pytest.approx(8)
