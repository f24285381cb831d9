"""What the database itself refuses of the audit log, after the tables were made (``portal.audit.guard``)."""

from django.db import migrations

from portal.audit.guard import guard, unguard


def forwards(apps, schema_editor):
    guard(schema_editor.connection)


def backwards(apps, schema_editor):
    unguard(schema_editor.connection)


GUARDS = (migrations.RunPython(forwards, backwards),)
