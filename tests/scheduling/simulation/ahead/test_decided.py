"""What a plan leads to, in worlds small enough to be reckoned by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from scheduling.engine import Action, plan
from scheduling.engine import model as m
from scheduling.simulation.ahead.decided import (
    Aftermath,
    Known,
    UnknownRunError,
    live_after,
)
from scheduling.simulation.run.carrying import carried_out
from scheduling.simulation.run.jobs import Submission
from tests.scheduling.engine.test_learned import two
from tests.scheduling.simulation.ahead.test_forward import H100, NOW, workload, world

SHORTER, LONGER = {"expected_rest": -1.0}, {"expected_rest": 1.0}
RUNS = {"first": 7200.0, "second": 60.0}


def after(snapshot, rests, *, plan_of=None, coming=(), ahead_s=86_400):
    known = Known(rests=rests, coming=coming)
    until = snapshot.now + timedelta(seconds=ahead_s)
    return live_after(snapshot, plan(plan_of or snapshot), known, until)


@pytest.mark.parametrize(("order", "waited_s"), [(SHORTER, 60), (LONGER, 7200)])
def test_of_two_who_want_all_gpus_one_waits_as_long_as_the_other_runs(order, waited_s):
    assert after(two({}), RUNS, plan_of=two(order)) == Aftermath(waited_s, 0.0)


def test_swapped_order_costs_the_wait_of_the_shorter_less_that_of_the_longer():
    snapshot = two({})
    decided, would = (after(snapshot, RUNS, plan_of=two(order)) for order in (SHORTER, LONGER))
    assert would.wait_s - decided.wait_s == 7200 - 60


def test_who_has_not_started_by_the_stop_waited_until_then():
    assert after(two({}), RUNS, plan_of=two(LONGER), ahead_s=600).wait_s == 600


def test_what_comes_later_waits_for_what_was_started():
    late = workload("late", submitted=NOW + timedelta(seconds=100))
    snapshot = world(workload("waits"))
    found = after(snapshot, {"waits": 3600.0}, coming=[Submission(late, 50)])
    assert found.wait_s == 3600 - 100


def test_who_runs_ends_when_it_did():
    snapshot = world(workload("runs", runs_for_s=600), workload("waits"))
    assert after(snapshot, {"runs": 300.0, "waits": 10.0}).wait_s == 300


def test_who_waits_and_never_ran_is_left_out():
    snapshot = world(workload("runs", runs_for_s=600), workload("gone"))
    assert after(snapshot, {"runs": 300.0}).wait_s == 0


def test_start_of_whom_no_run_is_known_has_no_aftermath():
    with pytest.raises(UnknownRunError, match="waits"):
        after(world(workload("waits")), {})


def evicting():
    """``old`` has run for 1,000 s of work that is kept nowhere, on a node that ``urgent`` may take."""
    old = workload("old", runs_for_s=1000)
    urgent = replace(workload("urgent"), priority_class="urgent")
    made = world(old, urgent)
    return replace(
        made, priority_classes=(m.PriorityClass("training"), m.PriorityClass("urgent", 9))
    )


def test_victim_does_again_what_was_lost_and_waits_for_whom_it_left():
    snapshot = evicting()
    assert {d.action for d in plan(snapshot).decisions} >= {Action.EVICT}
    found = after(snapshot, {"old": 500.0, "urgent": 200.0})
    assert found.lost_gpu_s == 8 * 1000
    # ``urgent`` waits for the 30 s in which pods leave, ``old`` for those and for the run of ``urgent``.
    assert found.wait_s == 30 + 30 + 200


def test_nothing_planned_changes_nothing():
    snapshot = world(workload("runs", runs_for_s=600))
    assert carried_out(snapshot, plan(snapshot)) == snapshot


def test_admitted_work_holds_what_the_plan_gave_it():
    made = carried_out(world(workload("waits")), plan(world(workload("waits"))))
    (work,) = made.workloads
    assert (work.phase, work.started, work.gpu_class) == (m.Phase.RUNNING, NOW, H100)
    assert work.placement == {"node-1": 1}
