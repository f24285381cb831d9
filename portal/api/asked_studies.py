"""What each kind of study is asked with, and the door that it goes through."""

from __future__ import annotations

from base64 import b64decode
from datetime import timedelta
from typing import Any

from rest_framework import serializers

from portal.boundary.reading import one_line
from scheduling.models import Cluster, Queue, Study, StudyKind
from scheduling.services.errors import ServiceError
from scheduling.services.studies import what_if
from scheduling.services.studies.capacity import asking as capacities
from scheduling.services.studies.experiments import asking, periods
from scheduling.services.studies.experiments.past import TraceQuestion


class AskSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField(max_length=10, help_text="Of which these fields are.")


class AskWhatIfSerializer(AskSerializer):
    """What changes would do now, and would have done to the last days."""

    changes: Any = serializers.ListField(
        child=serializers.DictField(),
        help_text='As [{"kind": "quota", "queue": "speech", "gpu_class": "h100-80gb", "nominal_gpus": 4}].',
    )
    days = serializers.IntegerField(
        required=False, default=what_if.DAYS, min_value=1, max_value=what_if.MOST_DAYS
    )

    def ask(self, cluster: Cluster, author: str, data: dict[str, Any]) -> Study:
        return what_if.ask(
            cluster=cluster, author=author, document=data["changes"], days=data["days"]
        )


class AskNowSerializer(AskWhatIfSerializer):
    """What changes would do now; answered at once."""

    def ask(self, cluster: Cluster, author: str, data: dict[str, Any]) -> Study:
        return what_if.ask(cluster=cluster, author=author, document=data["changes"], replays=False)


class AskCapacitySerializer(AskSerializer):
    """How long work would have waited on more and fewer GPUs. An SLO is a field of its GPU class."""

    days = serializers.IntegerField(
        required=False,
        default=capacities.DAYS,
        min_value=1,
        max_value=capacities.MOST_DAYS,
        help_text="How many days are lived again; fewer where fewer are known.",
    )
    replications = serializers.IntegerField(
        required=False,
        default=capacities.REPLICATIONS,
        min_value=capacities.REPLICATIONS,
        max_value=capacities.MOST_REPLICATIONS,
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
        max_value=capacities.MOST_STEP_GPUS,
        help_text="GPUs from one number to the next; 0: whole nodes.",
    )

    def ask(self, cluster: Cluster, author: str, data: dict[str, Any]) -> Study:
        queue = _queue(cluster, data.pop("queue"))
        return capacities.ask(cluster=cluster, author=author, queue=queue, **data)


def _queue(cluster: Cluster, name: str) -> Queue | None:
    """Raises ServiceError where the cluster has none of that name."""
    found = Queue.objects.filter(cluster=cluster, name=name).first() if name else None
    if name and found is None:
        raise ServiceError(
            "no_queue", f"There is no queue {name}.", "Name one of this cluster.", field="queue"
        )
    return found


class AskedVariantSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=120, validators=[one_line])
    changes: Any = serializers.ListField(
        child=serializers.DictField(),
        help_text='As [{"kind": "policy", "setting": "order", "value": "arrival"}].',
    )


class AskedTraceSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(
        max_length=120,
        validators=[one_line],
        help_text="Of a kept trace; or of the file that is sent, whose ending says what it is.",
    )
    content = serializers.CharField(
        required=False, help_text="The bytes of the file, in base64, up to 700 KiB of them."
    )

    def validate_content(self, text: str) -> bytes:
        try:
            return b64decode(text, validate=True)
        except ValueError as error:
            raise serializers.ValidationError("That is no base64.") from error


class AskExperimentSerializer(AskSerializer):
    """A past period, or a trace, lived again under variants of policy, quotas and nodes."""

    name = serializers.CharField(max_length=120, validators=[one_line])
    begin = serializers.DateTimeField(
        required=False, help_text="Of what is judged. Of a trace both may be left out."
    )
    end = serializers.DateTimeField(required=False)
    trace = AskedTraceSerializer(
        required=False, help_text="Live this work instead of the cluster's own past."
    )
    warm_up_days = serializers.IntegerField(
        required=False, default=7, min_value=0, max_value=periods.MOST_WARM_UP_DAYS
    )
    replays = serializers.IntegerField(
        required=False, default=20, min_value=1, max_value=asking.MOST_REPLAYS
    )
    is_drawn = serializers.BooleanField(
        required=False,
        default=True,
        help_text="Draw arrivals and run times near what came; else the period is lived once, as it came.",
    )
    variants: Any = AskedVariantSerializer(
        many=True, help_text="Those beside A, which is as in force."
    )

    def ask(self, cluster: Cluster, author: str, data: dict[str, Any]) -> Study:
        warm_up, trace = timedelta(days=data.pop("warm_up_days")), data.pop("trace", None)
        sent = TraceQuestion(trace["name"], trace.get("content")) if trace else None
        question = asking.Question(**data, warm_up=warm_up, trace=sent)
        return asking.ask(cluster=cluster, author=author, question=question)


Asking = AskWhatIfSerializer | AskNowSerializer | AskCapacitySerializer | AskExperimentSerializer
ASKED: dict[str, type[Asking]] = {
    StudyKind.REPLAY: AskWhatIfSerializer,
    StudyKind.NOW: AskNowSerializer,
    StudyKind.CAPACITY: AskCapacitySerializer,
    StudyKind.EXPERIMENT: AskExperimentSerializer,
}
"""The others are asked by Weir itself, or with an edit of quotas."""
