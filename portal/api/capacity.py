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
from scheduling.models import MILLI, CapacityStudy, Queue
from scheduling.services.capacity import studies
from scheduling.services.errors import ServiceError


class CapacityStudySerializer(serializers.ModelSerializer[CapacityStudy]):
    begin = serializers.DateTimeField(read_only=True)
    queue = serializers.SerializerMethodField(
        help_text="Whose own quota is studied, with what is below it; empty: all work on all nodes."
    )
    step_gpus = serializers.SerializerMethodField(
        help_text="From one number of GPUs to the next; 0: a node."
    )

    class Meta:
        model = CapacityStudy
        fields = [
            "id", "author", "begin", "end", "days", "replications", "most_cpu_s", "cpu_s", "state",
            "progress", "fault", "asked_at", "done_at", "queue", "step_gpus",
        ]  # fmt: skip
        read_only_fields = fields

    def get_queue(self, study: CapacityStudy) -> str:
        return study.queue.name if study.queue else ""

    def get_step_gpus(self, study: CapacityStudy) -> float:
        return study.step_gpus / MILLI


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
    queue = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=63,
        help_text="Study this queue and what is below it, alone on its own quota.",
    )
    step_gpus = serializers.FloatField(
        required=False,
        default=0,
        min_value=0,
        max_value=studies.MOST_STEP_GPUS,
        help_text="GPUs from one number to the next; 0: whole nodes.",
    )


class CapacityStudies(OperatedView, generics.ListAPIView[CapacityStudy]):
    """Studies of capacity, the newest first."""

    serializer_class = CapacityStudySerializer
    queryset = CapacityStudy.objects.none()
    write_scope = Scope.QUOTAS

    def get_queryset(self) -> QuerySet[CapacityStudy]:
        if self.is_schema:
            return CapacityStudy.objects.none()
        return CapacityStudy.objects.filter(cluster=self.cluster).select_related("queue")

    @extend_schema(request=BeginSerializer, responses={202: CapacityStudySerializer})
    def post(self, request: Request, cluster: str) -> Response:
        """Begin one; 202 with the address at which it is read while it is made and after."""
        asked = BeginSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        author = self.person.get_username()
        told = dict(asked.validated_data)
        queue = self._queue(told.pop("queue"))
        study = studies.begin(cluster=self.cluster, author=author, queue=queue, **told)
        studies.start(study)
        address = reverse("api:capacity_study", args=[self.cluster.name, study.pk])
        return Response(
            CapacityStudySerializer(study).data,
            status=status.HTTP_202_ACCEPTED,
            headers={"Location": address},
        )

    def _queue(self, name: str) -> Queue | None:
        """Raises ServiceError where the cluster has none of that name."""
        if not name:
            return None
        found = Queue.objects.filter(cluster=self.cluster, name=name).first()
        if found is None:
            raise ServiceError(
                "no_queue", f"There is no queue {name}.", "Name one of this cluster.", field="queue"
            )
        return found


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
