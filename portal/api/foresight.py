"""What-if questions, and how good start forecasts were."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import Scope
from portal.api.scope import ClusterView
from portal.boundary.reading import whole_or
from portal.teams.access import is_operator
from scheduling.models import WhatIf, WhatIfKind
from scheduling.services.starts.held import Score, groups, score, scored
from scheduling.services.whatif import kept

MOST_DAYS = 90


class WhatIfSerializer(serializers.ModelSerializer[WhatIf]):
    """A question: what changes, how far its answer is, and the answer as far as it goes."""

    changes: Any = serializers.ListField(child=serializers.DictField(), read_only=True)
    answer: Any = serializers.DictField(read_only=True)

    class Meta:
        model = WhatIf
        fields = [
            "id", "title", "author", "changes", "kind", "days", "state", "progress", "fault",
            "asked_at", "done_at", "is_kept", "answer",
        ]  # fmt: skip
        read_only_fields = fields


class AskSerializer(serializers.Serializer[Any]):
    changes: Any = serializers.ListField(
        child=serializers.DictField(),
        help_text='As [{"kind": "quota", "queue": "speech", "gpu_class": "h100-80gb", "nominal_gpus": 4}].',
    )
    days = serializers.IntegerField(
        required=False, default=7, min_value=1, max_value=kept.MOST_DAYS
    )
    replay = serializers.BooleanField(
        required=False,
        default=True,
        help_text="Live the last days again as well; else the answer comes at once.",
    )


class OperatedView(ClusterView):
    """Of who operates the cluster; to everybody else there is nothing here."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if not is_operator(self.person):
            raise Http404


class QuestionsView(OperatedView):
    def get_queryset(self) -> QuerySet[WhatIf]:
        if self.is_schema:
            return WhatIf.objects.none()
        return WhatIf.objects.filter(cluster=self.cluster)


class WhatIfList(QuestionsView, generics.ListAPIView[WhatIf]):
    """Questions that were asked, the newest first."""

    serializer_class = WhatIfSerializer
    queryset = WhatIf.objects.none()
    write_scope = Scope.QUOTAS

    @extend_schema(request=AskSerializer, responses={202: WhatIfSerializer, 201: WhatIfSerializer})
    def post(self, request: Request, cluster: str) -> Response:
        """Ask. 202 with the address of the answer that is worked out; 201 with the answer where
        nothing is lived again."""
        asked = AskSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        told = asked.validated_data
        question = kept.ask(
            cluster=self.cluster,
            document=told["changes"],
            author=self.person.get_username(),
            days=told["days"],
            replays=told["replay"],
        )
        code: int = status.HTTP_202_ACCEPTED
        if question.kind == WhatIfKind.NOW:
            kept.answer(question.pk)
            question.refresh_from_db()
            code = status.HTTP_201_CREATED
        else:
            kept.start(question)
        address = reverse("api:what_if", args=[self.cluster.name, question.pk])
        return Response(WhatIfSerializer(question).data, status=code, headers={"Location": address})


class WhatIfDetail(QuestionsView, generics.RetrieveDestroyAPIView[WhatIf]):
    """One question. DELETE cancels it while it is worked on, and drops it once it has ended."""

    serializer_class = WhatIfSerializer
    queryset = WhatIf.objects.none()
    write_scope = Scope.QUOTAS

    def perform_destroy(self, instance: WhatIf) -> None:
        if not kept.cancel(instance):
            kept.drop(instance)


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
