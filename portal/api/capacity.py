"""Studies of capacity: read, begun, cancelled. An SLO is a field of its GPU class."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import Scope
from portal.api.foresight import OperatedView
from portal.reports.capacity import capacity
from scheduling.models import CapacityStudy
from scheduling.services.capacity import studies


class CapacityStudySerializer(serializers.ModelSerializer[CapacityStudy]):
    begin = serializers.DateTimeField(read_only=True)

    class Meta:
        model = CapacityStudy
        fields = [
            "id", "author", "begin", "end", "days", "replications", "most_cpu_s", "cpu_s", "state",
            "progress", "fault", "asked_at", "done_at",
        ]  # fmt: skip
        read_only_fields = fields


class BeginSerializer(serializers.Serializer[Any]):
    days = serializers.IntegerField(
        required=False,
        default=studies.DAYS,
        min_value=1,
        max_value=studies.MOST_DAYS,
        help_text="How many days are lived again; fewer where fewer are known.",
    )
    replications = serializers.IntegerField(
        required=False,
        default=studies.REPLICATIONS,
        min_value=studies.REPLICATIONS,
        max_value=studies.MOST_REPLICATIONS,
        help_text="Lives of each number of GPUs, with other dice.",
    )


class CapacityStudies(OperatedView, generics.ListAPIView[CapacityStudy]):
    """Studies of capacity, the newest first."""

    serializer_class = CapacityStudySerializer
    queryset = CapacityStudy.objects.none()
    write_scope = Scope.QUOTAS

    def get_queryset(self) -> QuerySet[CapacityStudy]:
        if self.is_schema:
            return CapacityStudy.objects.none()
        return CapacityStudy.objects.filter(cluster=self.cluster)

    @extend_schema(request=BeginSerializer, responses={202: CapacityStudySerializer})
    def post(self, request: Request, cluster: str) -> Response:
        """Begin one; 202 with the address at which it is read while it is made and after."""
        asked = BeginSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        author = self.person.get_username()
        study = studies.begin(cluster=self.cluster, author=author, **asked.validated_data)
        studies.start(study)
        address = reverse("api:capacity_study", args=[self.cluster.name, study.pk])
        return Response(
            CapacityStudySerializer(study).data,
            status=status.HTTP_202_ACCEPTED,
            headers={"Location": address},
        )


class CapacityStudyDetail(OperatedView):
    """One study with what it tells. DELETE cancels it while it is made, and drops it once it has ended."""

    serializer_class = serializers.Serializer
    pagination_class = None
    write_scope = Scope.QUOTAS

    @property
    def _study(self) -> CapacityStudy:
        return get_object_or_404(CapacityStudy, cluster=self.cluster, pk=self.kwargs["pk"])

    @extend_schema(
        responses={
            200: {
                "type": "object",
                "additionalProperties": {},
                "description": "The study, and tables: by class, curve, test on later data, demand ahead.",
            }
        }
    )
    def get(self, request: Request, cluster: str, pk: int) -> Response:
        return Response(capacity(self.cluster, self._study, self.person).as_dict())

    @extend_schema(responses={204: None})
    def delete(self, request: Request, cluster: str, pk: int) -> Response:
        study = self._study
        if not studies.cancel(study):
            studies.drop(study)
        return Response(status=status.HTTP_204_NO_CONTENT)
