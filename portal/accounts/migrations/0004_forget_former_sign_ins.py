"""Drops what former parts kept about sign-ins: live session keys, names, addresses and browsers."""

from django.db import migrations

FORMER = (
    "axes_accessattemptexpiration",
    "axes_accessattempt",
    "axes_accessfailurelog",
    "axes_accesslog",
    "django_session",
)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0003_sign_in")]

    operations = [
        migrations.RunSQL(f"DROP TABLE IF EXISTS {table}", migrations.RunSQL.noop)
        for table in FORMER
    ]
