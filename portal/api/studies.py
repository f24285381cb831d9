"""Studies: asked, read, cancelled, promoted. What is asked and answered depends on the kind."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import (
    OpenApiParameter,
    PolymorphicProxySerializer,
    extend_schema,
    extend_schema_view,
)
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import Scope
from portal.api.asked_studies import ASKED
from portal.api.foresight import OperatedView
from portal.api.nouns import ClusterNoun, verb
from portal.api.scope import RowSerializer
from portal.boundary.reading import one_line
from portal.reports.capacity import capacity
from scheduling.models import MILLI, Study, StudyKind, Variant
from scheduling.services.errors import ServiceError
from scheduling.services.studies import doors, running
from scheduling.services.studies.experiments.promoting import lacking, promote, promotion_of
from scheduling.services.studies.experiments.results import BASE, document, results
from scheduling.services.studies.kinds import EXPERIMENTS


class VariantSerializer(RowSerializer[Variant]):
    """``changes`` as of a what-if; A changes nothing."""

    changes: Any = serializers.ListField(child=serializers.DictField(), read_only=True)

    class Meta:
        model = Variant
        fields = [
            "letter", "name", "changes", "state", "fault", "promoted_at", "promoted_by", "reason",
        ]  # fmt: skip


class StudySerializer(RowSerializer[Study]):
    """A past that is lived again with something changed: what was asked, and how far it is. What a kind does
    not have is empty."""

    author = serializers.CharField(
        read_only=True, help_text="Empty where Weir itself asked for it."
    )
    changes: Any = serializers.ListField(
        child=serializers.DictField(), read_only=True, help_text="Of a what-if."
    )
    days = serializers.IntegerField(read_only=True)
    queue = serializers.SerializerMethodField(
        help_text="Whose own quota is studied, with what is below it; empty: all work on all nodes."
    )
    step_gpus = serializers.SerializerMethodField(
        help_text="From one number of GPUs to the next; 0: a node."
    )
    basis = serializers.SerializerMethodField(
        help_text="Of an experiment: how many jobs are judged, what really came of them, whence the work is,"
        " what the world rests on."
    )
    variants = serializers.SerializerMethodField(help_text="Of an experiment.")

    class Meta:
        model = Study
        fields = [
            "id", "kind", "name", "author", "changes", "days", "queue", "step_gpus", "begin", "end",
            "warm_up_s", "replays", "is_drawn", "basis", "state", "progress", "cpu_s", "fault", "asked_at",
            "done_at", "is_kept", "variants",
        ]  # fmt: skip

    def get_queue(self, study: Study) -> str:
        return study.queue.name if study.queue else ""

    def get_step_gpus(self, study: Study) -> float:
        return float(study.question.get("step_gpus", 0)) / MILLI

    def get_basis(self, study: Study) -> dict[str, Any]:
        return study.basis if study.kind in EXPERIMENTS else {}

    @extend_schema(responses=VariantSerializer(many=True))
    def get_variants(self, study: Study) -> list[dict[str, Any]]:
        rows = study.variants.all() if study.kind in EXPERIMENTS else ()
        return [VariantSerializer(one).data for one in rows]


class AnsweredSerializer(StudySerializer):
    """With its answer, as far as it goes. Of a what-if the plans of now, starts ahead and the days lived
    again; of capacity tables by class, curve, test on later data, demand ahead; of an experiment means,
    differences to A with half their interval, verdicts, and what still speaks against promoting each."""

    answer = serializers.SerializerMethodField()

    class Meta(StudySerializer.Meta):
        fields = [*StudySerializer.Meta.fields, "answer"]

    def get_answer(self, study: Study) -> dict[str, Any]:
        if study.kind == StudyKind.CAPACITY:
            report = capacity(study.cluster, study, self.context["person"]).as_dict()
            return {key: report[key] for key in report if key not in ("report", "cluster", "study")}
        return _compared(study) if study.kind in EXPERIMENTS else dict(study.answer)


def _compared(study: Study) -> dict[str, Any]:
    found = results(study)
    body = document(study, found)
    for row, one in zip(found.rows, body["variants"], strict=True):
        one["lacks"] = lacking(study, found, row) if row.variant.letter != BASE else []
    return body


class LetterSerializer(serializers.Serializer[Any]):
    letter = serializers.CharField(max_length=1)


class PromoteSerializer(LetterSerializer):
    reason = serializers.CharField(max_length=500, validators=[one_line])


class PromotionSerializer(serializers.Serializer[Any]):
    """Send ``policy`` to PUT policy, ``quotas`` to POST quotas: nothing is changed yet."""

    policy: Any = serializers.DictField()
    quotas: Any = serializers.ListField(child=serializers.DictField())
    queues: Any = serializers.ListField(child=serializers.DictField())
    left_out: Any = serializers.ListField(child=serializers.CharField())


KIND = OpenApiParameter(
    "kind", str, many=True, enum=StudyKind.values, description="All unless told."
)
ASK = PolymorphicProxySerializer(
    "AskStudy",
    {str(kind): serializer for kind, serializer in ASKED.items()},
    resource_type_field_name="kind",
)


@extend_schema_view(
    list=extend_schema(parameters=[KIND]),
    create=extend_schema(request=ASK, responses={201: AnsweredSerializer, 202: StudySerializer}),
)
class Studies(OperatedView, ClusterNoun):
    """Without their answers."""

    at, key, names = "studies", "<int:pk>", ("studies", "study")
    one = "One study with its answer. DELETE cancels it while it is lived, and drops it once it has ended."
    queryset = Study.objects.none()
    write_scope = Scope.QUOTAS

    def get_serializer_class(self) -> Any:
        return StudySerializer if self.action == "list" else AnsweredSerializer

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "person": self.person}

    def rows(self) -> QuerySet[Study]:
        """Raises ServiceError for a kind that there is not."""
        rows = Study.objects.filter(cluster=self.cluster).defer("world", "work")
        rows = rows.prefetch_related("variants").select_related("cluster", "queue")
        kinds = self.request.query_params.getlist("kind") if self.action == "list" else []
        for kind in kinds:
            if kind not in StudyKind.values:
                names = ", ".join(StudyKind.values)
                raise ServiceError(
                    "unknown_choice", f"No study is of kind {kind}.", f"Use {names}.", field="kind"
                )
        return rows.filter(kind__in=kinds) if kinds else rows

    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        study = self.make()
        headers = {"Location": self.address(study)}
        if study.kind == StudyKind.NOW:
            running.work(study.pk)
            study.refresh_from_db()
            return Response(self.get_serializer(study).data, 201, headers=headers)
        doors.start(study)
        return Response(StudySerializer(study).data, 202, headers=headers)

    def make(self) -> Study:
        """Begin a study. 202 with the address of the answer that is worked out; 201 with the answer where
        nothing is lived again."""
        data = self.request.data
        kind = data.get("kind") if isinstance(data, dict) else None
        if not isinstance(kind, str) or kind not in ASKED:
            raise ServiceError(
                "unknown_kind", "It is not said what kind of study it is.",
                f"Use {', '.join(ASKED)}.", field="kind",
            )  # fmt: skip
        serializer = ASKED[kind](data=data)
        serializer.is_valid(raise_exception=True)
        values = {key: value for key, value in serializer.validated_data.items() if key != "kind"}
        return serializer.ask(self.cluster, self.person.get_username(), values)

    def remove(self, row: Study) -> None:
        doors.cancel_or_drop(row, self.person.get_username())

    def compared(self) -> Study:
        """One with variants that are people's to choose among."""
        return get_object_or_404(self.get_queryset(), pk=self.kwargs["pk"], kind__in=EXPERIMENTS)

    @verb("cancel", AnsweredSerializer, takes=LetterSerializer)
    def cancel(self) -> Any:
        """One variant is lived no further; what it has lived stays."""
        letter, author = self.given["letter"], self.person.get_username()
        doors.cancel(self.compared(), letter=letter, author=author)
        return self.compared()

    @verb("promote", PromotionSerializer, takes=PromoteSerializer)
    def promote(self) -> Any:
        """A variant is chosen, with a reason. Its changes go through their own doors; this notes the
        choice."""
        study = self.compared()
        variant = study.variants.filter(letter=self.given["letter"]).first()
        if variant is None:
            raise ServiceError(
                "no_variant", "There is no such variant.", "Name its letter.", field="letter"
            )
        promote(variant=variant, author=self.person.get_username(), reason=self.given["reason"])
        return promotion_of(variant)
