from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduling", "0013_cycle_causes_and_writes")]
    operations = [
        migrations.AddField(
            model_name="node",
            name="troubles",
            field=models.JSONField(default=list),
        ),
    ]
