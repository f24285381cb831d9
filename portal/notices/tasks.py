"""Celery envelopes: one service call, safe to run twice and by two at once."""

from celery import shared_task

from portal.notices import inbox, outbox


@shared_task(name="portal.notices.tasks.look")
def look() -> None:
    """Tell people what cycles did to their workloads."""
    outbox.look_all()


@shared_task(name="portal.notices.tasks.forget")
def forget() -> None:
    """Drop what is older than it is kept."""
    inbox.forget()
