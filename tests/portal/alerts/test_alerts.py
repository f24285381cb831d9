"""What rules watch, who is told, and the page with what an edit would have done."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from portal.alerts import page, watching, words
from portal.alerts.models import Figure, Firing, Rule, Tell, Watch
from portal.alerts.rules import FIRST, Wish, save, visible
from portal.alerts.series import series
from portal.notices.models import Notice
from portal.reports.models import Budget
from scheduling.models import (
    Cluster,
    Cycle,
    Eviction,
    EvictionRule,
    IdleSpell,
    Outcome,
    State,
    UsageSample,
    Workload,
)
from scheduling.services.errors import ServiceError
from tests.factories import make_user, make_workload
from tests.portal.reports.conftest import END, HOUR, Small

pytestmark = pytest.mark.django_db
H = 3600.0


def waiting(small: Small, hours: float, **fields: object) -> Workload:
    return make_workload(small.vision, **{  # type: ignore[no-any-return]
        "submitted_at": END - HOUR * hours, "user": "ann", "state": State.PENDING, **fields,
    })  # fmt: skip


def rule(small: Small, figure: Figure, over: float = 1, **fields: object) -> Rule:
    return Rule.objects.create(cluster=small.cluster, figure=figure, over=over, **fields)


def figures(one: Rule, *hours_ago: float) -> list[float]:
    times = np.array([(END - HOUR * h).timestamp() for h in hours_ago])
    return [round(v, 3) for v in series(one, times).values.tolist()]


def test_longest_wait_is_that_of_who_waits_longest_at_each_moment(small: Small) -> None:
    waiting(small, 5)
    waiting(small, 20, first_started_at=END - 10 * HOUR, state=State.RUNNING)
    waiting(small, 30, state=State.FINISHED, finished_at=END - 25 * HOUR, outcome=Outcome.CANCELLED)

    one = rule(small, Figure.LONGEST_WAIT)

    assert figures(one, 27, 24, 12, 8, 3, 0) == [3 * H, 0, 8 * H, 0, 2 * H, 5 * H]


def test_longest_wait_is_of_first_starts_and_says_so(small: Small) -> None:
    waiting(small, 40, first_started_at=END - 39 * HOUR, state=State.REQUEUED)

    one = rule(small, Figure.LONGEST_WAIT, over=H)

    assert figures(one, 0) == [0]
    assert words.fires(one).endswith("a workload waits over 1 h for its first start")


@pytest.mark.parametrize(
    ("narrowed", "expected"), [("vision", 5 * H), ("speech", 0.0), ("research", 5 * H)]
)
def test_rule_of_a_queue_watches_it_and_all_below(
    small: Small, narrowed: str, expected: float
) -> None:
    waiting(small, 5)

    assert figures(rule(small, Figure.LONGEST_WAIT, queue=getattr(small, narrowed)), 0) == [
        expected
    ]


@pytest.mark.parametrize(("classes", "expected"), [([], 5 * H), (["h100"], 5 * H), (["mig"], 0.0)])
def test_rule_of_a_class_watches_who_may_use_it(
    small: Small, classes: list[str], expected: float
) -> None:
    waiting(small, 5, gpu_classes=classes)

    assert figures(rule(small, Figure.LONGEST_WAIT, gpu_class=small.h100), 0) == [expected]


def test_wait_p90_is_of_starts_in_the_day_before(small: Small) -> None:
    for n in range(10):
        waiting(small, 11, first_started_at=END - (10 - n) * HOUR, state=State.RUNNING)

    one = rule(small, Figure.WAIT_P90)

    assert figures(one, 0) == [round(9.1 * H, 3)]
    assert np.isnan(series(one, np.array([(END - 9 * HOUR).timestamp()])).values[0])


def test_starvation_lasts_while_a_queue_that_waits_is_below_its_share(small: Small) -> None:
    for hours_ago, allocated, pending in ((6, 8, 4), (5, 5, 4), (4, 5, 4), (3, 8, 4)):
        small.sample(
            small.vision, small.h100, hours_ago=hours_ago, allocated=allocated, fair_share=8,
            pending=pending,
        )  # fmt: skip
    small.sample(small.speech, small.h100, hours_ago=5, allocated=0, fair_share=8, pending=0)

    assert figures(rule(small, Figure.STARVATION), 5, 3.5, 2.5) == [0, 1.5 * H, 0]


def test_root_of_the_tree_starves_nobody(small: Small) -> None:
    small.sample(small.root, small.h100, hours_ago=5, allocated=1, fair_share=8, pending=4)

    assert figures(rule(small, Figure.STARVATION), 4.5) == [0]


def test_idle_gpus_count_from_so_many_of_one_workload(small: Small) -> None:
    for gpus in (2000, 8000):
        work = waiting(small, 9, state=State.RUNNING, gpu_class=small.h100)
        IdleSpell.objects.create(
            workload=work, gpu_class=small.h100, gpus=gpus, since=END - HOUR * (gpus / 1000),
            until=None,
        )  # fmt: skip

    assert figures(rule(small, Figure.IDLE_GPUS, least_gpus=4), 0) == [8 * H]
    assert figures(rule(small, Figure.IDLE_GPUS, least_gpus=16), 0) == [0]


def test_evictions_of_one_workload_count_for_seven_days(small: Small) -> None:
    often, once = waiting(small, 300), waiting(small, 300)
    for work, days in ((often, 8), (often, 3), (often, 2), (once, 1)):
        Eviction.objects.create(
            workload=work, at=END - timedelta(days=days), rule=EvictionRule.RECLAIM, gpus=1000,
            queue=small.vision, gpu_class=small.h100,
        )  # fmt: skip

    one = rule(small, Figure.EVICTED_AGAIN)

    assert figures(one, 36, 0) == [3, 2]
    assert series(one, np.array([END.timestamp()])).who.tolist() == [often.pk]


def test_evictions_of_work_that_ended_fire_nothing(small: Small) -> None:
    ended = waiting(small, 300, state=State.FINISHED, finished_at=END - HOUR)
    for days in (3, 2):
        Eviction.objects.create(
            workload=ended, at=END - timedelta(days=days), rule=EvictionRule.RECLAIM, gpus=1000,
            queue=small.vision, gpu_class=small.h100,
        )  # fmt: skip

    assert figures(rule(small, Figure.EVICTED_AGAIN), 2, 0) == [2, 0]


def test_evictions_in_vain_count_for_a_day_unless_the_work_was_called_off(small: Small) -> None:
    work = waiting(small, 300)
    for hours, cause in ((30, "overdue"), (9, "seats_gone"), (2, "overdue"), (1, "gone"), (1, "")):
        Eviction.objects.create(
            workload=work, at=END - timedelta(hours=hours), rule=EvictionRule.RECLAIM, gpus=1000,
            queue=small.vision, gpu_class=small.h100, in_vain=cause,
        )  # fmt: skip

    assert figures(rule(small, Figure.IN_VAIN, over=0), 31, 7, 3, 0) == [0, 2, 1, 2]


def test_oversubscribed_is_what_is_guaranteed_above_what_is_ready(small: Small) -> None:
    small.sample(small.root, small.h100, ready=14)
    small.sample(small.research, small.h100, nominal=12)
    small.sample(small.vision, small.h100, nominal=12)
    small.sample(small.platform, small.h100, nominal=4)

    assert figures(rule(small, Figure.OVERSUBSCRIBED, over=0), 0) == [2]


def test_oversubscription_names_the_class_of_which_most_is_guaranteed(small: Small) -> None:
    watched = rule(small, Figure.OVERSUBSCRIBED, over=0)
    small.sample(small.root, small.h100, ready=14)
    small.sample(small.research, small.h100, nominal=16)
    Watch.objects.create(cluster=small.cluster, at=END - HOUR)
    look(small)

    told = words.headline(watched, Firing.objects.get(), is_over=False)
    assert told == f"Oversubscription of {small.h100.name}: 2 GPUs."


def test_engine_and_mirror_tell_how_long_nothing_came(small: Small) -> None:
    Cluster.objects.update(planned_at=datetime.now(UTC) - timedelta(seconds=90))
    small.cluster.refresh_from_db()
    Cycle.objects.create(cluster=small.cluster, number=1, at=END - timedelta(minutes=5), lag_s=42)

    (stalled,) = figures(rule(small, Figure.ENGINE_STALLED), 0)
    assert 89 < stalled < 120
    assert figures(rule(small, Figure.MIRROR_STALE), 0) == [42]


def test_paused_engine_does_not_stall(small: Small) -> None:
    Cluster.objects.update(planned_at=END - 9 * HOUR, mode="paused")
    small.cluster.refresh_from_db()

    (stalled,) = figures(rule(small, Figure.ENGINE_STALLED), 0)
    assert np.isnan(stalled)


def test_budget_tells_how_long_before_its_end_it_runs_out(small: Small) -> None:
    small.h100.price_per_gpu_hour = Decimal(2)
    small.h100._history_date = END - timedelta(days=60)
    small.h100.save()
    for day in range(1, 11):
        small.sample(small.vision, small.h100, hours_ago=24 * day, allocated=5)
    today = END.date()
    Budget.objects.create(
        queue=small.vision,
        amount=125,
        begin=today - timedelta(days=10),
        end=today + timedelta(days=10),
    )

    assert figures(rule(small, Figure.BUDGET), 0) == [7]


def look(small: Small) -> None:
    small.cluster.refresh_from_db()
    watching.look(small.cluster)


def test_cluster_begins_with_the_first_rules_and_keeps_none_that_was_deleted(small: Small) -> None:
    look(small)
    assert Rule.objects.count() == len(FIRST)
    Rule.objects.all().delete()
    look(small)

    assert Rule.objects.count() == 0


@pytest.fixture
def watched(small: Small) -> Rule:
    Watch.objects.create(cluster=small.cluster, at=END - HOUR)
    return rule(small, Figure.LONGEST_WAIT, over=4 * H, tell=Tell.LEADS)


def test_rule_that_fires_tells_the_nearest_leads_once_and_when_it_is_over(
    small: Small, watched: Rule
) -> None:
    work = waiting(small, 5)
    look(small)
    look(small)
    (firing,) = Firing.objects.all()
    assert (firing.workload, firing.peak, firing.told) == (work, 5 * H, 1)
    (told,) = Notice.objects.all()
    assert told.user == small.lead
    assert work.name in told.title

    Workload.objects.update(state=State.RUNNING, first_started_at=END)
    look(small)

    firing.refresh_from_db()
    assert firing.until is not None
    assert Notice.objects.count() == 2


def test_lead_who_may_not_read_the_rule_is_led_to_what_it_is_about(
    small: Small, watched: Rule
) -> None:
    work = waiting(small, 5)
    look(small)
    assert not visible(small.lead, small.cluster).filter(pk=watched.pk).exists()
    assert Notice.objects.get().address == reverse("web:workload", args=["fra1", work.uid])


def test_wait_fires_since_it_passed_its_bound_on_page_strip_and_90_days(
    small: Small, watched: Rule
) -> None:
    """Nobody looked while it passed: it waits 5 hours, the bound is 4."""
    waiting(small, 5)
    look(small)

    (firing,) = Firing.objects.all()
    assert firing.since == END - HOUR
    client = client_of(small.operator)
    (row,) = client.get(reverse("web:alerts", args=["fra1"])).context["rows"]
    past = client.get(reverse("web:alert_past", args=["fra1"])).context["past"]
    assert (row.firing, row.fired, len(row.marks)) == (firing, 1, 1)
    assert row.marks[0].width == pytest.approx(100 / 14 / 24, abs=0.6)
    assert [one.fired for one in past.rows] == [1]


def test_next_firing_begins_no_sooner_than_the_last_ended(small: Small, watched: Rule) -> None:
    ended = END - HOUR / 2
    Firing.objects.create(rule=watched, since=END - 2 * HOUR, until=ended, peak=1)
    waiting(small, 5)
    look(small)

    assert Firing.objects.get(until=None).since == ended


def starving(small: Small, allocated: float) -> None:
    for hours_ago in (5, 4, 3, 2, 1):
        small.sample(
            small.vision, small.h100, hours_ago=hours_ago, allocated=allocated, fair_share=8,
            pending=4,
        )  # fmt: skip


def test_starvation_names_queue_and_class_on_the_page_in_the_notice_and_once_it_is_over(
    small: Small,
) -> None:
    Watch.objects.create(cluster=small.cluster, at=END - HOUR)
    rule(small, Figure.STARVATION, over=2 * H, tell=Tell.LEADS)
    starving(small, 2)
    look(small)

    assert Notice.objects.get().title == "Starvation of vision, h100: 5 h."
    (row,) = page.rows(small.operator, small.cluster)
    assert (row.queue, row.gpu_class) == (small.vision, "h100")
    text = client_of(small.operator).get(reverse("web:alerts", args=["fra1"])).content.decode()
    assert "vision, " in text
    UsageSample.objects.update(pending_gpus=0)
    look(small)

    assert Notice.objects.first().title.startswith("Starvation of vision, h100 is over")


def test_time_near_the_bound_is_kept_and_framed_on_the_strip(small: Small, watched: Rule) -> None:
    work = waiting(small, 3.5)
    look(small)
    (row,) = page.rows(small.operator, small.cluster)
    assert (row.verdict, row.fired) == ("near", 0)
    assert row.since == END - HOUR * 0.3
    (mark,) = row.nears
    assert mark.x + mark.width == pytest.approx(100, abs=0.02)

    Workload.objects.filter(pk=work.pk).update(state=State.RUNNING, first_started_at=END)
    look(small)

    watched.refresh_from_db()
    assert watched.near == [[(END - HOUR * 0.3).timestamp(), END.timestamp()]]
    (row,) = page.rows(small.operator, small.cluster)
    assert (row.verdict, len(row.nears), row.since) == ("quiet", 1, None)


def test_time_near_a_bound_that_was_edited_is_forgotten(small: Small, watched: Rule) -> None:
    waiting(small, 3.5)
    look(small)
    wish = Wish(Figure.LONGEST_WAIT, 9 * H)
    assert save(by=small.operator, cluster=small.cluster, wish=wish, rule=watched).near is None


def test_what_fires_beside_a_mirror_in_touch_again_says_the_age_that_it_fires_for(
    small: Small,
) -> None:
    Watch.objects.create(cluster=small.cluster, at=END - HOUR)
    rule(small, Figure.MIRROR_STALE, over=30)
    lagged = Cycle.objects.create(cluster=small.cluster, number=1, at=END, lag_s=40)
    look(small)
    Cycle.objects.filter(pk=lagged.pk).update(lag_s=0)

    (row,) = page.rows(small.operator, small.cluster)
    assert (row.verdict, row.value) == ("firing", "40 s")
    look(small)
    (row,) = page.rows(small.operator, small.cluster)
    assert (row.verdict, row.value) == ("quiet", "0 s")


def test_mondays_stand_above_the_strip(small: Small) -> None:
    now = datetime(2026, 11, 19, 12, tzinfo=UTC)
    assert page.dates(now, ZoneInfo("UTC")) == [
        (pytest.approx(100 * 3.5 / 14), "Mon 9"), (pytest.approx(100 * 10.5 / 14), "Mon 16"),
    ]  # fmt: skip


def test_rule_waits_for_as_long_as_it_says(small: Small, watched: Rule) -> None:
    Rule.objects.update(for_s=1800)
    work = waiting(small, 4.25)
    look(small)
    assert not Firing.objects.exists()

    Workload.objects.filter(pk=work.pk).update(submitted_at=END - 5 * HOUR)
    Rule.objects.update(over_since=END - HOUR)
    look(small)

    assert Firing.objects.get().since == END - HOUR / 2


def test_rule_that_was_edited_while_it_was_read_is_left_to_the_next_look(
    small: Small, watched: Rule
) -> None:
    waiting(small, 5)
    Rule.objects.update(over=9 * H)

    watching._settle(watched, 5 * H, 0, END)

    assert not Firing.objects.exists()


def test_nobody_is_told_again_within_the_time_that_is_said(small: Small, watched: Rule) -> None:
    Firing.objects.create(
        rule=watched,
        since=END - 3 * HOUR,
        until=END - 2 * HOUR,
        peak=1,
        told=1,
        told_at=END - 3 * HOUR,
    )
    waiting(small, 5)
    look(small)

    assert Firing.objects.filter(until=None, told=0).count() == 1
    assert not Notice.objects.exists()


def test_owner_is_told_of_the_own_work(small: Small, watched: Rule) -> None:
    owner = make_user("ann")
    Rule.objects.update(tell=Tell.OWNER)
    waiting(small, 5)
    look(small)

    assert [n.user for n in Notice.objects.all()] == [owner]


@pytest.mark.parametrize(
    ("wish", "field"),
    [(Wish(Figure.LONGEST_WAIT, 0), "over"), (Wish(Figure.WAIT_P90, 60, tell=Tell.OWNER), "tell")],
)
def test_rule_that_makes_no_sense_is_refused_at_its_field(
    small: Small, wish: Wish, field: str
) -> None:
    with pytest.raises(ServiceError) as refused:
        save(by=small.operator, cluster=small.cluster, wish=wish)
    assert refused.value.field == field


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


TYPED = {
    "figure": "longest_wait",
    "queue": "vision",
    "over": "240",
    "tell": "leads",
    "again_s": "6",
}


def test_lead_makes_edits_and_deletes_rules_of_the_own_queues_alone(small: Small) -> None:
    lead, address = client_of(small.lead), reverse("web:alerts", args=["fra1"])
    assert lead.post(address, TYPED).status_code == 302
    assert lead.post(address, {**TYPED, "queue": ""}).status_code == 400
    assert lead.post(address, {**TYPED, "queue": "platform"}).status_code == 400
    (made,) = Rule.objects.all()
    assert (made.queue, made.over) == (small.vision, 4 * H)

    other = rule(small, Figure.LONGEST_WAIT, queue=small.platform)
    for name in ("alert_rule", "alert_delete"):
        gone = reverse(f"web:{name}", args=["fra1", other.pk])
        assert lead.post(gone, TYPED).status_code == 404
    assert client_of(small.researcher).get(address).status_code == 404
    assert lead.post(reverse("web:alert_delete", args=["fra1", made.pk])).status_code == 302


def test_page_says_what_fires_and_of_whom(small: Small, watched: Rule) -> None:
    work = waiting(small, 5)
    look(small)

    page = client_of(small.operator).get(reverse("web:alerts", args=["fra1"])).content.decode()

    assert "1 of 1 rule fires: Longest wait." in page
    assert work.name in page
    assert "5 h" in page
    assert "figures of <time" in page


def test_page_shows_what_the_last_look_found_and_works_out_nothing(
    small: Small, watched: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting(small, 5)
    look(small)
    monkeypatch.setattr(page, "series", None)
    client = client_of(small.operator)
    (row,) = client.get(reverse("web:alerts", args=["fra1"])).context["rows"]
    assert (row.value, row.work) == ("5 h", Workload.objects.get())


def test_rule_that_was_edited_is_worked_out_until_it_is_looked_at_again(
    small: Small, watched: Rule
) -> None:
    waiting(small, 5)
    look(small)
    wish = Wish(Figure.LONGEST_WAIT, 9 * H)
    edited = save(by=small.operator, cluster=small.cluster, wish=wish, rule=watched)
    assert edited.value is None
    client = client_of(small.operator)
    (row,) = client.get(reverse("web:alerts", args=["fra1"])).context["rows"]
    assert row.value == "5 h"


def test_preview_says_how_often_the_edit_would_have_fired_and_saves_nothing(
    small: Small, watched: Rule
) -> None:
    waiting(small, 30, first_started_at=END - 20 * HOUR, state=State.RUNNING)
    address = reverse("web:alert_preview", args=["fra1"])

    page = client_of(small.operator).get(address, {**TYPED, "over": "480", "rule": watched.pk})

    said = page.content.decode()
    assert "Would have fired 1 time in the last 14 days" in said
    assert "As it is, it would have fired 1 time." in said
    watched.refresh_from_db()
    assert watched.over == 4 * H


def test_who_acknowledges_is_named_and_the_second_is_told(small: Small, watched: Rule) -> None:
    waiting(small, 5)
    look(small)
    address = reverse("web:alert_acknowledge", args=["fra1", watched.pk])
    page = reverse("web:alerts", args=["fra1"])
    assert "Nobody has acknowledged it." in client_of(small.operator).get(page).content.decode()

    assert client_of(small.operator).post(address).status_code == 302
    again = client_of(small.operator).post(address, follow=True).content.decode()

    assert Firing.objects.get().acknowledged_by == "op"
    assert "has acknowledged it" in again
    assert "op looks after it" in again


def test_firings_that_nobody_acknowledged_yet_are_counted(small: Small, watched: Rule) -> None:
    for over in (3, 2):
        rule(small, Figure.LONGEST_WAIT, over=over * H)
    waiting(small, 5)
    look(small)
    page, op = reverse("web:alerts", args=["fra1"]), client_of(small.operator)
    said = []
    for firing in Firing.objects.order_by("pk")[:2]:
        op.post(reverse("web:alert_acknowledge", args=["fra1", firing.rule_id]))
        said.append(op.get(page).content.decode())
    assert "3 of 3 rules fire: Longest wait (3)." in said[0]
    assert "2 of them have not been acknowledged." in said[0]
    assert "1 of them has not been acknowledged." in said[1]


@pytest.mark.parametrize("figure", [Figure.LONGEST_WAIT, Figure.WAIT_P90])
def test_look_at_one_moment_says_what_the_series_says_of_it(small: Small, figure: Figure) -> None:
    for n in range(13):
        waiting(small, 5 + n * n / 7)
        waiting(small, 11 + n * n / 3, first_started_at=END - n * HOUR, state=State.RUNNING)

    one = rule(small, figure)

    for hours_ago in (0, 3, 7, 10, 30):
        assert figures(one, hours_ago) == pytest.approx(
            figures(one, 40, hours_ago)[1:], nan_ok=True
        )


def test_rule_on_evictions_in_vain_may_say_more_than_none(small: Small) -> None:
    by = make_user("root", is_superuser=True)
    made = save(by=by, cluster=small.cluster, wish=Wish(Figure.IN_VAIN, over=0))
    assert made.over == 0
