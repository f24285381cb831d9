"""One act on several workloads."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.accounts.models import Scope
from portal.api.calls import call
from portal.api.scope import ClusterView
from portal.teams.several import Answer, act, look_up
from scheduling.models import Workload
from scheduling.services.workloads.several import MOST, Action

LONGEST_NAME = 63


class PriorityClassSerializer(serializers.Serializer[Workload]):
    priority_class = serializers.CharField(max_length=LONGEST_NAME)


class ActSerializer(serializers.Serializer[Answer]):
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


class RefusalSerializer(serializers.Serializer[Answer]):
    code = serializers.CharField()
    sentence = serializers.CharField()
    remedy = serializers.CharField(allow_blank=True)


class WorkloadAnswerSerializer(serializers.Serializer[Answer]):
    """What came of one of them."""

    uid = serializers.CharField()
    name = serializers.CharField(help_text="Its uid where you may not see it.")
    done = serializers.SerializerMethodField()
    refused = RefusalSerializer(allow_null=True)

    def get_done(self, answer: Answer) -> bool:
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
