"""Clusters that were there before the figure have the rule that new ones begin with."""

from typing import Any

from django.db import migrations


def watch(apps: Any, schema_editor: Any) -> None:
    rules = apps.get_model("alerts", "Rule")
    # Those that nobody has looked at yet get all first rules then.
    looked_at = apps.get_model("alerts", "Watch").objects.values("cluster")
    known = rules.objects.filter(figure="in_vain").values("cluster")
    rules.objects.bulk_create(
        rules(cluster_id=pk, figure="in_vain", over=0, tell="operators")
        for pk in looked_at.exclude(cluster__in=known).values_list("cluster", flat=True)
    )


class Migration(migrations.Migration):
    dependencies = [("alerts", "0001_initial")]

    operations = [migrations.RunPython(watch, migrations.RunPython.noop)]
