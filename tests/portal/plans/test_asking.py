"""A page asks for a plan, a worker makes it, and what was made is shown with its time."""

from datetime import timedelta

import pytest
from django.utils import timezone

from portal.plans import ahead, asking, kinds, starts
from portal.plans.models import PlanQuestion
from scheduling.models import Cluster
from tests.factories import make_cluster

pytestmark = pytest.mark.django_db
QUESTION = {"changes": []}


@pytest.fixture
def cluster():
    return make_cluster()


@pytest.fixture
def sent(monkeypatch):
    """Questions on their way to a worker, which answers when ``work`` is called."""
    sent: list[int] = []
    monkeypatch.setattr(asking, "_ask", sent.append)
    return sent


@pytest.fixture
def planned(monkeypatch):
    """How often it was planned; the answer is its number."""
    made: list[dict] = []

    def plan(cluster, question):
        made.append({"lines": len(made) + 1})
        return made[-1]

    monkeypatch.setattr(kinds, "KINDS", {kinds.CHANGES: plan})
    monkeypatch.setattr(asking, "KINDS", {kinds.CHANGES: plan})
    return made


def kept(cluster, **more):
    return asking.ask(cluster, kinds.CHANGES, QUESTION, **more)


def later(**by):
    PlanQuestion.objects.update(**{name: timezone.now() - age for name, age in by.items()})


def test_what_nobody_planned_is_asked_for_and_not_planned_in_the_request(cluster, sent, planned):
    first = kept(cluster)

    assert (first.answer, first.is_open) == (None, True)
    assert (len(sent), planned) == (1, [])


def test_what_is_on_its_way_is_not_asked_for_again(cluster, sent, planned):
    kept(cluster)
    kept(cluster)

    assert len(sent) == 1


def test_what_no_worker_took_in_time_is_asked_for_again_and_says_so(cluster, sent, planned):
    kept(cluster)
    later(asked_at=timedelta(seconds=asking.EXPIRES_S - 1))
    waiting = kept(cluster)
    later(asked_at=timedelta(seconds=asking.EXPIRES_S + 1))
    kept(cluster)

    assert waiting.is_late
    assert len(sent) == 2


def test_an_answer_serves_while_the_cluster_stands(cluster, sent, planned):
    kept(cluster)
    asking.answer(sent[0])
    later(asked_at=timedelta(minutes=6), planned_at=timedelta(minutes=5))

    assert kept(cluster).answer == {"lines": 1}
    assert not kept(cluster).is_open
    assert len(sent) == 1


def test_an_answer_of_an_older_cluster_is_shown_while_the_new_one_is_planned(
    cluster, sent, planned
):
    kept(cluster)
    asking.answer(sent[0])
    later(asked_at=timedelta(minutes=6), planned_at=timedelta(minutes=5))
    Cluster.objects.update(revision=7)
    cluster.refresh_from_db()

    open_ = kept(cluster)

    assert (open_.answer, open_.is_open) == ({"lines": 1}, True)
    assert len(sent) == 2


def test_an_answer_that_is_old_is_not_shown(cluster, sent, planned):
    kept(cluster)
    asking.answer(sent[0])
    later(asked_at=2 * asking.SHOWN, planned_at=asking.SHOWN + timedelta(minutes=1))

    assert kept(cluster).answer is None


def test_a_fault_is_asked_about_again_though_nothing_changed(cluster, sent, planned):
    kept(cluster)
    asking.answer(sent[0])
    PlanQuestion.objects.update(answer={"fault": "No."})
    later(asked_at=timedelta(minutes=6), planned_at=timedelta(minutes=5))

    assert kept(cluster).is_open


def test_whoever_acts_gets_what_was_shown_and_plans_only_without_it(cluster, sent, planned):
    first = asking.plan_now(cluster, kinds.CHANGES, QUESTION)
    second = asking.plan_now(cluster, kinds.CHANGES, QUESTION)

    assert first == second == {"lines": 1}
    assert kept(cluster).answer == first


def test_a_question_about_what_is_gone_is_forgotten(cluster, sent):
    asking.ask(cluster, kinds.REQUEST, {"request": 1, "gpus": 1, "giver": None})
    asking.answer(sent[0])

    assert not PlanQuestion.objects.exists()


def test_a_question_that_is_made_at_this_moment_is_not_forgotten_with_the_old_ones(
    cluster, sent, planned
):
    kept(cluster)
    made = asking._row(cluster, kinds.CHANGES, {"changes": [1]})
    old = asking._row(cluster, kinds.CHANGES, {"changes": [2]})
    PlanQuestion.objects.filter(pk=old.pk).update(planned_at=timezone.now() - timedelta(hours=3))
    asking.answer(sent[0])

    assert set(PlanQuestion.objects.values_list("pk", flat=True)) == {sent[0], made.pk}


@pytest.fixture
def together(monkeypatch):
    """The questions of each reading of the cluster; nothing is known of work 0."""
    readings: list[list[int]] = []

    def plan(cluster, questions):
        readings.append([one["work"] for one in questions])
        return ({"work": one["work"]} if one["work"] else None for one in questions)

    monkeypatch.setattr(asking, "TOGETHER", {kinds.SOONER: plan})
    return readings


def of_work(cluster, *works):
    return [asking.ask(cluster, kinds.SOONER, {"work": work, "person": 1}) for work in works]


def test_what_a_crowd_asks_of_one_kind_is_planned_on_one_reading(cluster, sent, together):
    of_work(cluster, 7, 8, 9)
    for asked_id in sent:
        asking.answer(asked_id)

    assert together == [[7, 8, 9]]
    assert [one.answer for one in of_work(cluster, 7, 8, 9)] == [
        {"work": work} for work in (7, 8, 9)
    ]


def test_what_nobody_waits_for_any_more_is_not_planned_with_it(cluster, sent, together):
    of_work(cluster, 7)
    later(asked_at=3 * timedelta(seconds=asking.EXPIRES_S))
    of_work(cluster, 8)
    asking.answer(sent[1])

    assert together == [[8]]


def test_one_of_a_crowd_about_what_is_gone_is_forgotten_alone(cluster, sent, together):
    of_work(cluster, 0, 8)
    asking.answer(sent[1])

    assert [row.question["work"] for row in PlanQuestion.objects.all()] == [8]


def test_what_waits_for_a_decision_is_planned_before_anybody_looks_and_once(
    cluster, sent, monkeypatch
):
    question = (cluster, kinds.CHANGES, QUESTION)
    monkeypatch.setattr(ahead, "_waiting", lambda: iter([question]))

    assert (ahead.ask_ahead(), ahead.ask_ahead()) == (1, 0)
    assert len(sent) == 1


def test_question_that_takes_no_seconds_comes_between_the_futures_of_a_forecast(
    cluster, sent, monkeypatch
):
    order: list[str] = []
    forecast = {"person": 0}

    def live(of, question):
        time_left = starts._Time(of, starts.DRAFT, question)
        while len(order) < 5 and time_left.goes_on():
            order.append("future")
            if len(order) == 2:
                asking.ask(of, kinds.RUN_TIME, {"work": 1})
        return {}

    def run_time(of, question):
        order.append("run time")
        return {}

    monkeypatch.setattr(asking, "KINDS", {starts.DRAFT: live, kinds.RUN_TIME: run_time})
    asking.ask(cluster, starts.DRAFT, forecast)
    asking.answer(sent[0])
    asking.answer(sent[1])

    assert order == ["future", "future", "run time", "future", "future"]
    assert not asking.look(cluster, kinds.RUN_TIME, {"work": 1}).is_open
