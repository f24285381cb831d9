"""What is told before it happens: a start that is near, a wait past its forecast, hours that run out."""

from datetime import timedelta

import pytest
from django.utils import timezone

from portal.accounts.models import User
from portal.notices import watch
from portal.notices.models import Kind, Notice, Preference, When
from scheduling.models import ForecastOutcome, Quota, StartForecast, ToldStart, Transition, WorkDay
from scheduling.models.foresight import ForecastChange, LateCause
from tests.factories import NOW, make_workload
from tests.portal.approvals.conftest import queue_of
from workshop.demo.organisation import H100

pytestmark = pytest.mark.django_db

QUERIES = 9
"""A look with its savepoint, where nothing is new."""
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def waiting(cluster, *, since=HOUR, **fields):
    more = {"user": "s.marchetti", "name": "dpo-7", "submitted_at": NOW - since, **fields}
    return make_workload(queue_of(cluster, "alignment"), **more)


def foretold(cluster, in_=10 * MINUTE, **fields):
    work = waiting(cluster, **fields)
    return StartForecast.objects.create(
        workload=work, at=NOW, p50_at=NOW + in_, p90_at=NOW + in_ + HOUR
    )


def outcome(work, p90_s, **fields):
    return ForecastOutcome.objects.create(**{
        "workload": work, "at_submission": True, "told_at": NOW - 2 * HOUR, "p50_s": p90_s / 2,
        "p90_s": p90_s, "raw_p50_s": 1, "raw_p90_s": 2, **fields,
    })  # fmt: skip


def test_start_that_is_near_is_told_once_a_wait(cluster, people):
    forecast = foretold(cluster)
    watch.look(cluster)
    watch.look(cluster)
    one = Notice.objects.get(user=people.asker)
    assert (one.kind, one.title) == ("soon", "dpo-7 starts in about 10 min.")
    Transition.objects.create(workload=forecast.workload, at=NOW - 20 * MINUTE, to_state="requeued")
    watch.look(cluster)
    assert Notice.objects.filter(user=people.asker).count() == 2


@pytest.mark.parametrize(
    "fields",
    [{"in_": 20 * MINUTE}, {"since": 5 * MINUTE}, {"in_": -2 * HOUR}, {"state": "running"},
     {"user": "nobody"}],
)  # fmt: skip
def test_start_that_is_not_near_or_no_news_is_not_told(cluster, people, fields):
    foretold(cluster, **fields)
    watch.look(cluster)
    assert not Notice.objects.exists()


def test_what_was_told_or_is_not_wanted_is_looked_at_no_more(
    cluster, people, django_assert_num_queries
):
    foretold(cluster)
    outcome(waiting(cluster, name="dpo-8"), p90_s=3600)
    outcome(waiting(cluster, name="dpo-9", user="d.okoye"), p90_s=3600)
    okoye = User.objects.get(username="d.okoye")
    Preference.objects.create(user=okoye, kind=Kind.LATE, when=When.OFF)
    watch.look(cluster)
    assert {n.kind for n in Notice.objects.all()} == {"soon", "late"}
    with django_assert_num_queries(QUERIES):
        watch.look(cluster)
    assert Notice.objects.count() == 2


def test_wait_past_its_first_forecast_is_told_once(cluster, people):
    outcome(waiting(cluster, since=3 * HOUR), 3600)
    watch.look(cluster)
    watch.look(cluster)
    one = Notice.objects.get()
    assert one.title == "dpo-7 has waited 3 h, longer than predicted."
    assert one.kind == Kind.LATE
    assert [word for word, _ in one.lines] == ["Forecast then"]
    assert one.due_at > timezone.now()


@pytest.mark.parametrize(
    ("p90_s", "work", "more"),
    [(3 * 3600, {}, {}), (3600, {"held": True}, {}), (3600, {"state": "running"}, {}),
     (3600, {}, {"at_submission": False}), (3600, {}, {"started_at": NOW})],
)  # fmt: skip
def test_wait_that_is_as_told_or_a_persons_own_is_not_told(cluster, people, p90_s, work, more):
    outcome(waiting(cluster, **work), p90_s, **more)
    watch.look(cluster)
    assert not Notice.objects.exists()


def told_start(work, in_=None, *, at=NOW, **more):
    """That it starts then, by an hour later in nine of ten cases; without a time, that none is told."""
    times = {"p50_at": NOW + in_, "p90_at": NOW + in_ + HOUR} if in_ else {}
    return ToldStart.objects.create(workload=work, at=at, **times, **more)


def lost(cluster, in_=None, *, at=NOW, **fields):
    """Work that was told to start in an hour, and is told otherwise at ``at``."""
    work = waiting(cluster, **fields)
    told_start(work, HOUR, at=at - HOUR, change=ForecastChange.FIRST)
    more = {
        "change": ForecastChange.LATER if in_ else ForecastChange.LOST,
        "cause": LateCause.MORE_ARRIVED,
    }
    return told_start(work, in_, at=at, breaks=True, note="3 came that go before it.", **more)


@pytest.mark.parametrize(
    ("in_", "title", "said"),
    [
        pytest.param(
            5 * HOUR,
            "dpo-7 starts later than predicted.",
            ["Forecast then", "Now", "Why"],
            id="later",
        ),
        pytest.param(
            None,
            "dpo-7: the start that was told does not hold, and no other is told.",
            ["Forecast then", "Why"],
            id="no_other_time",
        ),
    ],
)
def test_start_that_was_told_and_is_lost_is_told_once_to_its_owner_alone_with_both_times_and_why(
    cluster, people, in_, title, said
):
    row = lost(cluster, in_)
    watch.look(cluster)
    watch.look(cluster)
    one = Notice.objects.get()
    assert (one.kind, one.user, one.title) == (Kind.MOVED, people.asker, title)
    assert [word for word, _ in one.lines] == said
    words = dict(one.lines)
    assert words["Why"] == "3 came that go before it."
    for word, start in (("Forecast then", NOW + HOUR), ("Now", row.p50_at)):
        if word in words:
            assert watch._time(people.asker, cluster, start) in words[word]
            assert "in nine of ten cases" in words[word]


@pytest.mark.parametrize(
    ("in_", "title", "words"),
    [
        pytest.param(
            3 * HOUR,
            "dpo-7 starts later than told.",
            ["Reservation then", "Now", "Why"],
            id="later",
        ),
        pytest.param(
            None,
            "dpo-7: the start that was told does not hold, and no other is told.",
            ["Reservation then", "Why"],
            id="lost",
        ),
    ],
)
def test_time_of_a_reservation_that_is_lost_is_told_as_that_by_which_it_was_to_start(
    cluster, people, in_, title, words
):
    work = waiting(cluster)
    ToldStart.objects.create(
        workload=work, at=NOW - HOUR, p90_at=NOW + HOUR, change=ForecastChange.FIRST
    )
    change = ForecastChange.LATER if in_ else ForecastChange.LOST
    by = {"p90_at": NOW + in_} if in_ else {}
    ToldStart.objects.create(workload=work, at=NOW, change=change, breaks=True, note="So.", **by)
    watch.look(cluster)
    one = Notice.objects.get()
    assert (one.title, [word for word, _ in one.lines]) == (title, words)
    said = f"By {watch._time(people.asker, cluster, NOW + HOUR)}."
    assert dict(one.lines)["Reservation then"] == said


def test_lost_start_without_figures_names_its_cause(cluster, people):
    row = lost(cluster, 5 * HOUR)
    ToldStart.objects.filter(pk=row.pk).update(note="")
    watch.look(cluster)
    assert dict(Notice.objects.get().lines)["Why"] == LateCause.MORE_ARRIVED.label


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"state": "running"}, id="it_started"),
        pytest.param({"user": "nobody"}, id="nobody_to_tell"),
        pytest.param({"at": NOW - 3 * HOUR}, id="long_ago"),
    ],
)
def test_lost_start_that_is_no_news_is_not_told(cluster, people, fields):
    lost(cluster, 5 * HOUR, **fields)
    watch.look(cluster)
    assert not Notice.objects.exists()


def test_lost_start_is_not_told_to_whom_it_is_off(cluster, people):
    lost(cluster, 5 * HOUR)
    Preference.objects.create(user=people.asker, kind=Kind.MOVED, when=When.OFF)
    watch.look(cluster)
    assert not Notice.objects.exists()


def spend(cluster, hours: float, budget: int = 100) -> None:
    """So much of the month's GPU-hours of h100 that pretraining used."""
    queue, gpu_class = queue_of(cluster, "pretraining"), cluster.gpu_classes.get(name=H100)
    Quota.objects.filter(queue=queue, gpu_class=gpu_class).update(budget_gpu_hours=budget)
    WorkDay.objects.all().delete()
    WorkDay.objects.create(
        queue=queue, gpu_class=gpu_class, user="ann", type="training", held_gpu_s=hours * 3600,
        start=NOW.replace(day=2, hour=0, minute=0, second=0, microsecond=0),
    )  # fmt: skip


@pytest.mark.parametrize(("hours", "shares"), [(79, []), (80, ["80"]), (100, ["100"])])
def test_budget_is_told_at_its_shares_to_the_team(cluster, people, hours, shares):
    spend(cluster, hours)
    watch.look_at_budgets()
    told = Notice.objects.filter(user__username="researcher", kind=Kind.BUDGET)
    assert [one.source.split()[-1] for one in told] == shares


def test_budget_says_what_comes_next_and_each_share_once(cluster, people):
    for hours in (80, 85, 100, 110):
        spend(cluster, hours)
        watch.look_at_budgets()
    last, first = Notice.objects.filter(user__username="researcher").order_by("-pk")
    assert first.title == f"pretraining has used 80 of its 100 GPU-hours of {H100} this month."
    assert first.lines[0][1].startswith("Once they are used, nothing more starts there before")
    assert last.lines[0][1].startswith("Nothing more starts there before")


def test_budget_is_told_to_nobody_outside_the_team(cluster, people):
    spend(cluster, 100)
    watch.look_at_budgets()
    assert not Notice.objects.filter(user=people.neighbour).exists()
    assert not Notice.objects.filter(user=people.asker).exists()


def test_wait_is_late_from_its_p90_on_and_not_a_second_sooner(cluster, people):
    outcome(waiting(cluster), 2 * 3600 + 1)
    watch.look(cluster)
    assert not Notice.objects.exists()
    ForecastOutcome.objects.update(p90_s=2 * 3600 - 1)
    watch.look(cluster)
    assert Notice.objects.get().kind == Kind.LATE
