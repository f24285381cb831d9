"""What is told of a workload."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.ledger import EvictionSerializer, ToldSerializer
from portal.api.scope import RowSerializer
from portal.selectors.costs import Cost, cost_of, gpu_seconds, may_read_cost
from portal.selectors.fields import GpuHoursField, GpusField
from scheduling.models import Prediction, ToldStart, Transition, Workload, WorkloadEdit
from scheduling.services.queues.leads import standing
from scheduling.services.starts.tell import PredictedStart, predicted_start
from scheduling.services.words import endings
from scheduling.services.words.sentences import home_of
from scheduling.services.workloads.checkpoints import CheckpointOutlook, Source, outlook


class StartForecastSerializer(serializers.Serializer[PredictedStart]):
    """P50 and P90 of its start as they are said now; where one is null, as where it has passed, ``why_not``
    says why."""

    at = serializers.DateTimeField(allow_null=True)
    p50_at = serializers.DateTimeField(source="p50", allow_null=True)
    p90_at = serializers.DateTimeField(source="p90", allow_null=True)
    why_not = serializers.CharField()


class ToldStartSerializer(RowSerializer[ToldStart]):
    """What was told of its start at one time; ``change`` from what was told before, and why. The
    time of a reservation has no ``p50_at``."""

    class Meta:
        model = ToldStart
        fields = ["at", "p50_at", "p90_at", "change", "breaks", "cause", "note"]


class WorkloadEditSerializer(RowSerializer[WorkloadEdit]):
    """What somebody did to it while it waited. ``actor`` is empty for what was done on the cluster itself,
    ``before`` null until a cycle saw it."""

    class Meta:
        model = WorkloadEdit
        fields = ["at", "kind", "actor", "before", "after"]


class RunTimeSerializer(RowSerializer[Prediction]):
    """What was learned of its run time: P10, P50 and P90 in seconds of the rest of it from ``at`` on, of one
    that waits from its start; as it was told first; what it rests on. ``ran_s`` once it has ended."""

    group = serializers.CharField(source="evidence.group", read_only=True, default="")
    runs = serializers.IntegerField(source="evidence.runs", read_only=True, default=0)
    by_class: Any = serializers.DictField(read_only=True)

    class Meta:
        model = Prediction
        fields = [
            "at", "p10_s", "p50_s", "p90_s", "told_at", "told_p10_s", "told_p50_s", "told_p90_s",
            "ran_s", "group", "runs", "by_class",
        ]  # fmt: skip


class WorkloadSerializer(ToldSerializer):
    """A workload; its sentence names only what you may see."""

    queue: Any = serializers.SlugRelatedField(slug_field="name", read_only=True, allow_null=True)
    queue_path = serializers.CharField(
        source="queue.path", read_only=True, allow_null=True, default=None
    )
    priority_class: Any = serializers.SlugRelatedField(
        slug_field="name", read_only=True, allow_null=True
    )
    gpu_class: Any = serializers.SlugRelatedField(
        slug_field="name", read_only=True, allow_null=True, help_text="Held now, or last."
    )
    gpus = GpusField(read_only=True, help_text="Per member.")
    cpus = serializers.SerializerMethodField(help_text="Per member.")
    gpu_classes: Any = serializers.ListField(child=serializers.CharField(), read_only=True)
    topology: Any = serializers.DictField(child=serializers.CharField(), read_only=True)
    outcome = serializers.CharField(
        read_only=True, help_text="succeeded, failed or cancelled; empty until it is finished."
    )
    cause = serializers.CharField(
        read_only=True,
        help_text="Why it did not succeed, or what keeps it from running; else empty.",
    )
    exit_code = serializers.IntegerField(
        read_only=True, allow_null=True, help_text="Of the container that ended with an error."
    )
    ending = serializers.SerializerMethodField(help_text="The cause in a sentence; empty without.")
    remedy = serializers.SerializerMethodField(help_text="The remedy; may be empty.")
    placement: Any = serializers.DictField(child=serializers.IntegerField(), read_only=True)
    turn: Any = serializers.DictField(
        read_only=True,
        help_text="When its author lets it start: not_before, after, array, index, at_once; empty without.",
    )
    position = serializers.IntegerField(
        source="place", read_only=True, allow_null=True,
        help_text="Its place among those of its queue that wait to start; null of what is on hold.",
    )  # fmt: skip
    requested_gpus = GpusField(read_only=True, help_text="Of the gang at its smallest.")
    allocated_gpus = GpusField(read_only=True)
    used_gpu_hours = serializers.SerializerMethodField(
        help_text="Held so far, in whole GPUs: a slice counts as its part of one."
    )
    lost_gpu_hours = GpuHoursField(source="lost_gpu_s", read_only=True)
    start_forecast = serializers.SerializerMethodField(
        help_text="While it waits, once it was told."
    )
    lead_s = serializers.SerializerMethodField(
        help_text="Seconds ahead of the nominal quota of its queue alone, negative when behind; null "
        "before it would have begun there."
    )
    run_time = RunTimeSerializer(
        source="prediction", read_only=True, allow_null=True, default=None,
        help_text="As learned, once anything was.",
    )  # fmt: skip

    class Meta:
        model = Workload
        fields = [
            "uid",
            "kind",
            "namespace",
            "name",
            "queue",
            "queue_path",
            "queue_label",
            "user",
            "priority_class",
            "type",
            "state",
            "outcome",
            "cause",
            "exit_code",
            "cause_said",
            "ending",
            "remedy",
            "held",
            "turn",
            "position",
            "reason",
            "sentence",
            "numbers",
            "until",
            "gpus",
            "cpus",
            "memory_mib",
            "min_members",
            "max_members",
            "elastic",
            "shapes",
            "gpu_classes",
            "topology",
            "run_time_limit_s",
            "checkpoint_interval_s",
            "predicted_p50_s",
            "predicted_p90_s",
            "submitted_at",
            "admitted_at",
            "first_started_at",
            "started_at",
            "checkpointed_at",
            "finished_at",
            "gpu_class",
            "members",
            "placement",
            "short_since",
            "requested_gpus",
            "allocated_gpus",
            "eviction_count",
            "used_gpu_hours",
            "lost_gpu_hours",
            "image",
            "start_forecast",
            "lead_s",
            "run_time",
        ]

    def to_representation(self, workload: Workload) -> dict[str, Any]:
        shown = super().to_representation(workload)
        if home_of(workload, self.reader) is None:
            shown |= dict.fromkeys(("queue", "queue_path"))
        return shown

    def get_used_gpu_hours(self, workload: Workload) -> float:
        return round(gpu_seconds(workload, workload.cluster.now()) / 3600, 4)

    @extend_schema_field(StartForecastSerializer(allow_null=True))
    def get_start_forecast(self, workload: Workload) -> Any:
        row = getattr(workload, "start_forecast", None) if workload.is_waiting else None
        return (
            StartForecastSerializer(predicted_start(row, workload.cluster.now())).data
            if row
            else None
        )

    def get_ending(self, workload: Workload) -> str:
        return endings.sentence(workload)

    def get_remedy(self, workload: Workload) -> str:
        return endings.remedy(workload)

    def get_cpus(self, workload: Workload) -> float:
        return workload.cpus / 1000

    def get_lead_s(self, workload: Workload) -> float | None:
        return standing(workload, workload.cluster.now())


class TransitionSerializer(ToldSerializer):
    """One step of its life."""

    numbers = None
    from_state = serializers.CharField(read_only=True, help_text="Empty for the first step.")
    gpus = GpusField(read_only=True, help_text="Held after the step.")

    class Meta:
        model = Transition
        fields = ["at", "from_state", "to_state", "reason", "sentence", "actor", "gpus"]


class CostSerializer(serializers.Serializer[Cost]):
    amount = serializers.DecimalField(max_digits=14, decimal_places=2)
    currency = serializers.CharField()
    price_per_gpu_hour = serializers.DecimalField(max_digits=10, decimal_places=4)
    gpu_hours = serializers.FloatField()


class LearnedCheckpointSerializer(serializers.Serializer[CheckpointOutlook]):
    interval_s = serializers.IntegerField(source="learned.interval_s")
    learned_from = serializers.ChoiceField(
        source="learned.source",
        choices=[source.value for source in Source],
        help_text="The nearest who announce theirs and are enough.",
    )
    told = serializers.IntegerField(
        source="learned.announcing", help_text="Workloads that announced (own: intervals) ..."
    )
    seen = serializers.IntegerField(source="learned.seen", help_text="... of so many.")
    presumed_at = serializers.DateTimeField(
        allow_null=True, help_text="The checkpoint it is taken to have made without announcing it."
    )
    due_at = serializers.DateTimeField(
        allow_null=True, help_text="When it should announce its next."
    )


class WorkloadDetailSerializer(WorkloadSerializer):
    transitions = TransitionSerializer(many=True, read_only=True)
    evictions = EvictionSerializer(many=True, read_only=True)
    told_starts = ToldStartSerializer(many=True, read_only=True)
    edits = WorkloadEditSerializer(many=True, read_only=True)
    cost = serializers.SerializerMethodField(
        help_text="So far; null for those who may not read costs."
    )
    learned_checkpoint = serializers.SerializerMethodField(
        help_text="Null where it declares an interval, where nothing is learned, and at its end."
    )

    class Meta(WorkloadSerializer.Meta):
        fields = [
            *WorkloadSerializer.Meta.fields,
            "transitions",
            "evictions",
            "told_starts",
            "edits",
            "cost",
            "learned_checkpoint",
        ]

    @extend_schema_field(CostSerializer(allow_null=True))
    def get_cost(self, workload: Workload) -> Any:
        if not may_read_cost(self.context["request"].user, workload):
            return None
        cost = cost_of(workload, workload.cluster.now())
        return None if cost is None else CostSerializer(cost).data

    @extend_schema_field(LearnedCheckpointSerializer(allow_null=True))
    def get_learned_checkpoint(self, workload: Workload) -> Any:
        expected = outlook(workload, workload.cluster.now())
        return None if expected is None else LearnedCheckpointSerializer(expected).data


class RelaxationSerializer(serializers.Serializer[Any]):
    """One change that would start it now."""

    change = serializers.CharField(help_text="The field that is changed, as `gpu_class`.")
    value: Any = serializers.JSONField(allow_null=True)
    gpu_class = serializers.CharField(help_text="On which it would start.")
    queue = serializers.CharField(help_text="Whose limit it is; empty where it is none.")
    evicts_gpus = serializers.FloatField(help_text="That others would give up first.")
    sentence = serializers.CharField()


class SoonerSerializer(serializers.Serializer[Any]):
    changes = RelaxationSerializer(many=True)
