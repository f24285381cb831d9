"""What differing decisions would have led to: two workloads, all GPUs, times known by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from scheduling import tasks
from scheduling.models import (
    Cycle,
    CycleRecord,
    LearnedDifference,
    LearnedEffect,
    LearnedState,
    Outcome,
    PriorityClass,
    Queue,
    State,
)
from scheduling.services.cycle.record.records import packed
from scheduling.services.learned import effects, shadow, training
from tests.factories import make_cluster, make_workload
from tests.learned import an_order
from tests.scheduling.engine.test_learned import NOW as AT
from tests.scheduling.engine.test_learned import two

pytestmark = pytest.mark.django_db
LONGEST_FIRST = {"expected_rest": 1.0}
LATER = AT + timedelta(days=2)
HOUR = timedelta(hours=1)


@pytest.fixture
def world(monkeypatch):
    """Two days later: ``second`` ran for a minute and ``first`` for two hours after it, as it was decided."""
    cluster = make_cluster()
    monkeypatch.setattr(type(cluster), "now", lambda _: LATER)
    PriorityClass.objects.get_or_create(name="train")
    queue = Queue.objects.create(cluster=cluster, name="a")
    ran(queue, "second", AT - HOUR, AT, 60)
    ran(queue, "first", AT - 5 * HOUR, AT + timedelta(seconds=60), 7200)
    order = an_order(cluster, LearnedState.SHADOW, weights=LONGEST_FIRST)
    return cluster, queue, order


def ran(queue, name, submitted, started, run_s, **more):
    end = started + timedelta(seconds=run_s)
    fields = {
        "name": name, "namespace": "ml", "gpus": 8000, "gpu_classes": ["h100"],
        "priority_class": PriorityClass.objects.get(name="train"), "submitted_at": submitted,
        "first_started_at": started, "started_at": started, "finished_at": end,
        "state": State.FINISHED, "outcome": Outcome.SUCCEEDED, "used_gpu_s": 8.0 * run_s,
    }  # fmt: skip
    return make_workload(queue, **fields | more)


def kept(cluster, number=7, at=AT):
    snapshot = replace(two({}), now=at)
    works = tuple(replace(work, name=f"ml/{work.name}") for work in snapshot.workloads)
    cycle = Cycle.objects.create(cluster=cluster, number=number, at=at)
    record = CycleRecord.objects.create(
        cycle=cycle, snapshot=packed(replace(snapshot, workloads=works))
    )
    shadow.watch(cluster)
    return record


def test_swapped_order_waits_for_the_longer_less_the_shorter(world):
    cluster, _, order = world
    kept(cluster)
    assert effects.replay(cluster) == 1
    one = LearnedEffect.objects.get(order=order)
    assert (one.number, one.wait_s, one.lost_gpu_s) == (7, 7200 - 60, 0)
    assert (one.at, one.until, one.workloads) == (AT, AT + effects.MOST, 2)


def test_effect_that_every_repeat_agrees_on_is_told_as_worse(world):
    cluster, _, order = world
    kept(cluster)
    effects.replay(cluster)
    one = LearnedEffect.objects.get(order=order)
    assert one.least_s <= one.wait_s <= one.most_s
    assert effects.verdict(one) == "worse"


def test_who_came_later_waits_in_both_lives(world):
    """At 100 s a third comes: as decided it waits for the end of ``first`` at 7,260 s, else as long, and
    ``second`` before it or behind."""
    cluster, queue, order = world
    ran(queue, "third", AT + timedelta(seconds=100), AT + timedelta(seconds=7260), 600)
    kept(cluster)
    effects.replay(cluster)
    one = LearnedEffect.objects.get(order=order)
    assert one.workloads == 3
    # As decided: first 60, third 7260 - 100. Else ``second`` and ``third`` follow at 7200, shorter first.
    assert one.wait_s in {7200 + 7260 - 100 - 60 - 7160, 7800 + 7200 - 100 - 60 - 7160}


def test_start_of_whom_nobody_knows_the_run_is_not_replayed(world):
    cluster, queue, order = world
    queue.workloads.filter(name="first").update(
        first_started_at=None, outcome=Outcome.CANCELLED, used_gpu_s=0
    )
    kept(cluster)
    effects.replay(cluster)
    one = LearnedEffect.objects.get(order=order)
    assert (one.wait_s, one.why_not) == (None, "ml/first never ran: nobody knows for how long.")


def test_cycle_whose_snapshot_is_gone_says_so_and_is_not_looked_at_again(world):
    cluster, _, order = world
    kept(cluster).delete()
    assert [effects.replay(cluster), effects.replay(cluster)] == [1, 0]
    assert LearnedEffect.objects.get(order=order).why_not == effects.NOT_KEPT


def test_newest_is_first_and_a_pass_is_bounded(world, monkeypatch):
    cluster, _, _ = world
    kept(cluster, 7)
    kept(cluster, 8, AT + HOUR)
    monkeypatch.setattr(effects, "MOST_A_PASS", 1)
    assert effects.replay(cluster) == 1
    assert LearnedEffect.objects.get().number == 8


def test_pass_ends_when_its_time_is_spent(world, monkeypatch):
    cluster, _, _ = world
    kept(cluster, 7)
    kept(cluster, 8, AT + HOUR)
    monkeypatch.setattr(effects, "BUDGET_S", 0.0)
    assert effects.replay(cluster) == 0


@pytest.mark.parametrize(
    ("passed", "lived", "is_due"),
    [
        (timedelta(minutes=59), None, False),
        (HOUR, None, True),
        (timedelta(minutes=119), HOUR, False),
        (2 * HOUR, HOUR, True),
        (23 * HOUR, 13 * HOUR, False),
        (24 * HOUR, 13 * HOUR, True),
        (48 * HOUR, 24 * HOUR, False),
    ],
)
def test_difference_is_due(world, monkeypatch, passed, lived, is_due):
    cluster, _, order = world
    kept(cluster)
    if lived is not None:
        LearnedEffect.objects.create(order=order, number=7, at=AT, until=AT + lived, wait_s=0)
    assert bool(list(effects.due(order, AT + passed))) is is_due


def test_longer_life_takes_the_place_of_the_shorter(world):
    cluster, _, order = world
    kept(cluster)
    LearnedEffect.objects.create(order=order, number=7, at=AT, until=AT + HOUR, wait_s=0)
    effects.replay(cluster)
    assert LearnedEffect.objects.get().wait_s == 7140


@pytest.mark.parametrize("state", [LearnedState.TRAINING, LearnedState.DECIDING])
def test_only_who_is_in_shadow_is_replayed(world, state):
    cluster, _, order = world
    kept(cluster)
    type(order).objects.filter(pk=order.pk).update(state=state)
    assert effects.replay(cluster) == 0


def test_effects_go_with_their_differences(world):
    cluster, _, _ = world
    kept(cluster)
    effects.replay(cluster)
    LearnedDifference.objects.all().delete()
    shadow.watch(cluster)
    assert not LearnedEffect.objects.exists()


def test_effects_go_with_a_version_that_is_over(world):
    cluster, _, order = world
    kept(cluster)
    effects.replay(cluster)
    type(order).objects.filter(pk=order.pk).update(state=LearnedState.REJECTED)
    training.forget(cluster)
    assert not LearnedEffect.objects.exists()


@pytest.mark.parametrize(
    ("least_s", "most_s", "said"),
    [(-9.0, -1.0, "better"), (1.0, 9.0, "worse"), (-1.0, 1.0, "noise"), (None, None, "")],
)
def test_effect_is_told_by_its_range(least_s, most_s, said):
    assert effects.verdict(LearnedEffect(least_s=least_s, most_s=most_s)) == said


def test_sums_are_of_what_was_replayed(world):
    cluster, _, order = world
    kept(cluster, 7)
    kept(cluster, 8, AT + HOUR)
    LearnedEffect.objects.create(
        order=order,
        number=7,
        at=AT,
        until=LATER,
        wait_s=-60,
        least_s=-90,
        most_s=-30,
        lost_gpu_s=-7,
    )
    found = effects.sums(order)
    assert (found.cycles, found.replayed, found.starts, found.evictions) == (2, 1, 2, 0)
    assert (found.better, found.worse, found.wait_s, found.lost_gpu_s) == (1, 0, -60, -7)


def test_task_replays_and_leaves_a_cluster_that_is_gone_alone(world):
    cluster, _, _ = world
    kept(cluster)
    tasks.replay_effects(cluster.pk)
    tasks.replay_effects(0)
    assert LearnedEffect.objects.count() == 1


def test_clusters_with_a_version_in_shadow_are_asked_for(world, monkeypatch):
    make_cluster("other")
    asked = []
    monkeypatch.setattr(
        tasks.replay_effects, "apply_async", lambda args, expires: asked.append(args)
    )
    tasks.request_effects()
    assert asked == [[world[0].pk]]
