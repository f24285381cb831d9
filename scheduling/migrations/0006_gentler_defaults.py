"""New clusters keep nodes after a day of waiting, take back what is above nominal after an hour, and evict
nobody more than three times: the defaults of ``engine.model.Policy``.
"""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scheduling', '0005_tree_guarded_again'),
    ]

    operations = [
        migrations.AlterField(
            model_name='cluster',
            name='reserve_after_s',
            field=models.PositiveIntegerField(default=86400),
        ),
        migrations.AlterField(
            model_name='historicalcluster',
            name='reserve_after_s',
            field=models.PositiveIntegerField(default=86400),
        ),
        migrations.AlterField(
            model_name='cluster',
            name='fair_share_delay_s',
            field=models.PositiveIntegerField(default=3600),
        ),
        migrations.AlterField(
            model_name='historicalcluster',
            name='fair_share_delay_s',
            field=models.PositiveIntegerField(default=3600),
        ),
        migrations.AlterField(
            model_name='cluster',
            name='max_evictions',
            field=models.PositiveIntegerField(blank=True, default=3, null=True),
        ),
        migrations.AlterField(
            model_name='historicalcluster',
            name='max_evictions',
            field=models.PositiveIntegerField(blank=True, default=3, null=True),
        ),
    ]
