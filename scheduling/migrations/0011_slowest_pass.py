from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduling", "0010_edits_of_work")]

    operations = [
        migrations.AddField("cycle", "slowest_ms", models.FloatField(null=True)),
        migrations.AddField("cycle", "slowest_at", models.DateTimeField(null=True)),
    ]
