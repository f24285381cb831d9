"""Budgets of the example organisation: this month's, of which one runs out before its end."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

from portal.accounts.models import User
from portal.reports.budgets import set_budget, spendings
from portal.reports.models import Budget
from scheduling.models import Cluster

PARTS = {"products": 0.94, "research": 1.08, "platform": 1.15}
"""Of what the month will have cost by its end."""
ROUND = 500
CULL_AFTER_S = 3600


def budget(cluster: Cluster) -> None:
    """By what the departments have cost so far; where that is nothing, none."""
    admin = User.objects.get(username="admin")
    begin, end = _month(cluster.now().date())
    for queue in cluster.queues.filter(name__in=PARTS):
        tried = Budget(queue=queue, amount=Decimal(1), begin=begin, end=end)
        (found,) = spendings(cluster, [tried], cluster.now())
        whole = found.at_end if found.at_end is not None else found.spent
        amount = round(whole * PARTS[queue.name] / ROUND) * ROUND
        if amount > 0:
            set_budget(queue=queue, amount=Decimal(amount), begin=begin, end=end, by=admin)


def tell_of_idle(cluster: Cluster) -> None:
    """Idle notebooks are culled after an hour."""
    Cluster.objects.filter(pk=cluster.pk).update(cull_after_s=CULL_AFTER_S)
    cluster.cull_after_s = CULL_AFTER_S


def _month(day: date) -> tuple[date, date]:
    """The first and last day of the month, and of the next one too where it is nearly over."""
    begin = day.replace(day=1)
    end = (begin + timedelta(days=32)).replace(day=1) - timedelta(days=1)
    if end - day < timedelta(days=7):
        end = (end + timedelta(days=32)).replace(day=1) - timedelta(days=1)
    return begin, end
