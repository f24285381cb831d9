"""Celery envelopes: one service call, safe to run twice and by two at once."""

from celery import shared_task

from portal.approvals import clock


@shared_task(name="portal.approvals.tasks.advance")
def advance() -> None:
    """Begin what is scheduled, and end what has ended."""
    clock.advance_all()
