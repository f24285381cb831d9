from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduling", "0023_wait_for_class")]

    operations = [
        migrations.AddField("process", "cpu", models.FloatField(null=True)),
        migrations.AddField("process", "memory_mib", models.PositiveIntegerField(null=True)),
    ]
