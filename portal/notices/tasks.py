"""Celery envelopes: one service call, safe to run twice and by two at once."""

from celery import shared_task
from django.utils import timezone

from portal.notices import delivery, idle, inbox, letters, outbox, watch, weekly


@shared_task(name="portal.notices.tasks.look")
def look() -> None:
    """Tell people what cycles did to their workloads."""
    outbox.look_all()
    watch.look_all()
    idle.look_all()


@shared_task(name="portal.notices.tasks.look_at_budgets")
def look_at_budgets() -> None:
    """Tell teams that their GPU-hours of the month run out."""
    watch.look_at_budgets()


@shared_task(name="portal.notices.tasks.tell_views")
def tell_views() -> None:
    """Tell people of the reports that they want each Monday."""
    weekly.look()


@shared_task(name="portal.notices.tasks.deliver")
def deliver() -> None:
    """Send what is due by mail and to webhooks."""
    delivery.deliver_due()


@shared_task(name="portal.notices.tasks.forget")
def forget() -> None:
    """Drop what is older than it is kept."""
    inbox.forget()
    letters.forget(timezone.now())
