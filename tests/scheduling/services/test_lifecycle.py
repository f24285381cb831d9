"""The one door for states: which moves are legal and what each one books."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduling.models import GpuClass, Outcome, State, Transition, Workload
from scheduling.services.errors import LifecycleError
from scheduling.services.workloads import lifecycle
from tests.scheduling.kube import policy

T0 = datetime(2026, 1, 5, 8, tzinfo=UTC)


def after(minutes: int) -> datetime:
    return T0 + timedelta(minutes=minutes)


@pytest.fixture
def workload(db: None) -> Workload:
    cluster = policy("enforce", "http://127.0.0.1:1", "research")
    work = Workload(
        cluster=cluster, uid="u1", namespace="default", name="w1", gpus=2000, min_members=2,
        max_members=2, submitted_at=T0,
    )  # fmt: skip
    lifecycle.transition(work, State.PENDING, at=T0, first=True, actor="cluster")
    return work


def admit(work: Workload, at: datetime) -> None:
    gpu_class = GpuClass.objects.get()
    lifecycle.transition(
        work, State.ADMITTED, at=at, gpu_class=gpu_class, placement={"n1": 2}, reason="borrows"
    )


def test_whole_life_with_an_eviction_books_what_was_held_and_lost(workload: Workload) -> None:
    admit(workload, after(10))
    lifecycle.transition(workload, State.RUNNING, at=after(11))
    lifecycle.transition(
        workload, State.EVICTED, at=after(20), lost_gpu_s=900.0, reason="reclaimed"
    )
    lifecycle.transition(workload, State.REQUEUED, at=after(21))
    admit(workload, after(30))
    lifecycle.transition(workload, State.RUNNING, at=after(30))
    lifecycle.transition(workload, State.FINISHED, at=after(40), outcome=Outcome.SUCCEEDED)

    kept = Workload.objects.get()
    assert kept.used_gpu_s == 4 * 60 * 21  # With the minute in which it left.
    assert (kept.eviction_count, kept.lost_gpu_s) == (1, 900.0)
    assert (kept.first_started_at, kept.started_at) == (after(11), after(30))
    assert (kept.outcome, kept.finished_at) == (Outcome.SUCCEEDED, after(40))
    assert kept.transitions.count() == 8


def test_evicted_workload_holds_its_gpus_until_requeued(workload: Workload) -> None:
    admit(workload, after(1))
    evicted = lifecycle.transition(workload, State.EVICTED, at=after(2))
    requeued = lifecycle.transition(workload, State.REQUEUED, at=after(3))

    assert (evicted.gpus, requeued.gpus) == (4000, 0)
    assert workload.placement == {}


@pytest.mark.parametrize(
    ("state", "to_state"),
    [
        (State.PENDING, State.RUNNING),
        (State.PENDING, State.EVICTED),
        (State.RUNNING, State.REQUEUED),
        (State.FINISHED, State.PENDING),
    ],
)
def test_illegal_move_is_refused_and_nothing_is_written(
    workload: Workload, state: State, to_state: State
) -> None:
    workload.state = state

    with pytest.raises(LifecycleError, match=f"from {state} to {to_state}"):
        lifecycle.transition(workload, to_state, at=after(1))

    assert Transition.objects.count() == 1


@pytest.mark.parametrize(
    ("state", "to_state", "way"),
    [
        (State.PENDING, State.PENDING, ()),
        (State.PENDING, State.RUNNING, (State.ADMITTED, State.RUNNING)),
        (State.EVICTED, State.ADMITTED, (State.REQUEUED, State.ADMITTED)),
        (State.RUNNING, State.REQUEUED, (State.EVICTED, State.REQUEUED)),
    ],
)
def test_way_between_two_looks_is_the_shortest_legal_one(
    state: State, to_state: State, way: tuple[State, ...]
) -> None:
    assert lifecycle.way(state, to_state) == way


def test_change_of_size_is_charged_from_when_it_was_made(workload: Workload) -> None:
    admit(workload, after(0))
    step = lifecycle.resize(workload, 1, at=after(10))
    ended = lifecycle.step(workload, State.FINISHED, at=after(30))

    assert (step.from_state, step.to_state, step.gpus) == (State.ADMITTED, State.ADMITTED, 2000)
    assert workload.used_gpu_s == 60 * (4 * 10 + 2 * 20)
    assert (ended.gpus, ended.gpu_class) == (0, None)
