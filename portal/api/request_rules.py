"""What a parent lets pass by itself."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers

from portal.accounts.models import Scope
from portal.api.nouns import ClusterNoun
from portal.api.scope import named
from portal.approvals import automatic
from portal.approvals.models import ApprovalRule
from portal.selectors.fields import GpusField
from portal.teams.access import visible_queues
from scheduling.models import Queue
from scheduling.services.errors import ServiceError


class RuleSerializer(serializers.ModelSerializer[ApprovalRule]):
    queue: Any = named()
    below_gpus = GpusField(read_only=True)
    author: Any = named("username", allow_null=True)

    class Meta:
        model = ApprovalRule
        fields = ["queue", "below_gpus", "most_days", "from_siblings", "author", "at"]
        read_only_fields = fields


class SetRuleSerializer(serializers.Serializer[Any]):
    """What queues directly below are given at once; null takes the rule away."""

    below_gpus = GpusField(allow_null=True)
    most_days = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=automatic.MOST_DAYS
    )
    from_siblings = serializers.BooleanField(required=False, default=False)


@extend_schema_view(update=extend_schema(responses={200: RuleSerializer, 204: None}))
class RequestRules(ClusterNoun):
    """Approval rules of the queues that you see."""

    at, key, names = "request-rules", "<str:queue>", ("request_rules", "request_rule")
    one = "The rule of a queue that you see."
    serializer_class, takes = RuleSerializer, SetRuleSerializer
    lookup_field, lookup_url_kwarg = "queue__name", "queue"
    write_scope = Scope.QUOTAS

    def rows(self) -> QuerySet[ApprovalRule]:
        seen = visible_queues(self.person).filter(cluster=self.cluster)
        rows = ApprovalRule.objects.filter(queue__in=seen)
        return rows.select_related("queue", "author").order_by("queue__path")

    def edited_row(self) -> Queue:
        """The queue: it needs no rule yet."""
        mine = automatic.settable_queues(self.person)
        name, here = self.kwargs["queue"], self.cluster.pk
        found = next((q for q in mine if q.name == name and q.cluster_id == here), None)
        if found is None:
            raise ServiceError(
                "gone",
                "There is no such queue, or you do not divide it.",
                "Name one that you divide.",
            )
        return found

    def change(self, row: Queue) -> Any:
        """Set the rule of a queue that you divide; 204 where it was taken away."""
        return automatic.set_rule(by=self.person, queue=row, **self.given)
