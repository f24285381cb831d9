from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("scheduling", "0042_learned_effects")]

    operations = [
        migrations.DeleteModel("LearnedDifference"),
        migrations.DeleteModel("LearnedEffect"),
        migrations.DeleteModel("LearnedLife"),
        migrations.DeleteModel("LearnedStep"),
        migrations.DeleteModel("LearnedOrder"),
        migrations.RemoveField("cluster", "learned_may_decide"),
        migrations.RemoveField("historicalcluster", "learned_may_decide"),
    ]
