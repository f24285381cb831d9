"""The second circle of a rule, and a test delivery: who hears, by which way, and how often."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from portal.alerts import watching
from portal.alerts.models import Figure, Firing, Rule, Tell, Watch
from portal.alerts.rules import Wish, acknowledge, save, wished
from portal.alerts.testing import EVERY, send_test
from portal.notices.models import Kind, Notice, Preference, When
from portal.teams.models import Team
from scheduling.models import Announcement, State, Workload
from scheduling.services.errors import ServiceError
from tests.factories import make_member, make_user, make_workload
from tests.portal.reports.conftest import END, HOUR, Small

pytestmark = pytest.mark.django_db
H = 3600.0


@pytest.fixture
def overdue(small: Small) -> Rule:
    """Of the leads of vision, who were told 5 h ago; after 4 h it is told to a second circle."""
    Watch.objects.create(cluster=small.cluster, at=END - HOUR)
    make_workload(small.vision, submitted_at=END - 9 * HOUR, user="ann", state=State.PENDING)
    rule = Rule.objects.create(
        cluster=small.cluster, figure=Figure.LONGEST_WAIT, over=4 * H, tell=Tell.LEADS,
        queue=small.vision, escalate_s=4 * 3600, escalate_people=["op"],
    )  # fmt: skip
    Firing.objects.create(
        rule=rule,
        queue=small.vision,
        since=END - 5 * HOUR,
        peak=4 * H,
        told=1,
        told_at=END - 5 * HOUR,
    )
    return rule


def look(small: Small) -> None:
    small.cluster.refresh_from_db()
    watching.look(small.cluster)


def told() -> list[str]:
    return sorted(notice.user.get_username() for notice in Notice.objects.select_related("user"))


def test_firing_that_nobody_acknowledged_is_told_to_the_second_circle_once(
    small: Small, overdue: Rule
) -> None:
    look(small)
    look(small)

    (notice,) = Notice.objects.all()
    assert notice.user == small.operator
    assert "Nobody acknowledged it for 5 h" in notice.title
    firing = Firing.objects.get()
    assert (firing.escalated, firing.escalated_at) == (1, END)


@pytest.mark.parametrize(
    "changed", [{"escalate_s": 0}, {"escalate_s": 6 * 3600}], ids=["never", "not yet"]
)
def test_firing_is_not_escalated_before_its_time(
    small: Small, overdue: Rule, changed: dict[str, int]
) -> None:
    Rule.objects.update(**changed)
    look(small)

    assert told() == []


def test_firing_that_somebody_looks_after_is_not_escalated(small: Small, overdue: Rule) -> None:
    acknowledge(Firing.objects.get(), by=small.lead, now=END - HOUR)
    look(small)

    assert told() == []


def test_second_circle_hears_that_it_is_over(small: Small, overdue: Rule) -> None:
    look(small)
    Workload.objects.update(state=State.RUNNING, first_started_at=END)
    look(small)

    over = Notice.objects.filter(title__contains="is over")
    assert {notice.user for notice in over} == {small.lead, small.operator}


def test_escalation_is_in_the_audit_log(
    small: Small, overdue: Rule, settings: pytest.FixtureRequest
) -> None:
    settings.WEIR_SUBSCRIBERS = {"audit": ["*"]}  # type: ignore[attr-defined]
    look(small)

    (kept,) = Announcement.objects.filter(kind="alert.escalated")
    assert kept.after is not None
    assert kept.after["told"] == 1


def test_members_of_the_chosen_team_are_the_second_circle(small: Small, overdue: Rule) -> None:
    team = Team.objects.get(queue=small.vision)
    Rule.objects.update(escalate_people=[], escalate_team=team)
    look(small)

    assert told() == sorted(team.memberships.values_list("user__username", flat=True))


def test_administrators_are_told_where_nobody_is_chosen(small: Small, overdue: Rule) -> None:
    make_member(small.root, name="amy", may_submit=True)
    Rule.objects.update(escalate_people=["who-left"])
    look(small)

    assert told() == ["op"]


def test_lead_may_not_name_people_whom_they_do_not_see(small: Small) -> None:
    make_user("stranger")
    wish = Wish(
        Figure.LONGEST_WAIT, H, queue=small.vision, escalate_s=3600, escalate_people=("stranger",)
    )
    with pytest.raises(ServiceError) as refused:
        save(by=small.lead, cluster=small.cluster, wish=wish)
    assert refused.value.field == "escalate_people"


def test_second_circle_without_a_time_is_refused(small: Small, overdue: Rule) -> None:
    wish = Wish(Figure.LONGEST_WAIT, H, escalate_people=("op",))
    with pytest.raises(ServiceError) as refused:
        save(by=small.operator, cluster=small.cluster, wish=wish, rule=overdue)
    assert refused.value.field == "escalate_s"


def test_new_circle_leaves_what_fires(small: Small, overdue: Rule) -> None:
    wish = Wish(**{**wished(overdue), "escalate_s": 60})
    save(by=small.operator, cluster=small.cluster, wish=wish, rule=overdue)

    assert Firing.objects.get().until is None


def test_test_is_sent_to_both_circles_and_marked(small: Small, overdue: Rule) -> None:
    heard = send_test(overdue, by=small.operator)

    assert {(one.user, one.circle) for one in heard} == {
        (small.lead.get_username(), 1), ("op", 2),
    }  # fmt: skip
    assert all(one.ways[0] == "bell" for one in heard)
    assert all(notice.title.startswith("Test: ") for notice in Notice.objects.all())
    assert Firing.objects.count() == 1


def test_test_says_who_has_turned_alerts_off(small: Small, overdue: Rule) -> None:
    Preference.objects.create(user=small.lead, kind=Kind.ALERT, when=When.OFF)

    (first, _) = send_test(overdue, by=small.operator)

    assert (first.ways, first.due_at) == ((), None)
    assert told() == ["op"]


def test_who_tests_stands_in_for_an_owner(small: Small, overdue: Rule) -> None:
    Rule.objects.update(tell=Tell.OWNER, escalate_s=0)
    overdue.refresh_from_db()

    (heard,) = send_test(overdue, by=small.operator)

    assert (heard.user, heard.stands_in) == ("op", True)


def test_second_test_within_a_minute_is_refused(small: Small, overdue: Rule) -> None:
    send_test(overdue, by=small.operator)
    with pytest.raises(ServiceError) as refused:
        send_test(overdue, by=small.operator)
    assert refused.value.code == "too_soon"

    Rule.objects.update(tested_at=timezone.now() - EVERY - timedelta(seconds=1))
    assert send_test(overdue, by=small.operator)
