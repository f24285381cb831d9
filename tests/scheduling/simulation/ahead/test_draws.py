"""What replays draw: the same for the same jobs, whoever else is there, and no more load than came."""

from datetime import timedelta

import numpy as np
import pytest

from scheduling.simulation.ahead.compare import lived
from scheduling.simulation.ahead.draws import MOVED_S, drawn
from scheduling.simulation.run.jobs import Submission
from tests.scheduling.simulation.ahead.test_forward import NOW, workload, world

HOUR = timedelta(hours=1)
RUN_S = 5400


def jobs(count, *, standing=0):
    begun = [Submission(workload(f"begun-{i}", submitted=NOW), RUN_S) for i in range(standing)]
    came = [
        Submission(workload(f"job-{i}", submitted=NOW + (i + 1) * HOUR), RUN_S)
        for i in range(count)
    ]
    return [*begun, *came]


def by_name(found):
    return {job.workload.name: (job.submitted, job.duration_s) for job in found}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_job_more_at_the_beginning_changes_no_other_draw(seed):
    until = NOW + 40 * HOUR
    few, _ = drawn(jobs(30, standing=2), 2, NOW, until, seed)
    more, _ = drawn(jobs(30, standing=3), 3, NOW, until, seed)
    kept = by_name(more)
    del kept["begun-2"]
    assert by_name(few) == kept


def test_draws_add_no_load():
    ran_s = [
        job.duration_s
        for seed in range(1, 21)
        for job in drawn(jobs(200), 0, NOW, NOW + 300 * HOUR, seed)[0]
    ]
    assert np.mean(ran_s) == pytest.approx(RUN_S, rel=0.02)
    assert np.std(np.log(ran_s)) == pytest.approx(0.25, rel=0.05)


def test_work_that_stood_at_the_beginning_stays_there_and_runs_as_drawn():
    found, order = drawn(jobs(5, standing=3), 3, NOW, NOW + 9 * HOUR, 1)
    assert order[:3] == [0, 1, 2]
    assert {job.submitted for job in found[:3]} == {NOW}
    assert {job.duration_s for job in found[:3]} != {RUN_S}


@pytest.mark.parametrize("seed", [1, 7])
def test_arrivals_are_near_what_came_and_in_order(seed):
    until = NOW + 6 * HOUR
    came = jobs(5)
    found, order = drawn(came, 0, NOW, until, seed)
    moved_s = [
        (job.submitted - came[i].submitted).total_seconds()
        for job, i in zip(found, order, strict=True)
    ]
    assert max(map(abs, moved_s)) <= MOVED_S
    assert [job.submitted for job in found] == sorted(job.submitted for job in found)
    assert all(NOW <= job.submitted <= until for job in found)


def test_what_if_and_capacity_live_the_same_draws():
    """A seed moves arrivals and run times; without one all is as it came."""
    came, until = jobs(6), NOW + 12 * HOUR
    once = lived(world(), came, before=0, until=until)
    again = [lived(world(), came, before=0, until=until, seed=1) for _ in range(2)]
    assert once.submit_s.tolist() == [3600 * (i + 1) for i in range(6)]
    assert again[0].submit_s.tolist() == again[1].submit_s.tolist() != once.submit_s.tolist()
