"""Step 3: GPU classes with their rates and prices, and priority classes."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect

from portal.setup.forms import GpuClassForm, PriorityForm
from portal.web.frame.requests import PersonRequest
from portal.web.setup.forms import ClassForm, DisplayForm
from scheduling.models import Cluster, PriorityClass
from scheduling.services.clusters.add import set_display
from scheduling.services.clusters.classes import save_gpu_class, save_priority_class
from scheduling.services.errors import ServiceError


def classes(request: PersonRequest, cluster: Cluster) -> HttpResponse | dict[str, Any]:
    """Four forms of one page; the button says which."""
    act = request.POST.get("act", "")
    forms = [
        ClassForm(request.POST if act == "save" else None, gpu_class=found)
        for found in cluster.gpu_classes.all()
    ]
    new = GpuClassForm(request.POST if act == "add" else None)
    priority = PriorityForm(request.POST if act == "priority" else None)
    display = DisplayForm(
        request.POST if act == "display" else None,
        initial={name: getattr(cluster, name) for name in DisplayForm.base_fields},
    )
    # Each is asked, so that every fault is shown at once.
    sound = not [form for form in forms if not form.is_valid()]
    if act == "save" and sound and _save(request, cluster, forms):
        if "cluster" in request.GET:  # A person who came from the engine's page has no next step.
            return redirect(request.get_full_path())
        return redirect("web:set_up_step", "queues")
    if act == "add" and new.is_valid() and _add(request, cluster, new):
        return redirect("web:set_up_step", "classes")
    if act == "priority" and priority.is_valid() and _prioritise(request, priority):
        return redirect("web:set_up_step", "classes")
    if act == "display" and display.is_valid() and _display(request, cluster, display):
        return redirect(request.get_full_path())
    every = [*forms, new, priority, display]
    return {
        "display": display,
        "forms": forms,
        "new": new,
        "priority": priority,
        "priorities": PriorityClass.objects.all(),
        "faulty": any(form.errors for form in every),
    }


def _save(request: PersonRequest, cluster: Cluster, forms: list[ClassForm]) -> bool:
    """All of them or none."""
    with transaction.atomic():
        for form in forms:
            try:
                save_gpu_class(
                    cluster=cluster,
                    values=form.cleaned_data,
                    author=request.user,
                    gpu_class=form.gpu_class,
                )
            except ServiceError as refused:
                form.refuse(refused)
                transaction.set_rollback(True)
                return False
    messages.success(request, "The classes are kept.")
    return True


def _add(request: PersonRequest, cluster: Cluster, form: GpuClassForm) -> bool:
    made = form.done(
        lambda: save_gpu_class(cluster=cluster, values=form.cleaned_data, author=request.user)
    )
    if made:
        messages.success(request, f"GPU class {made} is there.")
    return made is not None


def _display(request: PersonRequest, cluster: Cluster, form: DisplayForm) -> bool:
    made = form.done(lambda: set_display(cluster=cluster, author=request.user, **form.cleaned_data))
    if made:
        messages.success(
            request, f"Prices are in {made.currency}, days begin in {made.display_time_zone}."
        )
    return made is not None


def _prioritise(request: PersonRequest, form: PriorityForm) -> bool:
    """A name that is there already changes that class."""
    values = form.cleaned_data
    known = PriorityClass.objects.filter(name=values["name"]).first()
    made = form.done(
        lambda: save_priority_class(values=values, author=request.user, priority_class=known)
    )
    if made:
        messages.success(request, f"Priority class {made} is kept.")
    return made is not None
