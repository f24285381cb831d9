"""What a submission may look like: a whole manifest, or the fields it is built from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import fields, serializers
from rest_framework.utils.html import is_html_input

from portal.accounts.models import User
from portal.selectors.fields import FiniteField
from portal.teams import arrays
from portal.teams.submission import SubmissionError
from portal.teams.submission import submit as submit_manifest
from scheduling.models import Cluster, GpuClass, Queue
from scheduling.services.workloads.manifest import FormKind, build_job_manifest
from scheduling.services.workloads.turns import MOST_AFTER

MAX_PODS = 100_000
MAX_SECONDS = 2_000_000_000

Json = dict[str, Any]


NO_FIELDS = frozenset({"manifest", "even_if_never", "array", "array_at_once"})
"""What is said beside a manifest, or beside the fields that one is made of."""


class ManifestField(serializers.DictField):
    """An object as JSON. A form that has none has an empty one, which is none."""

    def get_value(self, dictionary: Mapping[str, Any]) -> Any:
        found = super().get_value(dictionary)
        return fields.empty if is_html_input(dictionary) and not found else found


class WorkFieldsSerializer(serializers.Serializer[Any]):
    """What is said alike of work to come and of a change to what waits."""

    gpus_per_pod = serializers.IntegerField(required=False, min_value=1, max_value=1024)
    pods_min = serializers.IntegerField(required=False, min_value=1, max_value=MAX_PODS)
    after: Any = serializers.ListField(
        child=serializers.CharField(max_length=260),
        required=False,
        max_length=MOST_AFTER,
        help_text="Names of work of its queue that it starts after; `name:ended` where any end will do.",
    )


class TopologySerializer(serializers.Serializer[Any]):
    """Levels of the cluster's topology, or `node`, by name."""

    required: Any = serializers.CharField(required=False, max_length=253, help_text="All in one.")
    preferred = serializers.CharField(
        required=False, max_length=253, help_text="All in one if possible."
    )
    segment_size = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_PODS,
        help_text="So many members at a time are in one domain of one of these levels.",
    )
    segment_required = serializers.CharField(required=False, max_length=253)
    segment_preferred = serializers.CharField(required=False, max_length=253)

    def validate(self, attrs: Json) -> dict[str, str]:
        levels = [key for key in ("segment_required", "segment_preferred") if key in attrs]
        if ("segment_size" in attrs) != (len(levels) == 1):
            sentence = "Say the size of a segment and its level, required or preferred."
            raise serializers.ValidationError({"segment_size": [sentence]})
        return {key: str(value) for key, value in attrs.items()}


class SubmitSerializer(WorkFieldsSerializer):
    """Either ``manifest``, or ``name``, ``queue``, ``image`` and the rest."""

    manifest: Any = ManifestField(
        required=False, help_text="An object of a kind that is queued, as kubectl apply takes it."
    )
    name = serializers.CharField(required=False, max_length=63)
    queue = serializers.CharField(
        required=False, max_length=63, help_text="Name of a leaf you may submit to."
    )
    priority_class = serializers.CharField(required=False, allow_blank=True, max_length=63)
    image = serializers.CharField(required=False, max_length=500)
    command: Any = serializers.ListField(
        child=serializers.CharField(), required=False, max_length=1000
    )
    gpu_classes: Any = serializers.ListField(
        child=serializers.CharField(max_length=63),
        required=False,
        max_length=100,
        help_text="In order of preference.",
    )
    pods_max = serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_PODS, help_text="Above pods_min: elastic."
    )
    cpus_per_pod = FiniteField(required=False, min_value=0, max_value=100_000)
    memory_gib_per_pod = FiniteField(required=False, min_value=0, max_value=1_000_000)
    run_time_limit_s = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=MAX_SECONDS
    )
    checkpoint_interval_s = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=MAX_SECONDS
    )
    env: Any = serializers.DictField(
        child=serializers.CharField(allow_blank=True, max_length=16384), required=False
    )
    volumes: Any = serializers.DictField(
        child=serializers.RegexField(r"^/[^:\s]{1,250}$"),
        required=False,
        help_text="Claim of its namespace -> where it is mounted.",
    )
    secrets: Any = serializers.ListField(
        child=serializers.CharField(max_length=253),
        required=False,
        max_length=50,
        help_text="Names of Secrets of its namespace whose keys become environment.",
    )
    topology: Any = TopologySerializer(required=False)
    kind = serializers.ChoiceField(
        choices=[kind.value for kind in FormKind],
        required=False,
        help_text="A Job, or a Deployment.",
    )
    not_before = serializers.DateTimeField(required=False, help_text="It starts no sooner.")
    array = serializers.IntegerField(
        required=False,
        min_value=2,
        max_value=arrays.MOST,
        help_text="So many members, each a workload; also of a manifest.",
    )
    array_at_once = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=arrays.MOST,
        help_text="Of them may hold GPUs at once.",
    )
    even_if_never = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Submit even what can never start as limits and nodes are. It waits, without a place in"
        " line, until they change.",
    )

    def validate(self, attrs: Json) -> Json:
        if "array_at_once" in attrs and "array" not in attrs:
            raise serializers.ValidationError({"array": ["Say how many members the array has."]})
        if "manifest" in attrs:
            extra = sorted(set(attrs) - NO_FIELDS)
            if extra:
                raise serializers.ValidationError(
                    {extra[0]: ["Send a manifest or fields, not both."]}
                )
            return attrs
        missing = [
            name for name in ("name", "queue", "image", "gpu_classes") if not attrs.get(name)
        ]
        if missing:
            raise serializers.ValidationError({name: ["This is needed."] for name in missing})
        return attrs


class ArrayMemberSerializer(serializers.Serializer[Any]):
    uid = serializers.CharField()
    name = serializers.CharField()


class SubmittedSerializer(serializers.Serializer[Any]):
    """The object as the cluster's API server made it; ``uid`` is the workload's."""

    uid = serializers.CharField(source="metadata.uid")
    name = serializers.CharField(source="metadata.name")
    namespace = serializers.CharField(source="metadata.namespace")
    members = ArrayMemberSerializer(
        many=True,
        required=False,
        help_text="Of an array, whose first member this is; else left out.",
    )
    manifest = serializers.SerializerMethodField()

    @extend_schema_field({"type": "object", "additionalProperties": {}})
    def get_manifest(self, made: Json) -> Json:
        return {name: part for name, part in made.items() if name != "members"}


def submit(user: User, cluster: Cluster, data: Mapping[str, Any]) -> Json:
    """Creates what ``asked`` (checked by SubmitSerializer) describes; the object as made.

    Raises ValidationError with every fault at its field, or the service's ServiceError.
    """
    manifest = data["manifest"] if "manifest" in data else build(cluster, data)
    never = data.get("even_if_never", False)
    with at_fields():
        if "array" not in data:
            return submit_manifest(user, cluster, manifest, even_if_never=never)
        made = arrays.submit(
            user,
            cluster,
            manifest,
            count=data["array"],
            at_once=data.get("array_at_once"),
            even_if_never=never,
        )
        return {**made[0], "members": [one["metadata"] for one in made]}


@contextmanager
def at_fields() -> Iterator[None]:
    """Has every fault of a refusal stand at its field."""
    try:
        yield
    except SubmissionError as refused:
        faults = {f.field or "": [f"{f.sentence} {f.remedy}".strip()] for f in refused.faults}
        raise serializers.ValidationError(faults) from refused


def build(cluster: Cluster, data: Mapping[str, Any]) -> Json:
    """The manifest of the fields. Raises ServiceError at the field at fault."""
    given = {name: value for name, value in data.items() if name not in NO_FIELDS}
    given["kind"] = FormKind(given.get("kind", FormKind.TRAINING))
    queue = Queue.objects.filter(cluster=cluster, name=data["queue"]).first()
    given["namespace"] = (queue.namespace if queue else "") or "default"
    given["gpu_classes"] = gpu_classes(cluster, data["gpu_classes"])
    return build_job_manifest(**given)


def gpu_classes(cluster: Cluster, names: list[str]) -> list[GpuClass]:
    """The classes in the given order. Raises ValidationError for a name the cluster lacks."""
    known = {c.name: c for c in cluster.gpu_classes.all()}
    wrong = next((name for name in names if name not in known), None)
    if wrong is not None:
        sentence = f"There is no GPU class {wrong} in {cluster}. Use {', '.join(known)}."
        raise serializers.ValidationError({"gpu_classes": [sentence]})
    return [known[name] for name in names]
