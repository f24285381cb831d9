from django.db import migrations

from portal.audit.guard import guard, unguard


def forwards(apps, schema_editor):
    guard(schema_editor.connection)


def backwards(apps, schema_editor):
    unguard(schema_editor.connection)


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial")]
    operations = [migrations.RunPython(forwards, backwards)]
