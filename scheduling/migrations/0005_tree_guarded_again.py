"""SQLite copies a table to add a column that is not null, and the copy has lost its triggers.

So the one that keeps the queue tree without a cycle, gone since queues got their access group, is made again.
"""

from importlib import import_module

from django.db import migrations

TREE = import_module("scheduling.migrations.0002_tree_and_ranges")


def forward(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute("DROP TRIGGER IF EXISTS queue_no_cycle")
        schema_editor.execute(TREE.SQLITE[0])


class Migration(migrations.Migration):
    dependencies = [("scheduling", "0004_shares_and_limits")]
    operations = [migrations.RunPython(forward, migrations.RunPython.noop)]
