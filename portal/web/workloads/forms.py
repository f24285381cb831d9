"""The submit form: fields, and the checks that stand at them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from portal.accounts.models import User
from portal.boundary.fields import MomentField
from portal.display.format import zone
from portal.teams import arrays
from portal.teams.access import submittable_queues
from portal.teams.submission import NEVER_FITS, find_faults, usable_priority_classes
from portal.web.workloads import manifest as texts
from portal.web.workloads.class_choices import ClassChoices
from portal.web.workloads.fields import CommandField, DurationField, NamesField, PairsField
from scheduling.models import Cluster, GpuClass, PriorityClass, Queue, WorkloadType
from scheduling.services.errors import ServiceError
from scheduling.services.queues.knobs import levels_of
from scheduling.services.workloads import shapes
from scheduling.services.workloads.manifest import FormKind, build_job_manifest

MAX_PODS = 100_000
Json = dict[str, Any]
Leaves = Mapping[str, Queue]
"""By name."""


def leaves_of(user: User, cluster: Cluster) -> Leaves:
    """The queues that ``user`` may choose."""
    found = submittable_queues(user).filter(cluster=cluster).order_by("path")
    return {queue.name: queue for queue in found}


class ArrayFields(forms.Form):
    """How many members one submission has; none of it stands in the manifest that is shown."""

    array = forms.IntegerField(
        required=False, min_value=2, max_value=arrays.MOST, label="Members of an array"
    )
    at_once = forms.IntegerField(
        required=False, min_value=1, max_value=arrays.MOST, label="Of them at once"
    )

    def clean(self) -> Json:
        data = super().clean() or {}
        if data.get("at_once") and not data.get("array"):
            self.add_error(
                "array", "Say how many members the array has, or leave out how many at once."
            )
        return data


class SubmitForm(ArrayFields, ClassChoices):
    """Once valid, ``manifest`` is the object it describes."""

    kind = forms.ChoiceField(
        required=False,
        choices=[
            (FormKind.TRAINING.value, "Training"),
            (FormKind.INTERACTIVE.value, "Interactive session"),
            (FormKind.SERVICE.value, "Service"),
        ],
    )

    name = forms.RegexField(
        regex=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
        max_length=63,
        error_messages={
            "invalid": "Use lower-case letters, digits and '-', begin and end without '-'."
        },
    )
    queue = forms.ChoiceField()
    priority_class = forms.ChoiceField(required=False, label="Priority class")
    image = forms.CharField(max_length=500)
    command = CommandField(required=False)
    gpus_per_pod = forms.IntegerField(min_value=1, max_value=1024, label="GPUs per pod")
    pods_min = forms.IntegerField(min_value=1, max_value=MAX_PODS, label="Pods, min")
    pods_max = forms.IntegerField(
        min_value=1, max_value=MAX_PODS, required=False, label="Pods, max"
    )
    cpus_per_pod = forms.FloatField(
        min_value=0, max_value=100_000, required=False, label="CPUs per pod"
    )
    memory_gib_per_pod = forms.FloatField(
        min_value=0, max_value=1_000_000, required=False, label="Memory per pod, GiB"
    )
    run_time_limit = DurationField(required=False, label="Run-time limit")
    checkpoint_every = DurationField(required=False, label="Checkpoint every")
    env = PairsField(
        required=False,
        label="Environment",
        key=r"[-._a-zA-Z][-._a-zA-Z0-9]{0,252}",
        example="NCCL_DEBUG=INFO",
    )
    labels = PairsField(
        required=False,
        label="Labels",
        key=r"([-.a-z0-9]{1,253}/)?[a-zA-Z0-9]([-._a-zA-Z0-9]{0,61}[a-zA-Z0-9])?",
        value=r"([a-zA-Z0-9]([-._a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)?",
        prefix="weir.dev/",
        example="project=vision-v2",
    )
    volumes = PairsField(
        required=False,
        label="Volumes",
        key=r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?",
        value=r"/[^:\s]{1,250}",
        example="datasets=/data",
    )
    secrets = NamesField(required=False, label="Secrets", example="wandb, hub-token")
    together = forms.CharField(required=False, max_length=253, label="All pods in one")
    segment_size = forms.IntegerField(
        required=False, min_value=1, max_value=MAX_PODS, label="Pods of a segment"
    )
    segment_level = forms.CharField(required=False, max_length=253, label="Each segment in one")
    not_before = MomentField(label="Not before")
    after = forms.CharField(required=False, max_length=5000, label="After")
    even_if_never = forms.BooleanField(
        required=False, label="Submit it all the same, to wait until nodes or limits change"
    )

    manifest: Json | None = None
    can_never_start = False
    """What is asked for fits nowhere: it may be submitted all the same, once that is confirmed."""

    def __init__(
        self, user: User, cluster: Cluster, *args: Any, leaves: Leaves | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.user, self.cluster = user, cluster
        self.leaves = leaves_of(user, cluster) if leaves is None else leaves
        self.fields["not_before"].zone = zone(  # type: ignore[attr-defined] # a MomentField
            user.display_time_zone or cluster.display_time_zone
        )
        self._choices("queue", [(q.name, q.path) for q in self.leaves.values()])
        classes = self._priority_classes()
        self._choices("priority_class", [(one.name, one.name) for one in classes])
        self.of_sessions = [c.name for c in classes if c.type == WorkloadType.INTERACTIVE]
        self.offer_classes(cluster, first_required=True)

    @property
    def has_more(self) -> bool:
        """Whether the folded fields say anything, or are wrong."""
        return self._any_of("env", "labels", "secrets", "volumes")

    @property
    def levels(self) -> str:
        """Of the cluster's topology, to choose from."""
        return ", ".join(levels_of(self.cluster).with_nodes)

    @property
    def has_topology(self) -> bool:
        return self._any_of("together", "segment_size", "segment_level")

    @property
    def has_turn(self) -> bool:
        return self._any_of("not_before", "after", "array", "at_once")

    def _any_of(self, *names: str) -> bool:
        return any(self[name].value() or name in self.errors for name in names)

    @property
    def chosen_queue(self) -> Queue | None:
        """What is chosen so far, checked or not: the preview shows its quota."""
        return self.leaves.get(self["queue"].value() or "")

    def clean_image(self) -> str:
        image: str = self.cleaned_data["image"]
        if fault := shapes.fault_of(image):
            raise ValidationError(str(fault))
        return image

    def draft(self) -> Json | None:
        """The Job as far as it can be read, for whom still types; None without a queue and a class."""
        read = {name: self._read(name) for name in self.fields}
        classes = self._gpu_classes(read, quietly=True)
        if self.chosen_queue is None or not classes:
            return None
        counts = {name: read[name] or 1 for name in ("gpus_per_pod", "pods_min")}
        least = counts["pods_min"]
        most = max(least, read["pods_max"] or least)
        typed = {**read, **counts, "pods_max": most, "queue": self.chosen_queue.name}
        typed |= {"name": read["name"] or "draft", "image": read["image"] or "draft"}
        try:
            return self._made(typed, classes)
        except ServiceError:
            return None

    def _read(self, name: str) -> Any:
        """What a field says, None where that cannot be read."""
        try:
            return self.fields[name].clean(self[name].value())
        except ValidationError:
            return None

    @property
    def unread(self) -> list[str]:
        """Fields in which something stands that cannot be read; what the judge refuses can be."""
        return [
            name
            for name in self.errors
            if name in self.fields and self[name].value() and self._read(name) is None
        ]

    def clean(self) -> Json:
        data = super().clean() or {}
        classes = self._gpu_classes(data)
        if bool(data.get("segment_size")) != bool(data.get("segment_level")):
            missing = "segment_level" if data.get("segment_size") else "segment_size"
            self.add_error(missing, "A segment has a size and a level. Say both, or neither.")
        if not self.errors:
            self._build(data, classes)
        return data

    def _priority_class(self, data: Mapping[str, Any]) -> str:
        """What a workload is says its priority class: a session takes one of sessions, where there is any."""
        chosen = str(data["priority_class"] or "")
        is_session = data["kind"] == FormKind.INTERACTIVE and self.of_sessions
        return self.of_sessions[0] if is_session and chosen not in self.of_sessions else chosen

    def _gpu_classes(self, data: Mapping[str, Any], *, quietly: bool = False) -> list[GpuClass]:
        names = self.chosen_classes(data)
        for i, name in enumerate(names):
            if name in names[:i] and not quietly:
                self.add_error("class_1", f"{name} is chosen twice. Choose each class once.")
        return [self.known[name] for name in dict.fromkeys(names)]

    def _build(self, data: Mapping[str, Any], classes: Sequence[GpuClass]) -> None:
        try:
            built = self._made(data, classes)
        except ServiceError as fault:
            self.add_fault(fault)
            return
        found = faults_of(self.user, self.cluster, built, even_if_never=data["even_if_never"])
        for refused in found:
            self.add_fault(refused)
        self.can_never_start = data["even_if_never"] or any(f.code == NEVER_FITS for f in found)
        self.manifest = built

    def _made(self, data: Mapping[str, Any], classes: Sequence[GpuClass]) -> Json:
        queue = self.leaves[data["queue"]]
        return build_job_manifest(
            name=data["name"],
            queue=queue.name,
            namespace=queue.namespace or "default",
            image=data["image"],
            command=data["command"] or (),
            gpu_classes=classes,
            gpus_per_pod=data["gpus_per_pod"],
            pods_min=data["pods_min"],
            pods_max=data["pods_max"],
            cpus_per_pod=data["cpus_per_pod"] or 0,
            memory_gib_per_pod=data["memory_gib_per_pod"] or 0,
            priority_class=self._priority_class(data),
            run_time_limit_s=data["run_time_limit"],
            checkpoint_interval_s=data["checkpoint_every"],
            env=data["env"],
            own_labels=data["labels"],
            volumes=data["volumes"],
            secrets=data["secrets"] or (),
            not_before=data["not_before"],
            after=tuple(filter(None, (one.strip() for one in (data["after"] or "").split(",")))),
            topology={
                "required": data["together"] or "",
                "segment_size": str(data["segment_size"] or ""),
                "segment_required": data["segment_level"] or "",
            },
            kind=FormKind(data["kind"] or FormKind.TRAINING),
        )

    def add_fault(self, fault: ServiceError) -> None:
        """A refusal at its field, or above the form when it belongs to none."""
        field = {
            "gpu_classes": "class_1", "run_time_limit_s": "run_time_limit", "topology": "together",
        }.get(fault.field or "", fault.field)  # fmt: skip
        self.add_error(field if field in self.fields else None, str(fault))

    def _choices(self, name: str, choices: list[tuple[str, str]]) -> None:
        self.fields[name].choices = choices  # type: ignore[attr-defined] # a ChoiceField

    def _priority_classes(self) -> list[PriorityClass]:
        """Those that the person may use here."""
        queue = self.chosen_queue or next(iter(self.leaves.values()), None)
        return usable_priority_classes(self.user, queue) if queue else []


class PasteForm(ArrayFields):
    """A pasted manifest. Once valid, ``manifest`` is what it says."""

    text = forms.CharField(
        widget=forms.Textarea, label="Manifest", max_length=texts.LONGEST, strip=False
    )
    even_if_never = forms.BooleanField(
        required=False, label="Submit it all the same, to wait until nodes or limits change"
    )
    field_order = ["even_if_never", "text"]
    manifest: Json | None = None
    can_never_start = False

    def __init__(self, user: User, cluster: Cluster, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user, self.cluster = user, cluster

    def clean_text(self) -> str:
        text: str = self.cleaned_data["text"]
        self.manifest = texts.read(text)
        confirmed = self.cleaned_data.get("even_if_never", False)
        found = faults_of(self.user, self.cluster, self.manifest, even_if_never=confirmed)
        for fault in found:
            self.add_fault(fault)
        self.can_never_start = confirmed or any(f.code == NEVER_FITS for f in found)
        return text

    def draft(self) -> Json | None:
        """What the text says as it stands; None while it cannot be read."""
        try:
            return texts.read(str(self["text"].value() or ""))
        except ValidationError:
            return None

    def add_fault(self, fault: ServiceError) -> None:
        place = f"{fault.field.replace('_', ' ')}: " if fault.field else ""
        self.add_error("text", f"{place}{fault}")


def faults_of(
    user: User, cluster: Cluster, manifest: Json, *, even_if_never: bool
) -> list[ServiceError]:
    """What forbids ``manifest``, or why it cannot be read."""
    try:
        return find_faults(user, cluster, manifest, even_if_never=even_if_never)
    except ServiceError as unread:
        return [unread]


def first_values(cluster: Cluster, leaves: Sequence[Queue], default_class: str) -> Json:
    """What the form begins with: the first leaf, one GPU, the first class."""
    gpu_class = cluster.gpu_classes.first()
    return {
        "queue": leaves[0].name if leaves else "",
        "priority_class": default_class,
        "gpus_per_pod": 1,
        "pods_min": 1,
        "class_1": gpu_class.name if gpu_class else "",
        "run_time_limit": "24 h",
    }
