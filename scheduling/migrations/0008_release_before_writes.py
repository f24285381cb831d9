"""The release before writes rows without columns that it does not know: while both run, the database fills them.

Of PostgreSQL alone: on SQLite no two versions run at once.
"""

from django.db import migrations

LEVELS = (
    "'block=weir.dev/block,topology.kubernetes.io/zone; rack=weir.dev/rack,topology.kubernetes.io/rack'"
)
COLUMNS = (
    ("scheduling_cluster", "topology_levels", LEVELS),
    ("scheduling_historicalcluster", "topology_levels", LEVELS),
    ("scheduling_cluster", "sharing", "'fair_share'"),
    ("scheduling_historicalcluster", "sharing", "'fair_share'"),
    ("scheduling_workload", "turn", "'{}'::jsonb"),
    ("scheduling_workload", "shapes", "'[]'::jsonb"),
    ("scheduling_workday", "seconds", "86400"),
)


def fill(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        for table, column, value in COLUMNS:
            schema_editor.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET DEFAULT {value}")


class Migration(migrations.Migration):
    dependencies = [("scheduling", "0007_hours_of_today")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
