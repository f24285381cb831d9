"""The release before writes rules without the column that it does not know (PostgreSQL)."""

from django.db import migrations


def fill(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("ALTER TABLE alerts_rule ALTER COLUMN who SET DEFAULT 0")


class Migration(migrations.Migration):
    dependencies = [("alerts", "0002_value_of_the_last_look")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
