"""Training on a cluster's own past: cut, searched, lived, judged; resumable, and safe twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduling.engine.model import Sharing
from scheduling.models import LearnedLife, LearnedOrder, LearnedState, Queue, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.learned import searching, training, windows, working
from scheduling.services.learned.windows import WARM_UP, Span
from tests.factories import NOW, example_cluster
from tests.lab import with_work
from tests.learned import SMALL, an_order, begun, by_weights, made_up, worked

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster():
    found = example_cluster()
    with_work(found)
    return found


def test_past_is_cut_so_that_train_and_test_share_no_moment(cluster):
    cut = windows.cut(cluster)
    assert cut.training.end <= min(span.begin for span in cut.later)
    assert all(a.end == b.since for a, b in zip(cut.later, cut.later[1:], strict=False))
    assert cut.later[-1].end <= cluster.now()


@pytest.mark.parametrize(("days", "lacks"), [(3, 3), (4, 2), (5, 1)])
def test_too_short_a_past_says_what_is_lacking(cluster, days, lacks):
    Workload.objects.filter(
        cluster=cluster, submitted_at__lt=NOW - timedelta(days=days, hours=20)
    ).delete()
    with pytest.raises(ServiceError) as caught:
        windows.cut(cluster)
    assert caught.value.code == "past_too_short"
    assert f"in {lacks} day" in caught.value.remedy


def test_window_with_too_little_work_is_refused(cluster, monkeypatch):
    Workload.objects.filter(cluster=cluster, submitted_at__gte=NOW - timedelta(days=8)).delete()
    with pytest.raises(ServiceError) as caught:
        begun(cluster, monkeypatch)
    assert "workloads were submitted in the days to judge by, and 30 are needed" in str(
        caught.value
    )


def test_window_of_training_days_is_refused(cluster):
    order = an_order(cluster, LearnedState.SHADOW)
    with pytest.raises(ServiceError) as caught:
        windows.refuse_shared(
            order, Span.of(order.trained_to, order.trained_to + timedelta(days=2))
        )
    assert caught.value.code == "shared_window"
    windows.refuse_shared(order, Span.of(order.trained_to + WARM_UP, NOW))


def test_where_nothing_gives_out_by_merit_nothing_is_trained(cluster, monkeypatch):
    Queue.objects.filter(cluster=cluster).update(sharing="")
    with pytest.raises(ServiceError) as caught:
        begun(cluster, monkeypatch)
    assert caught.value.code == "nothing_by_merit"


def test_one_is_trained_at_a_time(cluster, monkeypatch):
    begun(cluster, monkeypatch)
    with pytest.raises(ServiceError) as caught:
        begun(cluster, monkeypatch)
    assert caught.value.code == "busy"


def test_version_is_searched_lived_and_judged_by_the_engine(cluster, monkeypatch):
    order = worked(begun(cluster, monkeypatch))
    assert len(order.tried) == searching.most_tries(order) == 3
    assert order.sharing == Sharing.PROMISE
    assert [one["name"] for one in order.verdict["windows"][0]["against"]] == [
        "Promise", "Throughput", "Fair share, shortest predicted", "Fair share, arrival order",
    ]  # fmt: skip
    assert order.state in (LearnedState.REJECTED, LearnedState.SHADOW)
    assert [step.state for step in order.steps.all()][:2] == ["training", "judged"]
    assert order.work == {}
    assert order.cpu_s > 0


def test_same_past_and_seed_give_the_same_weights(cluster, monkeypatch):
    made_up(monkeypatch, lambda world: 3600 + 100 * world.policy.order_weights.get("waited", 0))
    first = worked(begun(cluster, monkeypatch))
    LearnedOrder.objects.all().delete()
    assert worked(begun(cluster, monkeypatch)).weights == first.weights


def test_killed_between_two_candidates_nothing_is_lived_twice(cluster, monkeypatch):
    made_up(monkeypatch, by_weights(1800))
    order, asked = begun(cluster, monkeypatch), []
    stage = searching.stage_of(order.pk)
    whole = stage.cost

    def cost(weights):
        asked.append(dict(weights))
        if len(asked) == 2:
            raise KeyboardInterrupt
        return whole(weights)

    monkeypatch.setattr(stage, "cost", cost)
    with pytest.raises(KeyboardInterrupt):
        working.work(order.pk)
    LearnedOrder.objects.update(held_until=None)
    found = worked(order)
    assert len(asked) == 4
    assert asked[1] == asked[2] == found.tried[1][0]


def test_held_version_is_left_alone(cluster, monkeypatch):
    order = begun(cluster, monkeypatch)
    LearnedOrder.objects.update(held_until=datetime.now(UTC) + timedelta(minutes=1))
    assert worked(order).tried == []


def test_life_that_is_kept_is_not_lived_again(cluster, monkeypatch):
    made_up(monkeypatch, by_weights(1800))
    order = begun(cluster, monkeypatch)
    worked(order)
    count = LearnedLife.objects.filter(order=order).count()
    assert count == 2 * 5 * 5
    worked(order)
    assert LearnedLife.objects.filter(order=order).count() == count


def test_search_ends_at_its_bound_with_the_best_so_far(cluster, monkeypatch):
    made_up(monkeypatch, by_weights(1800))
    order = begun(cluster, monkeypatch)
    LearnedOrder.objects.update(cpu_s=SMALL.most_cpu_s)
    found = worked(order)
    assert len(found.tried) == 1
    assert found.weights == found.tried[0][0]


def test_withdrawn_while_it_is_worked_on_it_stays_withdrawn(cluster, monkeypatch):
    order = begun(cluster, monkeypatch)
    stage = searching.stage_of(order.pk)

    def cost(weights):
        LearnedOrder.objects.update(state=LearnedState.WITHDRAWN)
        return 1.0

    monkeypatch.setattr(stage, "cost", cost)
    found = worked(order)
    assert (found.state, found.tried) == (LearnedState.WITHDRAWN, [])


@pytest.mark.parametrize(
    ("state", "days", "hour", "is_due"),
    [
        (LearnedState.REJECTED, 8, 2, True),
        (LearnedState.REJECTED, 3, 2, False),
        (LearnedState.REJECTED, 8, 12, False),
        (LearnedState.SHADOW, 8, 2, False),
        (LearnedState.DECIDING, 8, 2, True),
    ],
)
def test_a_night_brings_a_new_version_a_week_after_the_last(
    cluster, monkeypatch, state, days, hour, is_due
):
    cluster.display_time_zone = "UTC"
    night = NOW.replace(hour=hour)
    monkeypatch.setattr(type(cluster), "now", lambda self: night)
    an_order(cluster, state, since=night - timedelta(days=days))
    LearnedOrder.objects.update(made_at=datetime.now(UTC) - timedelta(days=2))
    assert training.is_due(cluster) == is_due


def test_versions_that_are_over_are_forgotten_after_many_more(cluster):
    for version in (1, 2):
        an_order(cluster, LearnedState.REJECTED, version=version)
    an_order(cluster, LearnedState.SHADOW, version=training.KEPT + 1)
    training.forget(cluster)
    assert sorted(LearnedOrder.objects.values_list("version", flat=True)) == [2, training.KEPT + 1]
