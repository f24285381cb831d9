"""Celery envelopes: one service call, safe to run twice and by two at once."""

from celery import shared_task

from portal.alerts import watching


@shared_task(name="portal.alerts.tasks.look")
def look() -> None:
    """Look at the rules of every cluster."""
    watching.look_all()
