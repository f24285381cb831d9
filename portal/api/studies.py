"""Studies: asked, read, cancelled, promoted. What is asked and answered depends on the kind."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, PolymorphicProxySerializer, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import Scope
from portal.api.asked_studies import ASKED
from portal.api.calls import call
from portal.api.foresight import OperatedView
from portal.api.scope import sent
from portal.boundary.reading import one_line
from portal.reports.capacity import capacity
from scheduling.models import MILLI, Study, StudyKind, Variant
from scheduling.services.errors import ServiceError
from scheduling.services.studies import doors, running
from scheduling.services.studies.experiments.promoting import lacking, promote, promotion_of
from scheduling.services.studies.experiments.results import BASE, document, results
from scheduling.services.studies.kinds import EXPERIMENTS


class VariantSerializer(serializers.ModelSerializer[Variant]):
    """``changes`` as of a what-if; A changes nothing."""

    changes: Any = serializers.ListField(child=serializers.DictField(), read_only=True)

    class Meta:
        model = Variant
        fields = [
            "letter", "name", "changes", "state", "fault", "promoted_at", "promoted_by", "reason",
        ]  # fmt: skip
        read_only_fields = fields


class StudySerializer(serializers.ModelSerializer[Study]):
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
        read_only_fields = fields

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
        read_only_fields = fields

    def get_answer(self, study: Study) -> dict[str, Any]:
        if study.kind == StudyKind.CAPACITY:
            told = capacity(study.cluster, study, self.context["person"]).as_dict()
            return {key: told[key] for key in told if key not in ("report", "cluster", "study")}
        return _compared(study) if study.kind in EXPERIMENTS else dict(study.answer)


def _compared(study: Study) -> dict[str, Any]:
    found = results(study)
    told = document(study, found)
    for row, one in zip(found.rows, told["variants"], strict=True):
        one["lacks"] = lacking(study, found, row) if row.variant.letter != BASE else []
    return told


class StudiesView(OperatedView):
    write_scope = Scope.QUOTAS

    def rows(self) -> QuerySet[Study]:
        rows = Study.objects.filter(cluster=self.cluster).defer("world", "work")
        return rows.prefetch_related("variants").select_related("cluster", "queue")

    def study(self) -> Study:
        return get_object_or_404(self.get_queryset(), pk=self.kwargs["pk"])

    def compared(self) -> Study:
        """One with variants that are people's to choose among."""
        return get_object_or_404(self.get_queryset(), pk=self.kwargs["pk"], kind__in=EXPERIMENTS)

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "person": self.person}

    def answered(self, study: Study) -> dict[str, Any]:
        return dict(AnsweredSerializer(study, context=self.get_serializer_context()).data)


class StudyList(StudiesView, generics.ListAPIView[Study]):
    """Studies, the newest first."""

    serializer_class = StudySerializer
    queryset = Study.objects.none()

    def rows(self) -> QuerySet[Study]:
        """Raises ServiceError for a kind that there is not."""
        rows, kinds = super().rows(), self.request.query_params.getlist("kind")
        for kind in kinds:
            if kind not in StudyKind.values:
                names = ", ".join(StudyKind.values)
                raise ServiceError(
                    "unknown_choice", f"No study is of kind {kind}.", f"Use {names}.", field="kind"
                )
        return rows.filter(kind__in=kinds) if kinds else rows

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "kind", str, many=True, enum=StudyKind.values, description="All unless told."
            )
        ]
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Without their answers."""
        return super().get(request, *args, **kwargs)

    @extend_schema(
        request=PolymorphicProxySerializer(
            "AskStudy",
            {str(kind): asked for kind, asked in ASKED.items()},
            resource_type_field_name="kind",
        ),
        responses={201: AnsweredSerializer, 202: StudySerializer},
    )
    def post(self, request: Request, cluster: str) -> Response:
        """Begin a study. 202 with the address of the answer that is worked out; 201 with the answer where
        nothing is lived again."""
        kind = request.data.get("kind") if isinstance(request.data, dict) else None
        if not isinstance(kind, str) or kind not in ASKED:
            raise ServiceError(
                "unknown_kind", "It is not said what kind of study it is.",
                f"Use {', '.join(ASKED)}.", field="kind",
            )  # fmt: skip
        asked = ASKED[kind](data=request.data)
        asked.is_valid(raise_exception=True)
        told = {key: value for key, value in asked.validated_data.items() if key != "kind"}
        study = asked.ask(self.cluster, self.person.get_username(), told)
        headers = {"Location": reverse("api:study", args=[self.cluster.name, study.pk])}
        if study.kind == StudyKind.NOW:
            running.work(study.pk)
            study.refresh_from_db()
            return Response(self.answered(study), status.HTTP_201_CREATED, headers=headers)
        doors.start(study)
        return Response(StudySerializer(study).data, status.HTTP_202_ACCEPTED, headers=headers)


class StudyDetail(StudiesView, generics.RetrieveDestroyAPIView[Study]):
    """One study with its answer. DELETE cancels it while it is lived, and drops it once it has ended."""

    serializer_class = AnsweredSerializer
    queryset = Study.objects.none()

    def perform_destroy(self, instance: Study) -> None:
        doors.cancel_or_drop(instance, self.person.get_username())


class LetterSerializer(serializers.Serializer[Any]):
    letter = serializers.CharField(max_length=1)


class StudyCancel(StudiesView):
    """One variant is lived no further; what it has lived stays."""

    serializer_class = AnsweredSerializer

    @extend_schema(request=LetterSerializer, responses=AnsweredSerializer)
    def post(self, request: Request, cluster: str, pk: int) -> Response:
        letter = sent(LetterSerializer, request)
        doors.cancel(
            self.compared(),
            letter=letter.validated_data["letter"],
            author=self.person.get_username(),
        )
        return Response(self.answered(self.compared()))


class PromoteSerializer(LetterSerializer):
    reason = serializers.CharField(max_length=500, validators=[one_line])


class PromotionSerializer(serializers.Serializer[Any]):
    """Send ``policy`` to PUT policy, ``quotas`` to POST quotas: nothing is changed yet."""

    policy: Any = serializers.DictField()
    quotas: Any = serializers.ListField(child=serializers.DictField())
    queues: Any = serializers.ListField(child=serializers.DictField())
    left_out: Any = serializers.ListField(child=serializers.CharField())


class StudyPromote(StudiesView):
    """A variant is chosen, with a reason. Its changes go through their own doors; this notes the choice."""

    serializer_class = PromotionSerializer

    @call(PromotionSerializer, takes=PromoteSerializer)
    def post(self) -> Any:
        study = self.compared()
        variant = study.variants.filter(letter=self.given["letter"]).first()
        if variant is None:
            raise ServiceError(
                "no_variant", "There is no such variant.", "Name its letter.", field="letter"
            )
        promote(variant=variant, author=self.person.get_username(), reason=self.given["reason"])
        return promotion_of(variant)
