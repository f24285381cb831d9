"""The last days of the ledger as jobs: what had begun before them goes on with what it had still to do."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from scheduling.models import Eviction, GpuClass, PriorityClass, Queue, State, Transition, Workload
from scheduling.services.ledger.past import LedgerPast, past_of
from tests.factories import NOW, make_cluster, make_workload
from tests.foresight import live_of

pytestmark = pytest.mark.django_db
DAYS = 2
BEGIN = NOW - timedelta(days=DAYS)
GPUS = 4
H = 3600


@pytest.fixture
def queue() -> Queue:
    cluster = make_cluster()
    GpuClass.objects.create(cluster=cluster, name="h100")
    PriorityClass.objects.create(name="training", is_default=True)
    root = Queue.objects.create(cluster=cluster, name=cluster.name)
    return Queue.objects.create(cluster=cluster, parent=root, name="vision")


def work(
    queue: Queue, steps: list[tuple[float, State]], *, lost_h: float = 0, **more: object
) -> Workload:
    """``steps`` are (hours from the window's begin, state); it holds its GPUs while it runs."""
    at = [BEGIN + timedelta(hours=hours) for hours, _ in steps]
    ran_h = sum(
        (after[0] - before[0]) for before, after in pairwise(steps)
        if before[1] is State.RUNNING
    )  # fmt: skip
    started = [when for when, (_, state) in zip(at, steps, strict=True) if state is State.RUNNING]
    row = make_workload(
        queue, gpus=GPUS * 1000, gpu_classes=["h100"], priority_class=PriorityClass.objects.get(),
        submitted_at=at[0], first_started_at=started[0] if started else None,
        started_at=started[-1] if started else None, state=steps[-1][1],
        finished_at=at[-1] if steps[-1][1] is State.FINISHED else None,
        used_gpu_s=ran_h * GPUS * H, lost_gpu_s=lost_h * GPUS * H, **more,
    )  # fmt: skip
    for when, (_, state) in zip(at, steps, strict=True):
        gpus = GPUS * 1000 if state is State.RUNNING else 0
        Transition.objects.create(workload=row, at=when, to_state=state, gpus=gpus)
    return row


def past(queue: Queue) -> LedgerPast:
    return past_of(queue.cluster, days=DAYS, snapshot=replace(live_of(queue.cluster), now=NOW))


def test_begun_work_goes_on_with_what_it_had_to_do_still(queue: Queue) -> None:
    work(queue, [(-5, State.PENDING), (-4, State.RUNNING), (6, State.FINISHED)])
    (job,) = past(queue).submissions
    assert (job.duration_s, job.submitted) == (6 * H, BEGIN)


def test_wait_after_an_eviction_before_the_window_is_no_work_done(queue: Queue) -> None:
    """Two hours of ten done, an hour of them lost, then a day of waiting: nine are left."""
    row = work(
        queue,
        [(-30, State.PENDING), (-28, State.RUNNING), (-26, State.EVICTED), (2, State.RUNNING),
         (11, State.FINISHED)],
        lost_h=1,
    )  # fmt: skip
    Eviction.objects.create(
        workload=row, at=BEGIN - timedelta(hours=26), rule="reclaim", gpus=GPUS * 1000,
        lost_gpu_s=GPUS * H,
    )  # fmt: skip
    (job,) = past(queue).submissions
    assert job.duration_s == 9 * H


def test_begun_work_whose_steps_are_gone_counts_as_if_it_had_run_all_along(queue: Queue) -> None:
    work(queue, [(-5, State.PENDING), (-4, State.RUNNING), (6, State.FINISHED)])
    Transition.objects.all().delete()
    (job,) = past(queue).submissions
    assert job.duration_s == 6 * H


def test_work_that_began_in_the_window_is_lived_as_a_whole(queue: Queue) -> None:
    work(queue, [(1, State.PENDING), (3, State.RUNNING), (8, State.FINISHED)])
    (job,) = past(queue).submissions
    assert (job.duration_s, past(queue).before) == (5 * H, 0)
