"""Change what waits, and see before what that does to its start."""

from __future__ import annotations

from typing import Any

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request

from portal.api.calls import call
from portal.api.submission import MAX_PODS, MAX_SECONDS, WorkFieldsSerializer, at_fields
from portal.api.workloads import (
    WorkloadAction,
    WorkloadSerializer,
    WorkloadView,
    check_may_operate,
)
from portal.teams import changing
from portal.teams.changing import Compared, Foreseen
from scheduling.models import Workload
from scheduling.services.workloads.change import Change


class ChangeSerializer(WorkFieldsSerializer):
    """What is to be otherwise; what is left out stays as it is."""

    priority_class = serializers.CharField(required=False, max_length=63)
    run_time_limit_s = serializers.IntegerField(
        required=False, min_value=0, max_value=MAX_SECONDS, help_text="0: none."
    )
    gpu_classes: Any = serializers.ListField(
        child=serializers.CharField(max_length=63),
        required=False,
        allow_empty=False,
        max_length=100,
        help_text="In order of preference.",
    )
    pods_max = serializers.IntegerField(required=False, min_value=1, max_value=MAX_PODS)
    not_before = serializers.DateTimeField(
        required=False, allow_null=True, help_text="null: as soon as it can."
    )
    at_once = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=MAX_PODS,
        help_text="Members of its array that may hold GPUs at once; 0: all.",
    )


class ForeseenSerializer(serializers.Serializer[Foreseen]):
    """What becomes of it in the next plan."""

    starts_now = serializers.BooleanField(source="starts")
    p50_at = serializers.DateTimeField(allow_null=True, help_text="Of its start, where it waits.")
    p90_at = serializers.DateTimeField(allow_null=True)
    reason = serializers.CharField()
    sentence = serializers.CharField()


class ComparedSerializer(serializers.Serializer[Compared]):
    before = ForeseenSerializer()
    after = ForeseenSerializer()


class WorkloadChange(WorkloadAction):
    @call(WorkloadSerializer, takes=ChangeSerializer, code=202)
    def post(self, uid: str) -> Any:
        """Change what a waiting workload asks for, in the cluster and in your name. It keeps its submit time.

        What its kind cannot change in place is refused with the way that is left."""

        def write(workload: Workload, *, user: str) -> None:
            with at_fields():
                changing.change(self.person, workload, asked_in(self.request))

        return self.act(uid, write)


class WorkloadChangePreview(WorkloadView):
    serializer_class = ComparedSerializer

    @call(ComparedSerializer, takes=ChangeSerializer)
    def post(self, uid: str) -> Any:
        """What that does to its start, as it is and as it would be, by the next plan. It saves nothing."""
        workload = get_object_or_404(self.get_queryset(), uid=uid)
        check_may_operate(self.person, workload)
        with at_fields():
            return changing.preview(self.person, workload, asked_in(self.request))


def asked_in(request: Request) -> Change:
    asked = ChangeSerializer(data=request.data)
    asked.is_valid(raise_exception=True)
    said = dict(asked.validated_data)
    for name in ("gpu_classes", "after"):
        if name in said:
            said[name] = tuple(said[name])
    if "not_before" in said:
        said["not_before"] = said["not_before"] or ""
    return Change(**said)
