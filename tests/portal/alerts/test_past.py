"""The page, the CSV and the API of what fired in 90 days."""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from portal.alerts.models import Figure, Firing, Rule
from portal.alerts.past import DAYS, past
from tests.portal.reports.conftest import END, HOUR, Small

pytestmark = pytest.mark.django_db
UTC = ZoneInfo("UTC")
DAY = timedelta(days=1)


@pytest.fixture
def rule(small: Small) -> Rule:
    return Rule.objects.create(
        cluster=small.cluster, figure=Figure.LONGEST_WAIT, over=3600, queue=small.vision
    )


def fired(rule: Rule, ago: timedelta, lasted: timedelta | None, **fields: object) -> Firing:
    since = END - ago
    until = None if lasted is None else since + lasted
    return Firing.objects.create(rule=rule, since=since, until=until, peak=1, **fields)


def test_days_count_what_began_and_say_when_it_went_on(small: Small, rule: Rule) -> None:
    fired(rule, 3 * DAY, 2 * HOUR)
    fired(rule, 2 * DAY, DAY)

    (row,) = past(small.operator, small.cluster, UTC).rows

    assert len(row.days) == DAYS
    lately = [(day.begun, day.fired) for day in row.days[-5:]]
    assert lately == [(0, False), (1, True), (1, True), (0, True), (0, False)]


def test_what_ended_before_the_90_days_is_left_out(small: Small, rule: Rule) -> None:
    fired(rule, 120 * DAY, HOUR)
    fired(rule, 100 * DAY, 15 * DAY)

    (row,) = past(small.operator, small.cluster, UTC).rows

    assert row.fired == 1
    assert [day.fired for day in row.days[:8]] == [True] * 5 + [False] * 3


def test_times_are_over_what_was_acknowledged_and_over_what_is_over(
    small: Small, rule: Rule
) -> None:
    for hours in range(1, 12):
        since = END - DAY * hours
        fired(rule, DAY * hours, 2 * HOUR * hours, acknowledged_at=since + HOUR * hours)
    fired(rule, HOUR, None)

    (row,) = past(small.operator, small.cluster, UTC).rows

    assert (row.acknowledged.count, row.acknowledged.median_s) == (11, 6 * 3600)
    assert row.acknowledged.p90_s == pytest.approx(10 * 3600)
    assert (row.resolved.count, row.resolved.median_s) == (11, 12 * 3600)
    assert (row.fired, row.unacknowledged) == (12, 1)


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def test_page_says_how_many_rules_fired_how_often(small: Small, rule: Rule) -> None:
    fired(rule, DAY, HOUR, acknowledged_at=END - DAY + HOUR / 2)

    page = client_of(small.operator).get(reverse("web:alert_past", args=["fra1"])).content.decode()

    assert "1 of 1 rule fired 1 time." in page
    assert "Somebody acknowledged 1, after 30 min. 1 is over, after 1 h." in page
    fired(rule, DAY / 2, HOUR, acknowledged_at=END - DAY / 2 + HOUR / 2)
    page = client_of(small.operator).get(reverse("web:alert_past", args=["fra1"])).content.decode()
    assert "Somebody acknowledged 2, half of them within 30 min." in page


def test_lead_has_the_past_of_own_queues_alone(small: Small, rule: Rule) -> None:
    fired(rule, DAY, HOUR)
    other = Rule.objects.create(
        cluster=small.cluster, figure=Figure.LONGEST_WAIT, over=3600, queue=small.platform
    )
    fired(other, DAY, HOUR)
    lead = client_of(small.lead)

    (told,) = lead.get("/api/v1/clusters/fra1/alerts/past").json()
    lines = lead.get(reverse("web:alert_past_csv", args=["fra1"])).content.decode().splitlines()

    assert told["rule"] == rule.pk
    assert len(lines) == 2
    assert lines[1].startswith(f"{rule.pk},longest_wait,{small.vision.path},")


def test_button_says_who_hears_by_which_way(small: Small, rule: Rule) -> None:
    address = reverse("web:alert_test", args=["fra1", rule.pk])

    page = client_of(small.operator).post(address, follow=True).content.decode()

    assert "A test was sent." in page
    assert "op: bell" in page


def test_api_sets_the_second_circle_and_tells_it(small: Small, rule: Rule) -> None:
    operator, address = client_of(small.operator), f"/api/v1/clusters/fra1/alerts/{rule.pk}"
    body = {"escalate_s": 7200, "escalate_people": ["op"]}

    told = operator.put(address, body, content_type="application/json")

    assert told.status_code == 200
    assert (told.json()["escalate_s"], told.json()["escalate_people"]) == (7200, ["op"])
    refused = operator.put(
        address, body | {"escalate_people": ["nobody"]}, content_type="application/json"
    )
    assert refused.status_code == 400
