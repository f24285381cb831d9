"""Queues themselves: add one below one's own, change its name, place and policy, remove an empty one."""

from __future__ import annotations

import dataclasses
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from portal.accounts.views import person
from portal.teams.access import dividable_queues, is_admin, is_operator, visible_queues
from portal.teams.reading import reader_of
from portal.web.frame.requests import act_view, acted, form_view
from portal.web.frame.shell import get_cluster
from portal.web.quotas.draining import CONFIRMED, DrainPreview, draining
from portal.web.quotas.place import crumbs, get_queue, may_divide, may_edit_queue
from portal.web.quotas.preview import EditPreview, tried
from portal.web.studies.drafts import DRAFT
from portal.web.studies.ways import sentences
from scheduling.models import MILLI, PodSecurity, Queue, Sharing, Stop
from scheduling.services.errors import ServiceError, name_refused
from scheduling.services.queues.faults import figure
from scheduling.services.queues.sharing import name_of
from scheduling.services.queues.tree import (
    MOST_PRIORITY,
    NAME_TAKEN,
    Bounds,
    Limits,
    change_queue,
    create_queue,
    delete_queue,
)
from scheduling.services.studies.whatif.documents import changes_of_queue

STOPS = [
    (Stop.NONE.value, "No: work is admitted"),
    (Stop.HOLD.value, "Hold: nothing new is admitted, what runs goes on"),
    (Stop.DRAIN.value, "Drain: nothing new is admitted, what runs is evicted"),
]


SHARINGS = [("", "As the queue above"), *((way.value, name_of(way)) for way in Sharing)]
SECURITY = [
    ("", "As the queue above says; baseline where none does"),
    (PodSecurity.PRIVILEGED.value, "Privileged: pods may do all that the node can"),
    (PodSecurity.BASELINE.value, "Baseline: nothing of the node is given away"),
    (PodSecurity.RESTRICTED.value, "Restricted: pods give up every privilege"),
]
OPERATORS_ONLY = ("access_group", "pod_security", "max_cpus", "max_memory_gib", "max_pods")
MIB_PER_GIB = 1024

LIMIT_ERRORS = {
    "invalid": "Write a number, or leave it empty for no limit.",
    "min_value": "Write 0 or more, or leave it empty for no limit.",
}
MOST_AT_ONCE = 1_000_000
DRAFTED = (
    "priority",
    "stop",
    "sharing",
    "max_running",
    "max_running_per_user",
    "max_gpus_per_user",
)
"""Fields that an address may fill in."""


class QueueForm(forms.Form):
    """What a queue is called, where it hangs, and how it takes work. The service checks the rest."""

    stands = False
    """Whether its namespace was refused for what runs there, which an admin may say they looked at."""

    name = forms.CharField(
        max_length=63, error_messages={"required": "A queue needs a name. Workloads carry it."}
    )
    parent: forms.ModelChoiceField[Queue] = forms.ModelChoiceField(
        Queue.objects.none(),
        to_field_name="name",
        empty_label=None,
        error_messages={
            "required": "A queue hangs below another. Choose one.",
            "invalid_choice": "Choose one of the listed queues.",
        },
    )
    priority = forms.IntegerField(
        min_value=-MOST_PRIORITY,
        max_value=MOST_PRIORITY,
        error_messages={
            "required": "Write a whole number, 0 for the common tier.",
            "invalid": "Write a whole number, 0 for the common tier.",
        },
    )
    stop = forms.ChoiceField(choices=STOPS)
    sharing = forms.ChoiceField(choices=SHARINGS, required=False)
    namespace = forms.CharField(max_length=63, required=False)
    taking = forms.CharField(max_length=63, required=False)
    """The namespace that the person was shown what stands in."""
    access_group = forms.CharField(max_length=200, required=False)
    max_running = forms.IntegerField(
        required=False, min_value=0, max_value=MOST_AT_ONCE, error_messages=LIMIT_ERRORS
    )
    max_running_per_user = forms.IntegerField(
        required=False, min_value=0, max_value=MOST_AT_ONCE, error_messages=LIMIT_ERRORS
    )
    max_gpus_per_user = forms.DecimalField(
        required=False,
        min_value=0,
        max_value=MOST_AT_ONCE,
        decimal_places=3,
        error_messages={**LIMIT_ERRORS, "max_decimal_places": "Write at most three decimals."},
    )

    pod_security = forms.ChoiceField(choices=SECURITY, required=False)
    max_cpus = forms.DecimalField(
        required=False,
        min_value=0,
        max_value=MOST_AT_ONCE,
        decimal_places=3,
        error_messages={**LIMIT_ERRORS, "max_decimal_places": "Write at most three decimals."},
    )
    max_memory_gib = forms.IntegerField(
        required=False, min_value=0, max_value=MOST_AT_ONCE, error_messages=LIMIT_ERRORS
    )
    max_pods = forms.IntegerField(
        required=False, min_value=0, max_value=MOST_AT_ONCE, error_messages=LIMIT_ERRORS
    )

    def __init__(self, *args: Any, parents: QuerySet[Queue], operator: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.operator = operator
        self.fields["parent"].queryset = parents  # type: ignore[attr-defined]
        for name in () if operator else OPERATORS_ONLY:
            del self.fields[name]

    def refuse(self, error: ServiceError, seen: QuerySet[Queue]) -> None:
        """Put a service's refusal at the field it names; of queues that are not ``seen`` it tells nothing."""
        if error.code == NAME_TAKEN and not seen.filter(name=self.cleaned_data["name"]).exists():
            error = name_refused()
        self.stands = error.code == "namespace_stands"
        known = error.field if error.field in self.fields else None
        self.add_error(known, str(error))

    def values(self) -> dict[str, Any]:
        data = dict(self.cleaned_data)
        running, each, gpus = (data.pop(field.name) for field in dataclasses.fields(Limits))
        most = None if gpus is None else int(gpus * MILLI)
        bounds = {"bounds": _bounds(data)} if self.operator else {}
        return {**data, "stop": Stop(data["stop"]), "limits": Limits(running, each, most), **bounds}


def _bounds(data: dict[str, Any]) -> Bounds:
    """What an operator typed of a queue's namespace, taken out of ``told``."""
    level, cpus, gib, pods = (data.pop(name) for name in OPERATORS_ONLY[1:])
    return Bounds(
        pod_security=level,
        max_cpus=None if cpus is None else int(cpus * MILLI),
        max_memory_mib=None if gib is None else gib * MIB_PER_GIB,
        max_pods=pods,
    )


def _form(request: HttpRequest, top: Queue, initial: dict[str, Any]) -> QueueForm:
    return QueueForm(
        request.POST or None,
        initial=initial,
        parents=_parents(request, top),
        operator=is_admin(request.user),
    )


def _visible(request: HttpRequest, near: Queue) -> QuerySet[Queue]:
    return visible_queues(request.user).filter(cluster=near.cluster)


def _parents(request: HttpRequest, top: Queue) -> QuerySet[Queue]:
    mine = dividable_queues(request.user).filter(cluster=top.cluster)
    return mine.select_related("cluster").order_by("path")


@form_view
def add(request: HttpRequest, cluster: str, queue: str) -> HttpResponse:
    """A new queue below ``queue`` or below another that the person divides."""
    parent = get_queue(request, get_cluster(request, cluster), queue)
    if not may_divide(request, parent):
        raise Http404
    initial = {"parent": parent.name, "priority": 0, "stop": Stop.NONE.value}
    form = _form(request, parent, initial)
    if request.method == "POST" and form.is_valid():
        try:
            made = create_queue(author=person(request), **form.values())
        except ServiceError as refused:
            form.refuse(refused, _visible(request, parent))
        else:
            messages.success(request, f"Queue {made.name} is there. Give it a quota.")
            return redirect("web:quotas", cluster, form.cleaned_data["parent"].name)
    return _page(request, parent, form, is_new=True)


@form_view
def edit(request: HttpRequest, cluster: str, queue: str) -> HttpResponse:
    """Name, place, tier, stop policy, namespace, access group, limits and bounds of a queue."""
    found = _editable(request, cluster, queue)
    initial = {
        "name": found.name,
        "parent": found.parent.name if found.parent else "",
        "priority": found.priority,
        "stop": found.stop,
        "sharing": found.sharing,
        "namespace": found.namespace,
        "access_group": found.access_group,
        "max_running": found.max_running,
        "max_running_per_user": found.max_running_per_user,
        "max_gpus_per_user": _gpus(found.max_gpus_per_user),
        "pod_security": found.pod_security,
        "max_cpus": _gpus(found.max_cpus),
        "max_memory_gib": _gib(found.max_memory_mib),
        "max_pods": found.max_pods,
    }
    form = _form(request, found, initial | _drafted(request))
    if request.method == "POST" and form.is_valid():
        if "preview" in request.POST:
            return _page(request, found, form, is_new=False, seen=_tried(request, found, form))
        if _begins_drain(request, found, form):
            shown = draining(found, reader_of(request))
            return _page(request, found, form, is_new=False, draining=shown)
        try:
            changed = change_queue(queue=found, author=person(request), **form.values())
        except ServiceError as refused:
            form.refuse(refused, _visible(request, found))
        else:
            messages.success(request, f"Queue {changed.name} is changed from the next cycle on.")
            return redirect("web:quotas", cluster, changed.parent.name if changed.parent else "")
    return _page(request, found, form, is_new=False)


def _drafted(request: HttpRequest) -> dict[str, str]:
    """What the address says was typed and is not saved."""
    if DRAFT not in request.GET:
        return {}
    return {name: request.GET[name] for name in DRAFTED if name in request.GET}


@act_view
def delete(request: HttpRequest, cluster: str, queue: str) -> HttpResponse:
    """Remove an empty queue; one that is not says why it stays."""
    found = _editable(request, cluster, queue)
    parent = found.parent
    gone = f"Queue {queue} is gone."
    if acted(request, lambda: delete_queue(queue=found, author=person(request)), gone):
        return redirect("web:quotas", cluster, parent.name if parent else "")
    return redirect("web:queue_edit", cluster, queue)


def _tried(request: HttpRequest, queue: Queue, form: QueueForm) -> EditPreview:
    values = form.values()
    limits = dataclasses.asdict(values["limits"])
    return tried(person(request), queue.cluster, changes_of_queue(queue, {**values, **limits}))


def _begins_drain(request: HttpRequest, queue: Queue, form: QueueForm) -> bool:
    """Whether it would begin to evict, and nobody has confirmed whom."""
    drains = form.cleaned_data["stop"] == Stop.DRAIN.value and queue.stop != Stop.DRAIN.value
    return drains and CONFIRMED not in request.POST


def _gpus(milli: int | None) -> str:
    return "" if milli is None else figure(milli)


def _gib(mib: int | None) -> int | None:
    return None if mib is None else mib // MIB_PER_GIB


def _editable(request: HttpRequest, cluster: str, name: str) -> Queue:
    found = get_queue(request, get_cluster(request, cluster), name)
    if not may_edit_queue(request.user, found):
        raise Http404
    return found


def _page(
    request: HttpRequest,
    queue: Queue,
    form: QueueForm,
    *,
    is_new: bool,
    draining: DrainPreview | None = None,
    seen: EditPreview | None = None,
) -> HttpResponse:
    context = {
        "queue": queue,
        "crumbs": crumbs(request, queue),
        "form": form,
        "is_new": is_new,
        "draining": draining,
        "told": seen,
        "ways": sentences(of=queue.cluster if is_operator(request.user) else None),
        "whole": name_of(Sharing(queue.cluster.sharing)),
    }
    status = 400 if form.errors else 200
    return render(request, "web/quotas/queue_form.html", context, status=status)
