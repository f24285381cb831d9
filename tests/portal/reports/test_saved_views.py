"""Saved views: kept under a name with their filters, and told each Monday as the person may have them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from portal.accounts.models import User
from portal.notices import weekly
from portal.notices.models import Kind, Letter, Notice, Preference, When
from portal.reports.kinds import REPORTS
from portal.reports.letters import lines_of
from portal.reports.models import SavedView
from portal.reports.saved_views import MOST, save_view
from scheduling.models import Cluster
from scheduling.services.errors import ServiceError
from tests.factories import make_member
from tests.portal.reports.conftest import END, Small
from tests.portal.reports.test_pages import client_of, filled, url  # noqa: F401 - a fixture

pytestmark = pytest.mark.django_db
MONDAY = datetime(2026, 11, 23, 8, 30, tzinfo=UTC)


def keep(small: Small, user: User | None = None, **fields: object) -> SavedView:
    given = {
        "name": "ours",
        "kind": "waits",
        "query": "range=7d&queue=vision",
        "weekly": True,
        **fields,
    }
    return save_view(user=user or small.lead, cluster=small.cluster, **given)  # type: ignore[arg-type]


def test_view_keeps_the_report_and_its_filters(small: Small) -> None:
    view = keep(small, query="range=7d&queue=vision&nonsense=1")
    assert (view.kind, view.query) == ("waits", "range=7d&queue=vision")


def test_saving_a_name_again_replaces_the_view(small: Small) -> None:
    keep(small)
    keep(small, kind="use", query="")
    assert [view.kind for view in SavedView.objects.all()] == ["use"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": "  "}, "name"),
        ({"name": "x" * 64}, "name"),
        ({"name": "nul\x00"}, "name"),
        ({"kind": "nothing"}, "kind"),
        ({"query": "queue=platform"}, "query"),
        ({"query": "from=yesterday"}, "query"),
    ],
)
def test_faulty_view_is_refused_at_its_field(
    small: Small, fields: dict[str, str], field: str
) -> None:
    with pytest.raises(ServiceError) as refused:
        keep(small, **fields)
    assert refused.value.field == field
    assert not SavedView.objects.exists()


def test_views_of_a_person_are_bounded(small: Small) -> None:
    SavedView.objects.bulk_create(
        SavedView(user=small.lead, cluster=small.cluster, name=f"v{i}", kind="use")
        for i in range(MOST)
    )
    with pytest.raises(ServiceError):
        keep(small, name="one more")
    assert keep(small, name="v3").kind == "waits"


def test_page_offers_to_keep_the_view_and_leads_back_to_it(filled: Small) -> None:  # noqa: F811
    client = client_of(filled.lead)
    form = {
        "name": "Vision waits",
        "kind": "waits",
        "query": "range=7d&queue=vision",
        "weekly": "on",
    }
    answer = client.post("/c/fra1/reports/views/save", form)
    assert answer.url == f"{url('waits')}?range=7d&queue=vision"
    page = client.get(answer.url).content.decode()
    assert "Vision waits" in page
    assert "Vision waits" in client.get("/c/fra1/reports/views").content.decode()


def test_refused_view_is_shown_with_what_was_typed(filled: Small) -> None:  # noqa: F811
    form = {"name": "mine", "kind": "waits", "query": "queue=platform"}
    answer = client_of(filled.lead).post("/c/fra1/reports/views/save", form)
    assert answer.status_code == 400
    text = answer.content.decode()
    assert 'value="mine"' in text
    assert "no longer holds" in text


@pytest.mark.parametrize(
    ("typed", "told", "kept"),
    [({"weekly": "on"}, True, 1), ({}, False, 1), ({"drop": "1"}, None, 0)],
)
def test_view_is_told_stopped_or_dropped_by_its_button(
    filled: Small, typed: dict[str, str], told: bool | None, kept: int  # noqa: F811
) -> None:  # fmt: skip
    view = keep(filled, weekly=not told)
    client_of(filled.lead).post(f"/c/fra1/reports/views/{view.pk}", typed)
    assert SavedView.objects.count() == kept
    if kept:
        assert SavedView.objects.get().weekly is told


def test_view_of_another_is_absent(filled: Small) -> None:  # noqa: F811
    view = keep(filled)
    client = client_of(filled.operator)
    assert client.post(f"/c/fra1/reports/views/{view.pk}", {"drop": "1"}).status_code == 404
    assert client.get(f"/api/v1/clusters/fra1/reports/views/{view.pk}").status_code == 404
    assert SavedView.objects.exists()


def test_view_is_kept_read_and_dropped_by_rest(filled: Small) -> None:  # noqa: F811
    client = client_of(filled.lead)
    at = "/api/v1/clusters/fra1/reports/views"
    made = client.post(at, {"name": "mine", "kind": "use", "query": "range=7d"}, "application/json")
    assert made.status_code == 201
    assert [view["name"] for view in client.get(at).json()] == ["mine"]
    assert client.delete(f"{at}/{made.json()['id']}").status_code == 204
    assert client.get(at).json() == []


class TestMonday:
    """When a view is told, once."""

    @pytest.fixture
    def kept(self, filled: Small) -> SavedView:  # noqa: F811
        Cluster.objects.update(clock_start=END, clock_speed=0)
        return keep(filled)

    @pytest.mark.parametrize(
        ("after", "told"),
        [
            (timedelta(0), 1),
            (-timedelta(hours=2), 0),
            (timedelta(days=1), 1),
            (timedelta(days=3), 0),
        ],
    )
    def test_view_is_told_from_the_hour_of_the_digest_on_for_two_days(
        self, kept: SavedView, after: timedelta, told: int
    ) -> None:
        with time_machine.travel(MONDAY + after, tick=False):
            assert weekly.look() == told

    def test_view_is_told_once_a_monday(self, kept: SavedView) -> None:
        with time_machine.travel(MONDAY, tick=False):
            assert (weekly.look(), weekly.look()) == (1, 0)
        with time_machine.travel(MONDAY + timedelta(days=7), tick=False):
            assert weekly.look() == 1
        assert Notice.objects.filter(kind=Kind.REPORT).count() == 2

    def test_view_says_what_its_report_says_to_that_person(self, kept: SavedView) -> None:
        with time_machine.travel(MONDAY, tick=False):
            weekly.look()
        notice = Notice.objects.get()
        lines = dict(notice.lines)
        assert notice.title == "ours: queue waits of fra1"
        assert notice.address == f"{url('waits')}?range=7d&queue=vision"
        assert "In short" in lines
        assert lines["h100"].startswith("P50 ")
        assert "platform" not in str(notice.lines)

    def test_view_goes_by_mail_unless_the_person_wants_none(
        self, kept: SavedView, settings: object
    ) -> None:
        settings.WEIR_MAIL_HOST = "mail.invalid"  # type: ignore[attr-defined]
        User.objects.filter(pk=kept.user_id).update(email="lea@example.org")
        with time_machine.travel(MONDAY, tick=False):
            weekly.look()
        assert Letter.objects.filter(user=kept.user, way="mail").count() == 1

    def test_kind_that_is_off_tells_nothing_and_does_not_come_back(self, kept: SavedView) -> None:
        Preference.objects.create(user=kept.user, kind=Kind.REPORT, when=When.OFF)
        with time_machine.travel(MONDAY, tick=False):
            weekly.look()
            Preference.objects.all().delete()
            assert weekly.look() == 0
        assert not Notice.objects.exists()

    def test_view_that_no_longer_holds_says_so(self, kept: SavedView) -> None:
        SavedView.objects.update(query="queue=platform")
        with time_machine.travel(MONDAY, tick=False):
            weekly.look()
        ((word, said),) = Notice.objects.get().lines
        assert word == "Not made"
        assert "no longer holds" in said

    def test_person_without_a_queue_is_told_to_drop_it(self, kept: SavedView) -> None:
        kept.user.memberships.all().delete()
        with time_machine.travel(MONDAY, tick=False):
            weekly.look()
        assert Notice.objects.get().lines[0][0] == "Not made"


def test_every_report_has_lines_for_a_letter(filled: Small) -> None:  # noqa: F811
    payer = make_member(filled.root, name="pay", may_read_costs=True, may_operate=True)
    for kind, declared in REPORTS.items():
        report = declared.compute(filled.cluster, filled.last(), payer)
        table = next(table for table in report.tables() if table.name == declared.letter.table)
        wanted = [names.split("|") for names, _ in declared.letter.columns]
        assert all(set(names) & set(table.columns) for names in wanted), kind
        assert lines_of(kind, report, filled.last())[0][0] == "Range"
