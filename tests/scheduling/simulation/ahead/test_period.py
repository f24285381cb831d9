"""A past period lived again: draws that pair worlds, and what counts of a life with a warm-up."""

from dataclasses import replace
from datetime import timedelta

import pytest

from scheduling.engine.model import MILLI, Node
from scheduling.simulation.ahead.draws import MOVED_S
from scheduling.simulation.ahead.period import AS_IT_CAME, Period, drawn, live_again
from scheduling.simulation.run.jobs import Submission
from tests.scheduling.simulation.ahead.test_forward import H100, NOW, workload, world

HOUR = timedelta(hours=1)


def period(count=12, run_s=5400, standing=0, warm=2):
    jobs = tuple(
        Submission(workload(f"job-{i}", submitted=NOW + i * HOUR), run_s) for i in range(count)
    )
    judged = tuple(i >= warm for i in range(count))
    return Period(NOW, NOW + warm * HOUR, NOW + count * HOUR, jobs, judged, standing)


def test_no_dice_leave_everything_as_it_came():
    assert drawn(period(), AS_IT_CAME) == period()


@pytest.mark.parametrize("seed", [1, 2, 40])
def test_same_seed_draws_the_same_and_others_differ(seed):
    assert drawn(period(), seed) == drawn(period(), seed)
    assert drawn(period(), seed) != drawn(period(), seed + 1)


@pytest.mark.parametrize("seed", range(1, 9))
def test_draws_stay_near_and_inside_and_judge_the_same_jobs(seed):
    was, has = period(standing=1), drawn(period(standing=1), seed)
    before = {job.workload.name: job for job in was.jobs}
    for job in has.jobs:
        moved_s = (job.submitted - before[job.workload.name].submitted).total_seconds()
        assert abs(moved_s) <= MOVED_S
        assert was.begin <= job.submitted <= was.until
        assert job.duration_s >= 1
    assert [job.submitted for job in has.jobs] == sorted(job.submitted for job in has.jobs)
    judged = {j.workload.name for j, yes in zip(has.jobs, has.judged, strict=True) if yes}
    assert judged == {f"job-{i}" for i in range(2, 12)}
    assert has.jobs[0].submitted == NOW


def test_warm_up_is_lived_and_not_judged():
    found = live_again(world(), period(count=4, run_s=5400))
    assert len(found.lived.queue) == 2
    assert found.lived.wait_s.tolist() == [3600.0, 3600.0]  # the last waits when the period ends


def test_what_is_held_within_the_period_counts_alone():
    """Eight GPUs run without a pause from the first arrival on: both hours that are judged."""
    found = live_again(world(), period(count=4, run_s=5400))
    assert found.held_gpu_s == {("speech", H100): 8 * 7200.0}
    assert found.lived.held_gpu_s == 8 * 7200.0


def test_another_node_shortens_waits_of_the_same_draws():
    one = drawn(period(), 3)
    more = replace(world(), nodes=(*world().nodes, Node("node-2", H100, 8 * MILLI)))
    assert live_again(more, one).lived.wait_s.sum() < live_again(world(), one).lived.wait_s.sum()
