from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduling", "0012_cycle_records")]
    operations = [
        migrations.AddField(
            model_name="node",
            name="troubles",
            field=models.JSONField(default=list),
        ),
    ]
