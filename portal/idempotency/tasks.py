"""Celery envelopes: one service call, safe to run twice and by two at once."""

from celery import shared_task

from portal.idempotency import answers


@shared_task(name="portal.idempotency.tasks.forget")
def forget() -> None:
    """Drop answers that are older than they are kept."""
    answers.forget()
