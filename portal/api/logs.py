"""What is told of the log and the events of a workload."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from scheduling.services.workloads import logs as service


class LogQuerySerializer(serializers.Serializer[Any]):
    pod = serializers.CharField(
        required=False, default="", max_length=253,
        help_text="Without it the first that failed, else the first that runs.",
    )  # fmt: skip
    container = serializers.CharField(required=False, default="", max_length=253)
    lines = serializers.IntegerField(
        required=False, default=service.LINES, min_value=1, max_value=service.MOST_LINES
    )
    previous = serializers.BooleanField(
        required=False, default=False, help_text="Of the container before its last restart."
    )


class PodSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    node = serializers.CharField()
    phase = serializers.CharField()
    containers = serializers.ListField(child=serializers.CharField())
    ended = serializers.CharField(help_text="How it failed, in the cluster's words; else empty.")
    restarts = serializers.IntegerField()


class LogLineSerializer(serializers.Serializer[Any]):
    at = serializers.CharField(help_text="RFC 3339, as the cluster stamped it; may be empty.")
    text = serializers.CharField()


class LogSerializer(serializers.Serializer[Any]):
    pods = PodSerializer(many=True)
    pod = serializers.CharField()
    container = serializers.CharField()
    lines = LogLineSerializer(many=True)
    why_not = serializers.CharField(help_text="Why there are no lines; else empty.")
    is_live = serializers.BooleanField(help_text="More may come: the pod runs.")


class EventSerializer(serializers.Serializer[Any]):
    at = serializers.DateTimeField(allow_null=True)
    about = serializers.CharField()
    is_warning = serializers.BooleanField()
    reason = serializers.CharField()
    message = serializers.CharField()
    count = serializers.IntegerField()


class EventsSerializer(serializers.Serializer[Any]):
    events = EventSerializer(many=True)
