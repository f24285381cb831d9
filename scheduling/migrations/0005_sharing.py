from django.db import migrations, models

WAYS = [("fair_share", "Fair share"), ("promise", "Promise"), ("throughput", "Throughput")]


def keep_what_is_in_force(apps, schema_editor):
    """A cluster shares as its root said; of itself a root says nothing any more."""
    roots = apps.get_model("scheduling", "Queue").objects.filter(parent=None).exclude(sharing="")
    clusters = apps.get_model("scheduling", "Cluster").objects
    for root in roots:
        clusters.filter(pk=root.cluster_id).update(sharing=root.sharing)
    roots.update(sharing="")


class Migration(migrations.Migration):
    dependencies = [("scheduling", "0004_start_changes")]

    # Clusters that are there keep what they have: the default of new ones comes after their rows.
    operations = [
        *(
            migrations.AddField(
                model_name=name,
                name="sharing",
                field=models.CharField(choices=WAYS, default="fair_share", max_length=10),
            )
            for name in ("cluster", "historicalcluster")
        ),
        migrations.RunPython(keep_what_is_in_force, migrations.RunPython.noop),
        *(
            migrations.AlterField(
                model_name=name,
                name="sharing",
                field=models.CharField(choices=WAYS, default="promise", max_length=10),
            )
            for name in ("cluster", "historicalcluster")
        ),
    ]
