"""The admin's reports: the same figures, filters and scope as their pages."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.scope import ClusterView
from portal.reports.filters import PRESETS
from portal.reports.forms import form_of
from portal.reports.kinds import KINDS
from scheduling.models import WorkloadType

PARAMETERS = [
    OpenApiParameter("range", str, enum=list(PRESETS), description="Default: 14d."),
    OpenApiParameter("from", str, description="A day or an instant; takes the place of range."),
    OpenApiParameter("to", str, description="Default: now."),
    OpenApiParameter("class", str, many=True, description="GPU classes; default: all."),
    OpenApiParameter("queue", str, description="Top of a subtree; default: all you may see."),
    OpenApiParameter("user", str),
    OpenApiParameter("type", str, enum=[t.value for t in WorkloadType]),
    OpenApiParameter("evicted", str, description="Preemptions: single evictions of this queue."),
    OpenApiParameter("for", str, description="Preemptions: single evictions for this queue."),
    OpenApiParameter("compare", str, enum=["previous", "none"]),
]
SCHEMA = extend_schema(
    parameters=PARAMETERS,
    responses={
        200: {"type": "object", "additionalProperties": {}, "description": "Tables and sums."}
    },
)


class ReportView(ClusterView):
    serializer_class = serializers.Serializer
    pagination_class = None

    def report(self, kind: str, typed: QueryDict) -> Response:
        """Raises ValidationError at the filter at fault, Http404 where the person has no queue."""
        form = form_of(self.cluster, self.person, typed)
        if not form.is_valid():
            raise ValidationError(form.errors)
        report = KINDS[kind].compute(self.cluster, form.filters(), self.person)
        return Response(report.as_dict())


class Utilization(ReportView):
    @SCHEMA
    def get(self, request: Request, cluster: str) -> Response:
        """Capacity, allocated and really used GPU-hours by class, queue, user and type; how work ended."""
        return self.report("utilization", request.query_params)


class Use(ReportView):
    @SCHEMA
    def get(self, request: Request, cluster: str) -> Response:
        """What of the allocated GPUs was really used, what idles now, asked for against used."""
        return self.report("use", request.query_params)


class Waits(ReportView):
    @SCHEMA
    def get(self, request: Request, cluster: str) -> Response:
        """Queue waits: percentiles over time, by size, by hour of the week."""
        return self.report("waits", request.query_params)


class Longest(ReportView):
    @SCHEMA
    def get(self, request: Request, cluster: str) -> Response:
        """Who waited longest and why, and all waiting by reason and queue."""
        return self.report("longest", request.query_params)


class Fairness(ReportView):
    @SCHEMA
    def get(self, request: Request, cluster: str) -> Response:
        """How far work was ahead of the quota of its queue alone, and who ended later than alone."""
        return self.report("fairness", request.query_params)


class Fragmentation(ReportView):
    @SCHEMA
    def get(self, request: Request, cluster: str) -> Response:
        """Free GPUs that nobody can use: now, over time, by node, and what waited for whole room."""
        return self.report("fragmentation", request.query_params)


class Showback(ReportView):
    @SCHEMA
    def get(self, request: Request, cluster: str) -> Response:
        """Costs by queue, class and person, idle and lost apart; budgets with their forecast."""
        return self.report("showback", request.query_params)


class Forecast(ReportView):
    @SCHEMA
    def get(self, request: Request, cluster: str) -> Response:
        """Demand ahead against capacity, by the hour and week, with bands and how earlier forecasts did."""
        return self.report("forecast", request.query_params)


class Preemptions(ReportView):
    @SCHEMA
    def get(self, request: Request, cluster: str) -> Response:
        """Evictions: over time, who for whom, by rule, GPU-hours lost."""
        return self.report("preemptions", request.query_params)
