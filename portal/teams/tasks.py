"""Celery envelopes: one service call, safe to run twice and by two at once."""

from celery import shared_task

from portal.accounts import confirming
from portal.teams import ldap_reading, reach


@shared_task(name="portal.teams.tasks.plan_sooner")
def plan_sooner() -> None:
    """Plan what would start work that waits, before its owner asks."""
    reach.plan_for_all_owners()


@shared_task(name="portal.teams.tasks.read_directory")
def read_directory() -> None:
    """Follow who left the directory (LDAP) and who is in which of its groups now, and end sessions of whom a
    provider that speaks at sign-ins alone has not confirmed for long."""
    ldap_reading.read()
    confirming.end_unconfirmed()
