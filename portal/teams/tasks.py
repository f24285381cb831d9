"""Celery envelopes: one service call, safe to run twice and by two at once."""

from celery import shared_task

from portal.teams import reach


@shared_task(name="portal.teams.tasks.plan_sooner")
def plan_sooner() -> None:
    """Plan what would start work that waits, before its owner asks."""
    reach.plan_for_all_owners()
