import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduling", "0011_tree_guarded_after_bounds")]
    operations = [
        migrations.CreateModel(
            name="CycleRecord",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("snapshot", models.BinaryField(null=True)),
                ("queues", models.JSONField(default=list)),
                ("phases", models.JSONField(default=list)),
                ("written", models.PositiveIntegerField(default=0)),
                ("refused", models.PositiveIntegerField(default=0)),
                (
                    "cycle",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="record",
                        to="scheduling.cycle",
                    ),
                ),
            ],
        ),
    ]
