import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduling", "0003_task_pass"),
    ]

    operations = [
        migrations.RemoveField(
            model_name="adaptingtrial",
            name="experiment",
        ),
        migrations.RemoveField(model_name="adaptation", name="claim"),
        migrations.RemoveField(model_name="adaptation", name="claimed_until"),
        migrations.DeleteModel(
            name="VariantReplay",
        ),
        migrations.DeleteModel(
            name="Variant",
        ),
        migrations.DeleteModel(
            name="Experiment",
        ),
        migrations.DeleteModel(
            name="CapacityPoint",
        ),
        migrations.DeleteModel(
            name="CapacityCurve",
        ),
        migrations.DeleteModel(
            name="CapacityStudy",
        ),
        migrations.DeleteModel(
            name="WhatIf",
        ),
        migrations.CreateModel(
            name="Study",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="studies",
                        to="scheduling.cluster",
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("now", "At once"),
                            ("replay", "At once, and the last days again"),
                            ("edit", "The last days again with an edit of quotas"),
                            ("capacity", "Waits on more and fewer GPUs"),
                            ("experiment", "A period under variants"),
                            ("adapting", "Another value of a parameter that adapts"),
                        ],
                        max_length=10,
                    ),
                ),
                ("name", models.CharField(blank=True, max_length=200)),
                ("author", models.CharField(blank=True, max_length=150)),
                ("question", models.JSONField(default=dict)),
                (
                    "queue",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="studies",
                        to="scheduling.queue",
                    ),
                ),
                ("begin", models.DateTimeField(blank=True, null=True)),
                ("end", models.DateTimeField(blank=True, null=True)),
                ("warm_up_s", models.PositiveIntegerField(default=0)),
                ("replays", models.PositiveIntegerField(default=1)),
                ("is_drawn", models.BooleanField(default=True)),
                ("world", models.JSONField(default=dict)),
                ("work", models.JSONField(default=list)),
                ("basis", models.JSONField(default=dict)),
                ("answer", models.JSONField(default=dict)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("cancelled", "Cancelled"),
                            ("failed", "Failed"),
                        ],
                        default="waiting",
                        max_length=9,
                    ),
                ),
                ("progress", models.PositiveIntegerField(default=0)),
                ("cpu_s", models.FloatField(default=0)),
                ("fault", models.CharField(blank=True, max_length=300)),
                ("asked_at", models.DateTimeField()),
                ("done_at", models.DateTimeField(blank=True, null=True)),
                ("made_at", models.DateTimeField(auto_now_add=True)),
                ("is_kept", models.BooleanField(default=False)),
            ],
            options={
                "ordering": ["-asked_at", "-id"],
                "indexes": [
                    models.Index(fields=["cluster", "kind", "asked_at"], name="study_asked")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("progress__lte", 100)), name="study_progress_percent"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("replays__gte", 1)), name="study_replays"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("end", None), ("end__gt", models.F("begin")), _connector="OR"
                        ),
                        name="study_in_order",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Variant",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "study",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="variants",
                        to="scheduling.study",
                    ),
                ),
                ("letter", models.CharField(max_length=80)),
                ("name", models.CharField(max_length=200)),
                ("changes", models.JSONField(default=list)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("cancelled", "Cancelled"),
                            ("failed", "Failed"),
                        ],
                        default="waiting",
                        max_length=9,
                    ),
                ),
                ("fault", models.CharField(blank=True, max_length=300)),
                ("promoted_at", models.DateTimeField(blank=True, null=True)),
                ("promoted_by", models.CharField(blank=True, max_length=150)),
                ("reason", models.CharField(blank=True, max_length=500)),
            ],
            options={
                "ordering": ["study", "id"],
                "constraints": [
                    models.UniqueConstraint(fields=("study", "letter"), name="variant_letter")
                ],
                "indexes": [],
            },
        ),
        migrations.CreateModel(
            name="Result",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "variant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="results",
                        to="scheduling.variant",
                    ),
                ),
                ("seed", models.PositiveIntegerField()),
                ("claim", models.CharField(blank=True, max_length=32)),
                ("held_until", models.DateTimeField(blank=True, null=True)),
                ("done_at", models.DateTimeField(blank=True, null=True)),
                ("took_s", models.FloatField(default=0)),
                ("figures", models.JSONField(default=dict)),
                ("queues", models.JSONField(default=dict)),
            ],
            options={
                "ordering": ["variant", "seed"],
                "indexes": [models.Index(fields=["done_at", "held_until"], name="result_open")],
                "constraints": [
                    models.UniqueConstraint(fields=("variant", "seed"), name="result_once")
                ],
            },
        ),
        migrations.AddField(
            model_name="adaptingtrial",
            name="study",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="scheduling.study",
            ),
        ),
    ]
