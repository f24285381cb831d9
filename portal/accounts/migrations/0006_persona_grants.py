"""The five flags become capabilities with a reach; nobody may more or less than before."""

from django.db import migrations, models

FORMER = (
    ("may_submit", {"submit": "subtree", "ask": "subtree"}),
    ("may_edit_quotas", {"act": "subtree", "edit_quotas": "subtree", "lend": "subtree"}),
    ("may_approve", {"approve": "subtree"}),
    ("may_read_costs", {"costs": "subtree"}),
    (
        "may_operate",
        {
            name: "all"
            for name in (
                "act", "see", "edit_quotas", "lend", "approve", "members", "costs", "audit",
                "operate", "administer",
            )
        },
    ),
)


def grant(apps, schema_editor):
    for name in ("Persona", "HistoricalPersona"):
        for persona in apps.get_model("accounts", name).objects.all():
            persona.grants = {"see": "subtree"}
            for flag, granted in FORMER:
                if getattr(persona, flag):
                    persona.grants |= granted
            persona.save(update_fields=["grants"])


class Migration(migrations.Migration):

    dependencies = [
        ("accounts", "0005_sign_in_by_others"),
    ]

    operations = [
        migrations.AddField(
            model_name='historicalpersona',
            name='approves_gpus',
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='historicalpersona',
            name='grants',
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name='historicalpersona',
            name='interactive',
            field=models.BooleanField(default=True),
        ),
        migrations.AddField(
            model_name='historicalpersona',
            name='max_gpus_at_once',
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='persona',
            name='approves_gpus',
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='persona',
            name='grants',
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name='persona',
            name='interactive',
            field=models.BooleanField(default=True),
        ),
        migrations.AddField(
            model_name='persona',
            name='max_gpus_at_once',
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.RunPython(grant, migrations.RunPython.noop),
        migrations.RemoveField(
            model_name='historicalpersona',
            name='may_approve',
        ),
        migrations.RemoveField(
            model_name='historicalpersona',
            name='may_edit_quotas',
        ),
        migrations.RemoveField(
            model_name='historicalpersona',
            name='may_operate',
        ),
        migrations.RemoveField(
            model_name='historicalpersona',
            name='may_read_costs',
        ),
        migrations.RemoveField(
            model_name='historicalpersona',
            name='may_submit',
        ),
        migrations.RemoveField(
            model_name='persona',
            name='may_approve',
        ),
        migrations.RemoveField(
            model_name='persona',
            name='may_edit_quotas',
        ),
        migrations.RemoveField(
            model_name='persona',
            name='may_operate',
        ),
        migrations.RemoveField(
            model_name='persona',
            name='may_read_costs',
        ),
        migrations.RemoveField(
            model_name='persona',
            name='may_submit',
        ),
    ]
