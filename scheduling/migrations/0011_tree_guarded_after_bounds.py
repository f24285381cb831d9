"""SQLite copies a table to add a column that is not null, and the copy has lost its triggers.

Queues got their level of pod security that way, so the one that keeps their tree without a cycle is made again.
"""

from importlib import import_module

from django.db import migrations

AGAIN = import_module("scheduling.migrations.0005_tree_guarded_again")


class Migration(migrations.Migration):
    dependencies = [("scheduling", "0010_whom_sentences_name")]
    operations = [migrations.RunPython(AGAIN.forward, migrations.RunPython.noop)]
