"""What is added to the audit log stays, and whoever touches it is found out."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from portal.accounts.models import Persona, User
from portal.audit.chain import verify
from portal.audit.models import AuditEntry, ChainHead
from scheduling.models import Announcement, ClusterMode, Delivery
from scheduling.services import events
from scheduling.services.clusters.add import set_mode
from tests.database import unguarded
from tests.factories import example_cluster

pytestmark = pytest.mark.django_db


@pytest.fixture
def told(django_capture_on_commit_callbacks):
    """Three events, delivered as on commit."""
    with django_capture_on_commit_callbacks(execute=True):
        for i in range(3):
            events.announce("quota.saved", actor="lead", subject=f"queue-{i}", after={"n": i})
    return list(AuditEntry.objects.order_by("number"))


def raw(sql, *values):
    """As by who owns the table, and dropped the triggers."""
    with unguarded(connection), connection.cursor() as cursor:
        cursor.execute(sql, values)


def test_entries_are_numbered_and_each_holds_the_digest_before_it(told):
    assert [entry.number for entry in told] == [1, 2, 3]
    assert [entry.previous for entry in told[1:]] == [entry.digest for entry in told[:2]]
    assert verify().whole


def test_nul_that_no_database_can_hold_is_kept_as_a_sign(django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        events.announce("quota.saved", subject="a\0b", after={"names": ["c\0"]})
    entry = AuditEntry.objects.get()
    assert (entry.subject, entry.after) == ("a␀b", {"names": ["c␀"]})


def test_nothing_of_an_announcement_stays_once_everybody_had_it(told):
    assert not Announcement.objects.exists()
    assert not Delivery.objects.exists()


def test_entry_that_was_changed_is_named(told):
    raw("UPDATE audit_auditentry SET reason = 'other' WHERE number = 2")
    assert (verify().fault, verify().number) == ("Entry 2 was changed.", 2)


def test_entry_that_was_taken_out_is_named(told):
    raw("DELETE FROM audit_auditentry WHERE number = 2")
    assert verify().fault == "Entry 2 is missing."


def test_entries_cut_off_the_end_are_missed(told):
    raw("DELETE FROM audit_auditentry WHERE number = 3")
    assert verify().fault == "Entries from 3 to 3 are missing."


def test_end_that_was_rewritten_with_its_head_lacks_the_digest_noted_outside(told):
    noted = told[2].digest
    raw("DELETE FROM audit_auditentry WHERE number = 3")
    ChainHead.objects.update(number=2, digest=told[1].digest)
    assert verify().whole
    assert verify(noted).fault == "The digest that was noted is of no entry."


def test_entry_is_neither_saved_again_nor_deleted(told):
    for act in (told[0].save, told[0].delete, AuditEntry.objects.all().delete):
        with pytest.raises(TypeError):
            act()
    with pytest.raises(TypeError):
        AuditEntry.objects.update(reason="other")


def test_command_says_where_the_chain_breaks(told):
    out = StringIO()
    call_command("audit", "verify", stdout=out)
    assert "3 entries, none missing, none changed." in out.getvalue()
    raw("UPDATE audit_auditentry SET actor = 'nobody' WHERE number = 1")
    with pytest.raises(CommandError, match=r"Entry 1 was changed"):
        call_command("audit", "verify")


def test_event_is_undone_with_what_it_tells_of(db):
    with transaction.atomic():
        events.announce("quota.saved")
        transaction.set_rollback(True)
    assert not Delivery.objects.exists()


def test_delivery_that_a_kill_left_arrives_later_and_once(db):
    events.announce("quota.saved", subject="q")
    assert AuditEntry.objects.count() == 0
    assert events.deliver_due() == 1
    assert events.deliver_due() == 0
    assert AuditEntry.objects.get().subject == "q"


def test_delivery_whose_subscriber_fails_is_put_off_and_writes_nothing(settings, db):
    settings.WEIR_SUBSCRIBERS = {"tests.portal.audit.test_chain.fail": ("*",)}
    events.announce("quota.saved")
    assert events.deliver_due() == 0
    left = Delivery.objects.get()
    assert left.tries == 1
    assert not AuditEntry.objects.exists()


def fail(announcement):
    raise RuntimeError(announcement.kind)


def test_mode_is_told_with_who_as_what_and_whence(client, django_capture_on_commit_callbacks):
    example_cluster()
    client.force_login(User.objects.get(username="admin"))
    AuditEntry.objects.all()
    with django_capture_on_commit_callbacks(execute=True):
        client.post("/c/fra1/cluster/mode/paused/", REMOTE_ADDR="10.20.4.17")
    entry = AuditEntry.objects.filter(kind="cluster.mode_set").get()
    assert (entry.actor, entry.allowed_as) == ("admin", "admin, operations")
    assert (entry.before, entry.after) == ({"mode": "enforce"}, {"mode": "paused"})
    assert (entry.via, entry.address, entry.cluster) == ("page", "10.20.4.17", "fra1")


def test_write_that_is_turned_down_is_told_as_refused(client, django_capture_on_commit_callbacks):
    example_cluster()
    client.force_login(User.objects.get(username="researcher"))
    with django_capture_on_commit_callbacks(execute=True):
        client.post("/c/fra1/cluster/mode/paused/")
    entry = AuditEntry.objects.get(kind="request.refused")
    assert (entry.refused, entry.actor) == (True, "researcher")
    assert entry.subject == "POST /c/fra1/cluster/mode/paused/"


def test_mode_that_was_so_already_is_no_event(db):
    set_mode(example_cluster(), ClusterMode.ENFORCE)
    assert not Delivery.objects.exists()


def test_submission_that_the_judge_refuses_is_told_as_refused(
    client, django_capture_on_commit_callbacks
):
    cluster = example_cluster()
    Persona.objects.filter(name="researcher").update(max_gpus_at_once=1000)
    client.force_login(User.objects.get(username="researcher"))
    asked = {
        "name": "too-large", "queue": "pretraining", "image": "python:3.12", "gpus_per_pod": 2,
        "gpu_classes": ["h100-80gb"], "run_time_limit_s": 60,
    }  # fmt: skip
    with django_capture_on_commit_callbacks(execute=True):
        answer = client.post(
            f"/api/v1/clusters/{cluster.name}/workloads", asked, content_type="application/json"
        )
    assert answer.status_code == 400
    entry = AuditEntry.objects.get(kind="work.submitted")
    assert (entry.refused, entry.actor, entry.queue) == (
        True, "researcher", cluster.queues.get(name="pretraining").path,
    )  # fmt: skip
    assert entry.subject == "pretraining/too-large"
    assert "may hold at once. Ask for fewer GPUs" in entry.reason
