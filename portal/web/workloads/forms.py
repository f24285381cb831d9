"""The submit form: fields, and the checks that stand at them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from portal.accounts.models import User
from portal.teams.access import submittable_queues
from portal.teams.submission import find_faults, personas_at, priority_classes_of, read_manifest
from portal.web.workloads import manifest as texts
from scheduling.models import Cluster, GpuClass, Queue, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.manifests import build_job_manifest

MAX_PODS = 100_000
MAX_SECONDS = 2_000_000_000
UNITS_S = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400}

Json = dict[str, Any]


class DurationField(forms.CharField):
    """'14 h', '20 min', '1 d 12 h' as seconds; a bare number is hours."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        parts = re.findall(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d)?", text.lower())
        rest = re.sub(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d)?", "", text.lower()).strip()
        seconds = round(sum(float(n) * UNITS_S[unit or "h"] for n, unit in parts))
        if rest or not 0 < seconds <= MAX_SECONDS:
            raise ValidationError("Write a duration such as 14 h, 20 min or 1 d 12 h.")
        return seconds


class CommandField(forms.CharField):
    """A command line as a shell would split it."""

    def clean(self, value: Any) -> Any:
        try:
            return shlex.split(super().clean(value))
        except ValueError as error:
            raise ValidationError(
                "A quote is not closed. Close it, or write one without."
            ) from error


class SubmitForm(forms.Form):
    """Once valid, ``manifest`` is the Job it describes."""

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

    manifest: Json | None = None

    def __init__(self, user: User, cluster: Cluster, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user, self.cluster = user, cluster
        self.known = {c.name: c for c in cluster.gpu_classes.all()}
        self.leaves = {
            q.name: q for q in submittable_queues(user).filter(cluster=cluster).order_by("path")
        }
        self._choices("queue", [(q.name, q.path) for q in self.leaves.values()])
        classes = self._priority_classes()
        self._choices("priority_class", [(name, name) for name in classes])
        for i in range(len(self.known)):
            self.fields[f"class_{i + 1}"] = forms.ChoiceField(
                required=i == 0,
                choices=[("", "–"), *((name, name) for name in self.known)],
                label=f"{_nth(i + 1)} choice",
            )

    @property
    def choices_of_class(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name.startswith("class_")]

    @property
    def chosen_queue(self) -> Queue | None:
        """What is chosen so far, checked or not: the preview shows its quota."""
        return self.leaves.get(self["queue"].value() or "")

    def clean(self) -> Json:
        data = super().clean() or {}
        classes = self._gpu_classes(data)
        if not self.errors:
            self._build(data, classes)
        return data

    def _gpu_classes(self, data: Mapping[str, Any]) -> list[GpuClass]:
        names = [data[key] for key in data if key.startswith("class_") and data[key]]
        for i, name in enumerate(names):
            if name in names[:i]:
                self.add_error("class_1", f"{name} is chosen twice. Choose each class once.")
        return [self.known[name] for name in dict.fromkeys(names)]

    def _build(self, data: Mapping[str, Any], classes: Sequence[GpuClass]) -> None:
        queue = self.leaves[data["queue"]]
        try:
            built = build_job_manifest(
                name=data["name"],
                queue=queue.name,
                namespace=queue.namespace or "default",
                image=data["image"],
                command=data["command"],
                gpu_classes=classes,
                gpus_per_pod=data["gpus_per_pod"],
                pods_min=data["pods_min"],
                pods_max=data["pods_max"],
                cpus_per_pod=data["cpus_per_pod"] or 0,
                memory_gib_per_pod=data["memory_gib_per_pod"] or 0,
                priority_class=data["priority_class"],
                run_time_limit_s=data["run_time_limit"],
                checkpoint_interval_s=data["checkpoint_every"],
            )
        except ServiceError as fault:
            self.add_fault(fault)
            return
        for found in find_faults(self.user, self.cluster, read_manifest(self.cluster, built)):
            self.add_fault(found)
        self.manifest = built

    def add_fault(self, fault: ServiceError) -> None:
        """A refusal at its field, or above the form when it belongs to none."""
        field = {"gpu_classes": "class_1", "run_time_limit_s": "run_time_limit"}.get(
            fault.field or "", fault.field
        )
        self.add_error(field if field in self.fields else None, str(fault))

    def _choices(self, name: str, choices: list[tuple[str, str]]) -> None:
        self.fields[name].choices = choices  # type: ignore[attr-defined] # a ChoiceField

    def _priority_classes(self) -> list[str]:
        """Every class that some persona of the person may use here, highest value first."""
        queue = self.chosen_queue or next(iter(self.leaves.values()), None)
        if queue is None:
            return []
        allowed = {c for p in personas_at(self.user, queue) for c in priority_classes_of(p)}
        return [c.name for c in sorted(allowed, key=lambda c: (-c.value, c.name))]


class PasteForm(forms.Form):
    """A pasted manifest. Once valid, ``manifest`` is what it says."""

    text = forms.CharField(
        widget=forms.Textarea, label="Manifest", max_length=texts.LONGEST, strip=False
    )
    manifest: Json | None = None

    def __init__(self, user: User, cluster: Cluster, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user, self.cluster = user, cluster

    def clean_text(self) -> str:
        text: str = self.cleaned_data["text"]
        self.manifest = texts.read(text)
        for fault in self._faults(self.manifest):
            self.add_fault(fault)
        return text

    def _faults(self, manifest: Json) -> list[ServiceError]:
        try:
            return find_faults(self.user, self.cluster, read_manifest(self.cluster, manifest))
        except ServiceError as unread:
            return [unread]

    def add_fault(self, fault: ServiceError) -> None:
        place = f"{fault.field.replace('_', ' ')}: " if fault.field else ""
        self.add_error("text", f"{place}{fault}")


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


def values_of(work: Workload) -> Json:
    """What a clone of ``work`` begins with; its image and command are the cluster's to know."""
    values: Json = {
        "name": f"{work.name[:58]}-copy",
        "queue": work.queue.name if work.queue else "",
        "priority_class": work.priority_class.name if work.priority_class else "",
        "gpus_per_pod": max(1, work.gpus // 1000),
        "pods_min": work.min_members,
        "pods_max": work.max_members if work.max_members != work.min_members else None,
        "cpus_per_pod": work.cpus / 1000 or None,
        "memory_gib_per_pod": work.memory_mib / 1024 or None,
        "run_time_limit": _text(work.run_time_limit_s),
        "checkpoint_every": _text(work.checkpoint_interval_s),
    }
    values |= {f"class_{i + 1}": name for i, name in enumerate(work.gpu_classes)}
    return values


def _text(seconds: int | None) -> str:
    if not seconds:
        return ""
    unit = next(u for u in ("h", "min", "s") if seconds % UNITS_S[u] == 0)
    return f"{seconds // UNITS_S[unit]} {unit}"


def _nth(n: int) -> str:
    return {1: "1st", 2: "2nd", 3: "3rd"}.get(n, f"{n}th")
