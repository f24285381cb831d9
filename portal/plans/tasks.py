"""Celery envelopes: one service call, safe to run twice and by two at once."""

from celery import shared_task

from portal.plans import ahead, asking


@shared_task(name="portal.plans.tasks.answer")
def answer(asked_id: int) -> None:
    """Plan what a page asked for: somebody waits for it."""
    asking.answer(asked_id)


@shared_task(name="portal.plans.tasks.ask_ahead")
def ask_ahead() -> None:
    """Have what waits for a decision planned before anybody looks."""
    ahead.ask_ahead()
