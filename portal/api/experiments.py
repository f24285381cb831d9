"""Experiments of the policy lab: begun, read, cancelled, promoted."""

from __future__ import annotations

from base64 import b64decode
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import Scope
from portal.api.foresight import OperatedView
from portal.boundary.reading import one_line
from scheduling.models import Experiment, Variant
from scheduling.services.errors import ServiceError
from scheduling.services.lab import experiments, periods, running
from scheduling.services.lab.against import lacking
from scheduling.services.lab.promoting import promote, promotion_of
from scheduling.services.lab.results import BASE, document, results
from scheduling.services.lab.taken import TraceAsked


class VariantSerializer(serializers.ModelSerializer[Variant]):
    """``changes`` as of a what-if; A changes nothing."""

    changes: Any = serializers.ListField(child=serializers.DictField(), read_only=True)

    class Meta:
        model = Variant
        fields = [
            "letter", "name", "kind", "changes", "state", "fault", "promoted_at", "promoted_by", "reason",
        ]  # fmt: skip
        read_only_fields = fields


class ExperimentSerializer(serializers.ModelSerializer[Experiment]):
    """``jobs`` is how many workloads are judged, ``recorded`` what really came of them; ``source`` whence the
    work is and how a trace was mapped, ``basis`` what the world rests on."""

    variants: Any = VariantSerializer(many=True, read_only=True)
    recorded: Any = serializers.DictField(read_only=True)
    source: Any = serializers.DictField(read_only=True)
    basis: Any = serializers.DictField(read_only=True)
    author = serializers.CharField(read_only=True, help_text="Empty where adaptation asked for it.")

    class Meta:
        model = Experiment
        fields = [
            "id", "name", "author", "begin", "end", "warm_up_s", "replays", "is_drawn", "jobs",
            "asked_at", "source", "basis", "recorded", "variants",
        ]  # fmt: skip
        read_only_fields = fields


class LivedSerializer(ExperimentSerializer):
    """With what is lived so far: means, differences to A with half their interval, verdicts, and what still
    speaks against promoting each variant."""

    results = serializers.SerializerMethodField()

    class Meta(ExperimentSerializer.Meta):
        fields = [*ExperimentSerializer.Meta.fields, "results"]
        read_only_fields = fields

    def get_results(self, experiment: Experiment) -> dict[str, Any]:
        found = results(experiment)
        told = document(experiment, found)
        for row, one in zip(found.rows, told["variants"], strict=True):
            is_other = row.variant.letter != BASE
            one["lacks"] = lacking(experiment, found, row) if is_other else []
        return told


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


class AskExperimentSerializer(serializers.Serializer[Any]):
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
        required=False, default=20, min_value=1, max_value=experiments.MOST_REPLAYS
    )
    is_drawn = serializers.BooleanField(
        required=False,
        default=True,
        help_text="Draw arrivals and run times near what came; else the period is lived once, as it came.",
    )
    variants: Any = AskedVariantSerializer(
        many=True, help_text="Those beside A, which is as in force."
    )


class ExperimentsView(OperatedView):
    def get_queryset(self) -> QuerySet[Experiment]:
        if self.is_schema:
            return Experiment.objects.none()
        rows = Experiment.objects.filter(cluster=self.cluster).defer("world", "work")
        return rows.prefetch_related("variants").select_related("cluster")

    def experiment(self, pk: int) -> Experiment:
        return get_object_or_404(self.get_queryset(), pk=pk)


@extend_schema_view(
    get=extend_schema(
        parameters=[
            OpenApiParameter(
                "by", str, enum=list(experiments.BY), description="Whose; all unless told."
            )
        ]
    )
)
class ExperimentList(ExperimentsView, generics.ListAPIView[Experiment]):
    """Experiments, the newest first."""

    serializer_class = ExperimentSerializer
    queryset = Experiment.objects.none()
    write_scope = Scope.QUOTAS

    def get_queryset(self) -> QuerySet[Experiment]:
        """Raises ServiceError for whose there are none."""
        by = "all" if self.is_schema else self.request.query_params.get("by", "all")
        if by not in experiments.BY:
            raise ServiceError(
                "unknown_choice", "Nobody else asks for experiments.", f"Use {' or '.join(experiments.BY)}.",
                field="by",
            )  # fmt: skip
        return super().get_queryset().filter(experiments.BY[by])

    @extend_schema(request=AskExperimentSerializer, responses={202: ExperimentSerializer})
    def post(self, request: Request, cluster: str) -> Response:
        """Begin one. 202 with its address: its replays are lived one after the other."""
        asked = AskExperimentSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        told = dict(asked.validated_data)
        days, trace = told.pop("warm_up_days"), told.pop("trace", None)
        made = experiments.ask(
            cluster=self.cluster,
            author=self.person.get_username(),
            asked=experiments.Asked(
                **told,
                warm_up=timedelta(days=days),
                trace=TraceAsked(trace["name"], trace.get("content")) if trace else None,
            ),
        )
        running.start(made)
        address = reverse("api:experiment", args=[self.cluster.name, made.pk])
        data = ExperimentSerializer(made).data
        return Response(data, status=status.HTTP_202_ACCEPTED, headers={"Location": address})


class ExperimentDetail(ExperimentsView, generics.RetrieveDestroyAPIView[Experiment]):
    """One experiment with its results. DELETE cancels it while it is lived, and drops it once it is over."""

    serializer_class = LivedSerializer
    queryset = Experiment.objects.none()
    write_scope = Scope.QUOTAS

    def perform_destroy(self, instance: Experiment) -> None:
        if not experiments.cancel(instance, author=self.person.get_username()):
            experiments.drop(instance)


class LetterSerializer(serializers.Serializer[Any]):
    letter = serializers.CharField(max_length=1)


class ExperimentCancel(ExperimentsView):
    """One variant is lived no further; what it has lived stays."""

    write_scope = Scope.QUOTAS
    serializer_class = LivedSerializer

    @extend_schema(request=LetterSerializer, responses=LivedSerializer)
    def post(self, request: Request, cluster: str, pk: int) -> Response:
        found = self.experiment(pk)
        letter = LetterSerializer(data=request.data)
        letter.is_valid(raise_exception=True)
        experiments.cancel(
            found, letter=letter.validated_data["letter"], author=self.person.get_username()
        )
        return Response(LivedSerializer(self.experiment(pk)).data)


class PromoteSerializer(LetterSerializer):
    reason = serializers.CharField(max_length=500, validators=[one_line])


class PromotionSerializer(serializers.Serializer[Any]):
    """Send ``policy`` to PUT policy, ``quotas`` to POST quotas: nothing is changed yet."""

    policy: Any = serializers.DictField()
    quotas: Any = serializers.ListField(child=serializers.DictField())
    queues: Any = serializers.ListField(child=serializers.DictField())
    left_out: Any = serializers.ListField(child=serializers.CharField())


class ExperimentPromote(ExperimentsView):
    """A variant is chosen, with a reason. Its changes go through their own doors; this notes the choice."""

    write_scope = Scope.QUOTAS
    serializer_class = PromotionSerializer

    @extend_schema(request=PromoteSerializer, responses=PromotionSerializer)
    def post(self, request: Request, cluster: str, pk: int) -> Response:
        found = self.experiment(pk)
        told = PromoteSerializer(data=request.data)
        told.is_valid(raise_exception=True)
        variant = found.variants.filter(letter=told.validated_data["letter"]).first()
        if variant is None:
            raise ServiceError(
                "no_variant", "There is no such variant.", "Name its letter.", field="letter"
            )
        promote(
            variant=variant, author=self.person.get_username(), reason=told.validated_data["reason"]
        )
        return Response(PromotionSerializer(promotion_of(variant)).data)
