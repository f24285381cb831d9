"""The audit log on its page: everything for auditors, a lead's queues for a lead, nothing for others."""

from decimal import Decimal

import pytest

from portal.accounts.models import User
from portal.audit.models import AuditEntry
from portal.web.audit.views import AuditLine
from scheduling.services import events
from scheduling.services.events import announce
from scheduling.services.queues.save import Field, QuotaCell, save_quotas
from tests.factories import example_cluster, make_member
from workshop.demo.organisation import H100

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(django_capture_on_commit_callbacks):
    found = example_cluster()
    with django_capture_on_commit_callbacks(execute=True):
        place = {"cluster": found, "reason": "spring corpus"}
        events.announce(
            "quota.saved", actor="lead", queue="research/vision", subject="vision",
            before={"nominal": 12}, after={"nominal": 16}, **place,
        )  # fmt: skip
        events.announce("quota.saved", actor="other", queue="products/search", **place)
        events.announce("persona.changed", actor="admin", subject="researcher")
        events.announce("member.changed", actor="lead", subject="=1+1", refused=True, **place)
    return found


def edited(cluster, author):
    research = cluster.queues.get(name="research")
    cell = QuotaCell("speech", H100, Field.NOMINAL, Decimal(7))
    return save_quotas(queue=research, cells=[cell], author=author, reason="Spring corpus is done")


def read(client, name, path="/audit/"):
    client.force_login(User.objects.get(username=name))
    return client.get(path)


def test_admin_reads_every_entry_and_the_verdict(cluster, client):
    page = read(client, "admin")
    assert page.context["total"] == 4
    assert page.context["verdict"].whole
    assert b"Chain verified" in page.content
    assert "vision" in page.text


def test_lead_reads_those_of_their_queues_alone(cluster, client):
    page = read(client, "lead")
    assert page.context["total"] == 1
    assert b"products" not in page.content
    assert page.context["verdict"] is None


def test_who_audits_nothing_finds_no_page(cluster, client):
    for path in ("/audit/", "/audit.csv", "/api/v1/audit", "/api/v1/audit/verdict"):
        assert read(client, "researcher", path).status_code == 404


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("who=lead", 2),
        ("what=people", 2),
        ("refused=1", 1),
        ("q=vision", 1),
        ("by=page", 0),
        ("where=research", 1),
        ("where=research/vision", 1),
        ("where=research/vis", 0),
        ("days=1&what=quotas", 2),
        ("days=nonsense&what=nonsense&by=nonsense&before=nonsense", 4),
    ],
)
def test_filters_narrow_and_nonsense_is_passed_over(cluster, client, query, count):
    assert read(client, "admin", f"/audit/?{query}").context["matching"] == count
    assert read(client, "admin", f"/api/v1/audit?{query}").json()["count"] == count


def test_csv_escapes_what_a_spreadsheet_would_run(cluster, client):
    text = read(client, "admin", "/audit.csv").text
    assert ",'=1+1," in text
    assert len(text.splitlines()) == 5


def test_older_entries_follow_on_the_next_page(cluster, client):
    page = read(client, "admin", "/audit/?before=3")
    shown = [line.entry.number for _, lines in page.context["days"] for line in lines]
    assert shown == [2, 1]


def test_auditor_changes_nothing(cluster, client):
    auditor = make_member(cluster.queues.get(parent=None), name="auditor", may_audit=True)
    client.force_login(auditor)
    assert client.post("/audit/").status_code == 405
    assert client.post("/api/v1/audit").status_code == 405
    assert AuditEntry.objects.count() == 4


def test_edit_of_quotas_leads_to_what_was_expected_what_came_and_its_revert(
    cluster, client, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        change = edited(cluster, User.objects.get(username="admin"))
    page = read(client, "admin")
    base = f"/c/fra1/quotas/{change.queue.name}/changes/{change.pk}/"
    assert f'href="{base}"' in page.text
    assert f'href="{base}revert/"' in page.text
    assert "<dt>Expected</dt><dd>nobody planned it ahead</dd>" in page.text
    (line,) = (line for _, lines in page.context["days"] for line in lines if line.edit)
    assert [one.field for one in line.changes] == ["speech, h100-80gb, nominal"]


def test_entry_of_an_edit_that_was_planned_reads_what_came_once_it_is_opened(
    cluster, client, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        change = edited(cluster, User.objects.get(username="admin"))
    assert 'hx-select="#came"' not in read(client, "admin").text
    change.expected = {"lines": []}
    change.save()
    base = f"/c/fra1/quotas/{change.queue.name}/changes/{change.pk}/"
    asked = f'hx-get="{base}" hx-trigger="toggle from:closest details once" hx-select="#came"'
    assert asked in read(client, "admin").text


def test_auditor_who_divides_nothing_is_not_led_to_a_revert(
    cluster, client, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        change = edited(cluster, User.objects.get(username="admin"))
    make_member(cluster.queues.get(parent=None), name="eye", may_audit=True)
    page = read(client, "eye")
    assert f"changes/{change.pk}/" in page.text
    assert f"changes/{change.pk}/revert/" not in page.text


def test_queues_to_choose_are_those_whose_log_is_read(cluster, client):
    assert "products/search" in read(client, "admin").context["paths"]
    assert {path.partition("/")[0] for path in read(client, "lead").context["paths"]} == {
        "research"
    }


def test_repeat_of_an_edit_leads_the_auditor_to_the_edit_that_planned_it(
    cluster, client, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        change = edited(cluster, User.objects.get(username="admin"))
    change.expected = {"planned_with": 7}
    change.save()
    page = read(client, "admin").text
    planned = f"/c/fra1/quotas/{change.queue.name}/changes/7/"
    assert f'<a href="{planned}">Planned with the edit that it repeats</a>' in page
    assert "nobody planned it ahead" not in page


def test_what_an_act_was_about_reads_as_a_fact_and_a_change_as_a_change():
    entry = AuditEntry(before={"state": "open"}, after={"state": "approved", "kind": "boost"})
    assert [(one.field, one.is_fact) for one in AuditLine(entry).changes] == [
        ("state", False),
        ("kind", True),
    ]


def test_fact_stands_in_the_log_without_an_arrow(
    cluster, client, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        announce("request.submit", actor="admin", cluster=cluster, after={"kind": "boost"})
    page = read(client, "admin").text
    assert "kind <b>boost</b>" in page
    assert "<dt>kind</dt><dd>boost</dd>" in page
