from django.db import migrations, models


class Migration(migrations.Migration):
    """The release before goes on writing its table while both run. Nobody empties it afterwards, so its rows
    must hold no cluster back."""

    dependencies = [("scheduling", "0008_release_before_writes")]

    operations = [
        migrations.AlterField(
            model_name="runtimequestion",
            name="cluster",
            field=models.ForeignKey(
                db_constraint=False,
                on_delete=models.deletion.CASCADE,
                related_name="+",
                to="scheduling.cluster",
            ),
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel(name="RunTimeQuestion")]
        ),
    ]
