"""What may be changed of what waits, and what that does to its start."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request

from portal.api.submission import MAX_PODS, MAX_SECONDS, WorkFieldsSerializer
from portal.teams.changing import Compared, Foreseen
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
