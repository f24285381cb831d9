"""Alert rules with their state now."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.alerts.looking import Row, rows
from portal.alerts.models import Rule
from portal.alerts.rules import may_watch, told
from portal.api.scope import ClusterView


class AlertSerializer(serializers.Serializer[Any]):
    rule = serializers.IntegerField(help_text="Its number.")
    figure = serializers.CharField()
    queue = serializers.CharField(help_text="Path; empty: of the whole cluster.")
    gpu_class = serializers.CharField()
    over = serializers.FloatField(help_text="Seconds; evictions, GPUs or days by figure.")
    for_s = serializers.IntegerField()
    state = serializers.ChoiceField(choices=["firing", "near", "quiet"])
    now = serializers.CharField(help_text="The figure, in words.")
    since = serializers.DateTimeField(allow_null=True, help_text="Since when it fires.")
    acknowledged_by = serializers.CharField(allow_blank=True)
    workload = serializers.CharField(allow_blank=True, help_text="Whom it is about, if you see it.")
    fired = serializers.IntegerField(help_text="Times in the last 14 days.")


class Alerts(ClusterView):
    serializer_class = AlertSerializer
    queryset = Rule.objects.none()
    pagination_class = None

    @extend_schema(responses=AlertSerializer(many=True))
    def get(self, request: Request, cluster: str) -> Response:
        """Rules that you see: all for operators, those of your queues for leads. Firing ones first."""
        if not may_watch(self.person, self.cluster):
            raise Http404
        found = [_told(row) for row in rows(self.person, self.cluster)]
        return Response(AlertSerializer(found, many=True).data)


def _told(row: Row) -> dict[str, Any]:
    rule, firing = told(row.rule), row.firing
    return {
        "rule": row.rule.pk,
        **{name: rule[name] for name in ("figure", "queue", "gpu_class", "over", "for_s")},
        "state": row.verdict.value,
        "now": row.value,
        "since": firing.since if firing else None,
        "acknowledged_by": firing.acknowledged_by if firing else "",
        "workload": row.work.name if row.work else "",
        "fired": row.fired,
    }
