"""How good start forecasts were; what only operators have."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.scope import ClusterView
from portal.boundary.reading import whole_or
from portal.teams.access import is_operator
from scheduling.services.starts.accuracy import Score, groups, score, scored

MOST_DAYS = 90


class OperatedView(ClusterView):
    """Of who operates the cluster; to everybody else there is nothing here."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if not is_operator(self.person):
            raise Http404


class HeldShareSerializer(serializers.Serializer[Any]):
    count = serializers.IntegerField()
    of = serializers.IntegerField()


class ScoreSerializer(serializers.Serializer[Score]):
    """``label`` of the group, and its figures."""

    starts = serializers.IntegerField()
    before_p50 = HeldShareSerializer()
    before_p90 = HeldShareSerializer()
    in_band = HeldShareSerializer()
    width_s = serializers.FloatField()
    error_pct = serializers.FloatField(allow_null=True, help_text="Median, of waits over 10 min.")
    naive_pct = serializers.FloatField(allow_null=True)

    def get_fields(self) -> dict[str, Any]:
        """``label`` is a name of its own in a serializer, so it is no attribute."""
        return {"label": serializers.CharField(), **super().get_fields()}


class ForecastScoreSerializer(serializers.Serializer[Any]):
    total = ScoreSerializer()
    groups: Any = serializers.DictField(child=ScoreSerializer(many=True))


class ForecastScore(ClusterView):
    """How good start forecasts were, in all and by class, size and horizon."""

    serializer_class = ForecastScoreSerializer
    pagination_class = None

    @extend_schema(
        parameters=[
            OpenApiParameter("days", int, description="How many days back; 30 by default."),
            OpenApiParameter("class", str, description="GPU class."),
        ],
        responses=ForecastScoreSerializer,
    )
    def get(self, request: Request, cluster: str) -> Response:
        days = whole_or(request.query_params.get("days", "30"), 30)
        back = timedelta(days=min(MOST_DAYS, days))
        now = self.cluster.now()
        gpu_class = request.query_params.get("class", "")
        rows = scored(self.cluster, now - back, now, gpu_class=gpu_class)
        return Response(
            {
                "total": asdict(score("All", rows)),
                "groups": {title: [asdict(one) for one in part] for title, part in groups(rows)},
            }
        )
