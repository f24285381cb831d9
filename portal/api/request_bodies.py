"""What is told of a request, and what may be sent of one."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.bodies import NOT_NAMED, body_of, name_field
from portal.api.scope import RowSerializer, named
from portal.approvals import doors
from portal.approvals.forms import DecisionForm, RequestForm
from portal.approvals.models import Comment, QuotaRequest, Step
from portal.approvals.moves import title
from portal.approvals.states import Kind
from portal.approvals.who import verbs
from portal.boundary.reading import printable
from portal.selectors.fields import GpusField
from portal.teams.reading import reader_of
from scheduling.services.words.sentences import queue_of


class RequestStepSerializer(RowSerializer[Step]):
    by: Any = named("username", allow_null=True)
    before = serializers.CharField(
        read_only=True, help_text="The state that it was in; empty where the step made it."
    )

    class Meta:
        model = Step
        fields = ["at", "verb", "by", "before", "after", "note"]


class RequestCommentSerializer(serializers.ModelSerializer[Comment]):
    by: Any = named("username", allow_null=True)
    text = serializers.CharField(max_length=doors.MOST_COMMENT, validators=[printable])

    class Meta:
        model = Comment
        fields = ["id", "at", "by", "text"]
        read_only_fields = ["id", "at", "by"]


class RequestSerializer(RowSerializer[QuotaRequest]):
    """What is asked for, and how it stands. Null ends are open; `may` is what you may do to it now."""

    title = serializers.SerializerMethodField()
    queue: Any = named(allow_null=True, help_text="Null: it is gone.")
    giver = serializers.SerializerMethodField(help_text="Empty: none is named.")
    gpus = GpusField(read_only=True, allow_null=True)
    granted_gpus = GpusField(read_only=True, allow_null=True)
    author: Any = named("username", allow_null=True)
    forwarder: Any = named("username", allow_null=True)
    decider: Any = named("username", allow_null=True)
    may = serializers.SerializerMethodField()
    steps: Any = RequestStepSerializer(many=True, read_only=True)
    comments: Any = RequestCommentSerializer(many=True, read_only=True)

    class Meta:
        model = QuotaRequest
        fields = [
            "id", "title", "kind", "state", "queue", "place", "gpu_class", "priority_class", "figure",
            "gpus", "granted_gpus", "giver", "name", "starts_at", "ends_at", "reason", "author",
            "forwarder", "decider", "decision", "created_at", "since", "granted_at", "outcome", "renews",
            "may", "steps", "comments",
        ]  # fmt: skip

    def get_title(self, request: QuotaRequest) -> str:
        return title(request)

    def get_giver(self, request: QuotaRequest) -> str:
        path = queue_of(request.giver, reader_of(self.context["request"])) or ""
        return path.rpartition("/")[2]

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_may(self, request: QuotaRequest) -> list[str]:
        return sorted(verbs(self.context["request"].user, request))


WISH = body_of(
    RequestForm,
    "Wish",
    kind=serializers.ChoiceField(choices=Kind.choices),
    queue=name_field(help_text="That gets it; of a new queue, the one above."),
    gpu_class=name_field(**NOT_NAMED),
    priority_class=name_field(**NOT_NAMED),
    giver=name_field(help_text="A queue beside it that gives.", **NOT_NAMED),
    draft=serializers.BooleanField(
        required=False, default=False, help_text="Keep it to yourself; submit it later."
    ),
)
NOTE = body_of(DecisionForm, "Note", needs=("note",), gpus=None, ends_at=None, giver=None)
GRANT = body_of(DecisionForm, "Grant", needs=("note",), giver=name_field(**NOT_NAMED))
FORWARD = body_of(
    DecisionForm, "Forward", needs=(), gpus=None, ends_at=None, giver=name_field(**NOT_NAMED)
)
