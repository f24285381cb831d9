"""Celery envelope: one service call, safe to run twice and by two at once."""

from celery import shared_task

from portal.streams import passing


@shared_task(name="portal.streams.tasks.send")
def send() -> None:
    """Send audit records, security events and usage to where they are wanted."""
    passing.send_due()
