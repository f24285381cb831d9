"""What is sent of acts on workloads, and told of their logs and events; one act on several."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request

from portal.accounts.models import Scope
from portal.api.calls import call
from portal.api.scope import ClusterView
from portal.api.submission import MAX_PODS, MAX_SECONDS, WorkFieldsSerializer
from portal.teams.several import ActOutcome, act, look_up
from scheduling.models import Workload
from scheduling.services.workloads import logs as service
from scheduling.services.workloads.change import WorkloadChange
from scheduling.services.workloads.several import MOST, Action

LONGEST_NAME = 63


class PriorityChangeSerializer(serializers.Serializer[Workload]):
    priority_class = serializers.CharField(max_length=LONGEST_NAME)


class ActSerializer(serializers.Serializer[ActOutcome]):
    """An action on workloads by their uids."""

    action = serializers.ChoiceField(choices=[action.value for action in Action])
    uids = serializers.ListField(
        child=serializers.CharField(max_length=64), min_length=1, help_text=f"At most {MOST}."
    )
    priority_class = serializers.CharField(
        max_length=LONGEST_NAME, required=False, help_text="For the action 'priority' alone."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        needs = attrs["action"] == Action.PRIORITY
        if needs != ("priority_class" in attrs):
            said = "Say which." if needs else "Only the action 'priority' takes one."
            raise serializers.ValidationError({"priority_class": [said]})
        return attrs


class RefusalSerializer(serializers.Serializer[ActOutcome]):
    code = serializers.CharField()
    sentence = serializers.CharField()
    remedy = serializers.CharField(allow_blank=True)


class WorkloadAnswerSerializer(serializers.Serializer[ActOutcome]):
    """What came of one of them."""

    uid = serializers.CharField()
    name = serializers.CharField(help_text="Its uid where you may not see it.")
    done = serializers.SerializerMethodField()
    refused = RefusalSerializer(allow_null=True)

    def get_done(self, answer: ActOutcome) -> bool:
        return answer.refused is None


class ActedSerializer(serializers.Serializer[Any]):
    done = serializers.IntegerField(help_text="How many were done.")
    results = WorkloadAnswerSerializer(many=True)


class WorkloadActions(ClusterView):
    serializer_class = ActSerializer
    write_scope = Scope.WORK

    @call(ActedSerializer, takes=ActSerializer)
    def post(self) -> Any:
        """Cancel, hold, release or give a priority class to several workloads.

        Each is done or refused by itself: the answer is 200 and says of every uid what came of it.
        """
        here = self.cluster
        said = self.given
        found = look_up(self.person, here, said["uids"])
        name = said.get("priority_class", "")
        answers = act(self.person, found, Action(said["action"]), priority_class=name)
        done = sum(answer.refused is None for answer in answers)
        return {"done": done, "results": answers}


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


class ForeseenSerializer(serializers.Serializer[Any]):
    """What becomes of it in the next plan, and when it starts where it only waits: null where no time is
    worth telling, and ``why_not`` says why."""

    starts_now = serializers.BooleanField(source="one.starts")
    p50_at = serializers.DateTimeField(source="likely.p50", allow_null=True)
    p90_at = serializers.DateTimeField(source="likely.p90", allow_null=True)
    reason = serializers.CharField(source="one.reason")
    sentence = serializers.CharField(source="one.sentence")
    why_not = serializers.CharField(source="likely.why_not", allow_blank=True)


class ComparedSerializer(serializers.Serializer[Any]):
    before = ForeseenSerializer()
    after = ForeseenSerializer()
    is_open = serializers.BooleanField(
        help_text="The starts are still being worked out: ask again in a moment."
    )


def asked_in(request: Request) -> WorkloadChange:
    serializer = ChangeSerializer(data=request.data)
    serializer.is_valid(raise_exception=True)
    said = dict(serializer.validated_data)
    for name in ("gpu_classes", "after"):
        if name in said:
            said[name] = tuple(said[name])
    if "not_before" in said:
        said["not_before"] = said["not_before"] or ""
    return WorkloadChange(**said)
