"""Celery envelopes: one service call, safe to run twice and by two at once."""

from celery import shared_task

from portal.alerts import outgoing, watching


@shared_task(name="portal.alerts.tasks.look")
def look() -> None:
    """Look at the rules of every cluster, and at the streams out."""
    watching.look_all()
    outgoing.look()
