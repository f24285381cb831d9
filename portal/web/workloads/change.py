"""Change what waits: what it would do to its start stands on the page before it is saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from portal.boundary.fields import MomentField
from portal.boundary.reading import whole_or
from portal.display.format import gpus, zone
from portal.plans.asking import starts_of
from portal.teams import changing
from portal.teams.access import may_operate_workload
from portal.teams.changing import ChangeOutlook, Comparison
from portal.teams.submission import SubmissionError, priority_classes_to_give
from portal.web.frame.requests import PersonRequest
from portal.web.frame.shell import get_cluster
from portal.web.moments import local
from portal.web.workloads.class_choices import ClassChoices
from portal.web.workloads.detail import visible
from portal.web.workloads.fields import DurationField, duration_text
from portal.web.workloads.forms import MAX_PODS
from scheduling.models import Cluster, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.starts.tell import NO_WORD, PredictedStart
from scheduling.services.workloads.change import WorkloadChange
from scheduling.services.workloads.turns import turn_of

NAMES = {"before": "As it is", "after": "Changed"}
AT = {"run_time_limit": "run_time_limit", "gpu_classes": "class_1", "array": "at_once"}
"""Field of a refusal -> that of the form."""


class ChangeForm(ClassChoices):
    """What stands there, to be edited; once valid, ``change`` says what is to be otherwise."""

    priority_class = forms.ChoiceField(required=False, label="Priority class")
    run_time_limit = DurationField(required=False, label="Run-time limit")
    gpus_per_pod = forms.IntegerField(min_value=1, max_value=1024, label="GPUs per pod")
    pods_min = forms.IntegerField(min_value=1, max_value=MAX_PODS, label="Pods, min")
    pods_max = forms.IntegerField(min_value=1, max_value=MAX_PODS, label="Pods, max")
    not_before = MomentField(label="Not before")
    after = forms.CharField(required=False, max_length=5000, label="After")
    at_once = forms.IntegerField(
        required=False, min_value=1, max_value=MAX_PODS, label="Of its array at once"
    )

    def __init__(
        self, request: PersonRequest, work: Workload, data: Mapping[str, Any] | None = None
    ) -> None:
        self.work, self.zone = (
            work,
            request.user.display_time_zone or work.cluster.display_time_zone,
        )
        super().__init__(data, initial=values_of(work, self.zone))
        given = priority_classes_to_give(request.user, work.cluster, [work])
        names = dict.fromkeys([self.initial["priority_class"], *(p.name for p in given)])
        self.fields["priority_class"].choices = [(n, n) for n in names if n]  # type: ignore[attr-defined] # a ChoiceField
        self.fields["not_before"].zone = zone(self.zone)  # type: ignore[attr-defined] # a MomentField
        self.offer_classes(work.cluster, first_required=False)
        if not work.turn.get("array"):
            del self.fields["at_once"]
        if work.gpus % 1000:
            del self.fields["gpus_per_pod"]

    @property
    def change(self) -> WorkloadChange:
        """Only what differs from what stands there: the rest is as whoever else edits it leaves it."""
        said: dict[str, Any] = {}
        data, now = self.cleaned_data, values_of(self.work, self.zone)
        if data.get("priority_class") and data["priority_class"] != now["priority_class"]:
            said["priority_class"] = data["priority_class"]
        if (data["run_time_limit"] or 0) != (self.work.run_time_limit_s or 0):
            said["run_time_limit_s"] = data["run_time_limit"] or 0
        for name in ("gpus_per_pod", "pods_min", "pods_max"):
            if name in data and data[name] != now[name]:
                said[name] = data[name]
        if "pods_min" in said or "pods_max" in said:
            said |= {"pods_min": data["pods_min"], "pods_max": data["pods_max"]}
        if classes := self._classes(now):
            said["gpu_classes"] = classes
        if data["not_before"] != turn_of(self.work).not_before and (
            local(data["not_before"], self.zone) != now["not_before"]
        ):
            said["not_before"] = data["not_before"] or ""
        if data["after"] != now["after"]:
            said["after"] = tuple(filter(None, (one.strip() for one in data["after"].split(","))))
        if "at_once" in data and (data["at_once"] or 0) != (now["at_once"] or 0):
            said["at_once"] = data["at_once"] or 0
        return WorkloadChange(**said)

    def _classes(self, now: dict[str, Any]) -> tuple[str, ...]:
        """In their new order; empty where it is the old one."""
        classes = tuple(dict.fromkeys(self.chosen_classes(self.cleaned_data)))
        return () if classes == tuple(self.work.gpu_classes) else classes

    def add_faults(self, refused: ServiceError) -> None:
        faults = refused.faults if isinstance(refused, SubmissionError) else (refused,)
        for fault in faults:
            name = AT.get(fault.field or "", fault.field)
            self.add_error(name if name in self.fields else None, str(fault))


def values_of(work: Workload, zone_name: str) -> dict[str, Any]:
    """What stands there, as the form writes it."""
    values: dict[str, Any] = {
        "priority_class": work.priority_class.name if work.priority_class else "",
        "run_time_limit": duration_text(work.run_time_limit_s),
        "gpus_per_pod": work.gpus // 1000,
        "pods_min": work.min_members,
        "pods_max": work.max_members,
        "not_before": local(turn_of(work).not_before, zone_name),
        "after": ", ".join(work.turn.get("after", ())),
        "at_once": work.turn.get("at_once"),
    }
    return values | {f"class_{i + 1}": name for i, name in enumerate(work.gpu_classes)}


@login_required
@require_http_methods(["GET", "POST"])
def change(request: PersonRequest, cluster: str, uid: str) -> HttpResponse:
    """The page. Posted with ``check`` it shows what would come of it, and writes nothing."""
    found = get_cluster(request, cluster)
    work = _changeable(request, found, uid)
    if not work.is_waiting:
        state = work.get_state_display().lower()
        messages.info(request, f"{work.name} is {state} by now; only what waits can be changed.")
        return redirect("web:workload", cluster=found.name, uid=work.uid)
    form = ChangeForm(request, work, request.POST if request.method == "POST" else None)
    compared = None
    if request.method == "POST" and form.is_valid():
        compared = _compare_or_save(request, work, form)
        if compared is None and not form.errors:
            messages.success(request, f"{work.name} is changed; the next cycle plans it so.")
            return redirect("web:workload", cluster=found.name, uid=work.uid)
    shown = {"cluster": found, "work": work, "form": form, "compared": compared}
    if compared:
        shown["rows"], shown["is_open"] = _rows(request, work, form, compared)
        shown["tries"] = whole_or(request.POST.get("tries", "0"), 0)
    status = 422 if form.errors else 200
    return render(request, "web/workloads/change.html", shown, status=status)


def _compare_or_save(request: PersonRequest, work: Workload, form: ChangeForm) -> Comparison | None:
    """What would come of it where that is asked; else None, once it is written or refused in the form."""
    try:
        if "check" in request.POST:
            user = request.user
            return changing.preview(user, work, form.change, asker=user.get_username())
        changing.change(request.user, work, form.change)
    except ServiceError as refused:
        form.add_faults(refused)
    return None


@dataclass(frozen=True, slots=True)
class OutlookRow:
    """What becomes of it, as it is or as it would be; ``size`` is the most GPUs that it takes."""

    name: str
    size: str
    one: ChangeOutlook
    likely: PredictedStart


def _rows(
    request: PersonRequest, work: Workload, form: ChangeForm, compared: Comparison
) -> tuple[list[OutlookRow], bool]:
    """As it is and changed; and whether a worker has still to say when they start."""
    starts = starts_of(request.user, work, form.change, compared)
    sides = {
        "before": (compared.before, compared.draft.before),
        "after": (compared.after, compared.draft.after),
    }
    rows = [
        OutlookRow(NAMES[key], gpus(o.gpus * o.max_members), one, starts.found.get(key, NO_WORD))
        for key, (one, o) in sides.items()
    ]
    return rows, starts.is_open


def _changeable(request: PersonRequest, cluster: Cluster, uid: str) -> Workload:
    """Raises Http404 for what the person may not see, and for what they may not touch."""
    work = get_object_or_404(visible(request.user, cluster), uid=uid)
    if not may_operate_workload(request.user, work):
        raise Http404
    return work
