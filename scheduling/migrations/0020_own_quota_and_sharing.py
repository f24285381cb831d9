"""When each workload would have started on its own quota, and how subtrees share.

The trigger that keeps the tree of queues without a cycle is made again, as after every column of theirs
(0011).
"""

from importlib import import_module

from django.db import migrations, models

AGAIN = import_module("scheduling.migrations.0005_tree_guarded_again")


class Migration(migrations.Migration):
    dependencies = [
        ("scheduling", "0019_consolidations_ordered"),
    ]

    operations = [
        migrations.AddField(
            model_name="historicalqueue",
            name="sharing",
            field=models.CharField(
                blank=True,
                choices=[
                    ("fair_share", "Fair share"),
                    ("promise", "Promise"),
                    ("throughput", "Throughput"),
                ],
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="sharing",
            field=models.CharField(
                blank=True,
                choices=[
                    ("fair_share", "Fair share"),
                    ("promise", "Promise"),
                    ("throughput", "Throughput"),
                ],
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="workload",
            name="saved_s",
            field=models.FloatField(default=0),
        ),
        migrations.AddField(
            model_name="workload",
            name="virtual_start_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AlterField(
            model_name="eviction",
            name="rule",
            field=models.CharField(
                choices=[
                    ("reclaim", "reclaim"),
                    ("preempt", "preempt"),
                    ("give_way", "give way"),
                    ("consolidate", "consolidate"),
                    ("stale_gang", "stale gang"),
                    ("drain", "drain"),
                ],
                max_length=11,
            ),
        ),
        migrations.RunPython(AGAIN.forward, migrations.RunPython.noop),
    ]
