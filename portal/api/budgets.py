"""What queues may cost, in money."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.exceptions import NotFound

from portal.accounts.models import Scope
from portal.api.bodies import body_of
from portal.api.errors import refuse
from portal.api.nouns import ClusterNoun
from portal.api.scope import RowSerializer
from portal.reports import budgets
from portal.reports.edit_forms import BudgetForm
from portal.reports.models import Budget


class BudgetSerializer(RowSerializer[Budget]):
    queue: Any = serializers.CharField(source="queue.name")

    class Meta:
        model = Budget
        fields = ["id", "queue", "amount", "begin", "end"]


class Budgets(ClusterNoun):
    """Budgets of the queues whose costs you read or whose budget you set, in the cluster's currency; they
    stop nobody."""

    at, key, names = "budgets", "<int:pk>", ("budgets", "budget")
    one = "One budget."
    serializer_class = BudgetSerializer
    takes = body_of(BudgetForm, "NewBudget", queue=serializers.CharField(max_length=63))
    write_scope = Scope.QUOTAS
    queryset = Budget.objects.none()

    def rows(self) -> QuerySet[Budget]:
        return budgets.visible(self.person, self.cluster)

    def make(self) -> Any:
        """Set one. The one of that queue that begins on that day gets this amount and end."""
        mine = budgets.editable(self.person, self.cluster)
        if not mine.exists():
            raise NotFound
        given = dict(self.given)
        queue = mine.filter(name=given.pop("queue")).first()
        if queue is None:
            refuse("queue", "Name a queue that you divide from above.")
        return budgets.set_budget(by=self.person, queue=queue, **given)

    def remove(self, row: Budget) -> None:
        """Drop it. For who divides its queue from above."""
        if not budgets.editable(self.person, self.cluster).filter(pk=row.queue_id).exists():
            raise NotFound
        budgets.drop(row, by=self.person)
