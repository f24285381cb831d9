"""What a parent lets pass by itself."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import Scope
from portal.api.calls import call
from portal.api.scope import ClusterView, named, sent
from portal.approvals import automatic
from portal.approvals.models import ApprovalRule
from portal.selectors.fields import GpusField
from portal.teams.access import visible_queues
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


class RuleView(ClusterView):
    queryset = ApprovalRule.objects.none()

    def rows(self) -> QuerySet[ApprovalRule]:
        seen = visible_queues(self.person).filter(cluster=self.cluster)
        rows = ApprovalRule.objects.filter(queue__in=seen)
        return rows.select_related("queue", "author").order_by("queue__path")


class RuleList(RuleView, generics.ListAPIView[ApprovalRule]):
    """Approval rules of the queues that you see."""

    serializer_class = RuleSerializer


class RuleDetail(RuleView):
    serializer_class = SetRuleSerializer
    write_scope = Scope.QUOTAS

    @call(RuleSerializer)
    def get(self, queue: str) -> Any:
        """The rule of a queue that you see."""
        return get_object_or_404(self.get_queryset(), queue__name=queue)

    @extend_schema(request=SetRuleSerializer, responses={200: RuleSerializer, 204: None})
    def put(self, request: Request, cluster: str, queue: str) -> Response:
        """Set the rule of a queue that you divide; 204 where it was taken away."""
        mine = [one for one in automatic.settable_queues(self.person) if one.name == queue]
        found = next((one for one in mine if one.cluster_id == self.cluster.pk), None)
        if found is None:
            raise ServiceError(
                "gone",
                "There is no such queue, or you do not divide it.",
                "Name one that you divide.",
            )
        typed = sent(SetRuleSerializer, request)
        made = automatic.set_rule(by=self.person, queue=found, **typed.validated_data)
        if made is None:
            return Response(status=status.HTTP_204_NO_CONTENT)
        return Response(RuleSerializer(made).data)
