"""Edits that repeat, and what is to come of the quotas."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from portal.accounts.models import User
from portal.web.quotas.again import repeated
from scheduling.models import Queue, QuotaChange
from scheduling.services.queues.coming_changes import coming
from scheduling.services.queues.save import EditFault, Field, QuotaCell, revert_change, save_quotas
from tests.factories import NOW
from tests.portal.web.quotas.test_quotas_page import URL, cluster, lead, name, nominal, post

__all__ = ["cluster", "lead", "name"]
pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
FROM = (NOW + DAY).replace(hour=18, minute=0)
SPAN = {
    "effective_from": f"{FROM:%Y-%m-%dT%H:%M}",
    "effective_until": f"{FROM + DAY / 2:%Y-%m-%dT%H:%M}",
}
BERLIN = ZoneInfo("Europe/Berlin")


def in_utc(client, user="lead"):
    User.objects.filter(username=user).update(display_time_zone="UTC")
    return client


def test_edit_that_repeats_holds_each_time_and_no_longer(lead, name):
    edits = {name("vision"): "8", name("speech"): "16"}
    answer = post(in_utc(lead), edits, repeat="week", times="3", **SPAN)

    assert answer.status_code == 302
    assert QuotaChange.objects.count() == 3
    for week in range(3):
        begins = FROM + week * 7 * DAY
        held = [nominal("vision", at=begins + hours * DAY / 24) for hours in (-1, 1, 13)]
        assert held == [16, 8, 16]
    assert nominal("vision", at=FROM + 21 * DAY + DAY / 24) == 16
    assert ", 3 times." in lead.get(URL).content.decode()


def test_repeat_of_an_edit_leads_to_the_edit_with_which_it_was_planned(lead, name):
    post(in_utc(lead), {name("vision"): "8"}, repeat="week", times="2", **SPAN)
    first, second = QuotaChange.objects.order_by("effective_from")
    place = f"/c/fra1/quotas/{first.queue.name}/changes"

    page = lead.get(f"{place}/{second.pk}/").content.decode()
    assert f'<a href="{place}/{first.pk}/">Planned with the edit that it repeats</a>' in page
    assert "Planned with" not in lead.get(f"{place}/{first.pk}/").content.decode()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"repeat": "week", "times": "3"}, "An edit that repeats begins and ends each time."),
        ({"repeat": "year", "times": "3", **SPAN}, "It repeats every day or every week."),
        ({"repeat": "week", "times": "1", **SPAN}, "“1” is no number of times. Write 2 to 60."),
        ({"repeat": "week", "times": "1e9", **SPAN}, "is no number of times."),
        (
            {"repeat": "day", "times": "3", **SPAN,
             "effective_until": f"{FROM + 2 * DAY:%Y-%m-%dT%H:%M}"},
            "It would hold for longer than a day",
        ),
    ],
)  # fmt: skip
def test_repetition_that_cannot_be_is_told_at_its_field_and_saves_nothing(lead, name, fields, said):
    answer = post(in_utc(lead), {name("vision"): "8"}, **fields)
    assert answer.status_code == 400
    page = answer.content.decode()
    assert said in page[page.index('id="repeat-hint"') :]
    assert not QuotaChange.objects.exists()


def test_repetition_keeps_the_time_of_the_clock_where_summer_time_ends():
    start = datetime(2026, 10, 23, 16, tzinfo=UTC)
    found = repeated("day", "4", (start, start + DAY / 2), BERLIN)
    assert not isinstance(found, EditFault)
    assert [begins.hour for begins, _ in found] == [16, 17, 17]


def test_second_time_whose_sum_does_not_hold_saves_none(lead, cluster, name):
    lend = [QuotaCell("speech", "h100-80gb", Field.NOMINAL, Decimal(0))]
    research = Queue.objects.get(name="research")
    save_quotas(
        queue=research, cells=[*lend, QuotaCell("robotics", "h100-80gb", Field.NOMINAL, Decimal(12))],
        author=None, reason="Before", effective_from=FROM + 6 * DAY, effective_until=FROM + 9 * DAY,
    )  # fmt: skip
    answer = post(
        in_utc(lead), {name("speech"): "16", name("vision"): "8"}, repeat="week", times="2", **SPAN
    )
    assert answer.status_code == 400
    assert QuotaChange.objects.count() == 1


def test_calendar_tells_begin_and_end_in_order_and_not_what_was_reverted(cluster, lead, name):
    research = Queue.objects.get(name="research")
    cells = [QuotaCell("vision", "h100-80gb", Field.NOMINAL, Decimal(8))]
    kept, dropped = (
        save_quotas(
            queue=research, cells=cells, author=None, reason=reason,
            effective_from=at, effective_until=at + DAY,
        )
        for reason, at in (("Kept", FROM + 7 * DAY), ("Dropped", FROM))
    )  # fmt: skip
    assert [step.at for step in coming(research, NOW)] == [
        FROM, FROM + DAY, kept.effective_from, kept.effective_until,
    ]  # fmt: skip
    revert_change(change=dropped, author=None, reason="No")
    steps = coming(research, NOW)
    assert [(step.at, step.change, step.is_end) for step in steps] == [
        (kept.effective_from, kept, False), (kept.effective_until, kept, True),
    ]  # fmt: skip
    page = lead.get(URL).content.decode()
    card = page[page.index('id="coming-title"') :]
    assert card.index("vision 16 → 8") < card.index("old values come back")
    assert card.index("old values come back") < card.index("vision 8 → 16")


def test_page_without_anything_to_come_has_no_calendar(lead):
    assert "coming-title" not in lead.get(URL).content.decode()
