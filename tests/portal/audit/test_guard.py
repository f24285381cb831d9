"""The database refuses to change and to delete entries of the audit log, whoever asks it."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction

from portal.audit.guard import REFUSAL, guard, is_guarded, unguard
from portal.audit.models import AuditEntry
from scheduling.services import events

pytestmark = pytest.mark.django_db


@pytest.fixture
def entry(django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        events.announce("quota.saved", actor="lead", subject="search")
    return AuditEntry.objects.get()


def ask(sql):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql)


@pytest.mark.parametrize("sql", [
    "UPDATE audit_auditentry SET reason = 'other'",
    "UPDATE audit_auditentry SET actor = 'nobody' WHERE number = 1",
    "DELETE FROM audit_auditentry",
    "DELETE FROM audit_auditentry WHERE number = 1",
])  # fmt: skip
def test_sql_that_changes_an_entry_is_refused(entry, sql):
    with pytest.raises(DatabaseError, match=REFUSAL):
        ask(sql)
    kept = AuditEntry.objects.get()
    assert (kept.actor, kept.reason, kept.digest) == ("lead", "", entry.digest)


def test_table_is_not_emptied_at_once(entry):
    if connection.vendor != "postgresql":
        return  # SQLite has no TRUNCATE
    with pytest.raises(DatabaseError, match=REFUSAL):
        ask("TRUNCATE audit_auditentry")


def test_queryset_below_the_manager_is_refused_too(entry):
    with pytest.raises(DatabaseError, match=REFUSAL), transaction.atomic():
        AuditEntry._base_manager.update(reason="other")


def test_entries_are_added_as_ever(entry, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        events.announce("quota.saved", actor="lead", subject="vision")
    assert AuditEntry.objects.count() == 2


def test_guard_is_made_anew_and_once(entry):
    for _ in range(2):
        guard(connection)
    assert is_guarded(connection)


def test_verify_says_where_the_guard_is_gone(entry):
    out = StringIO()
    call_command("audit", "verify", stdout=out)
    assert "The database refuses to change or delete them." in out.getvalue()
    unguard(connection)
    with pytest.raises(CommandError, match="The triggers that refuse changes are gone"):
        call_command("audit", "verify")
