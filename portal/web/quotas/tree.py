"""Queues themselves: add one below one's own, change its name, place and policy, remove an empty one."""

from __future__ import annotations

import dataclasses
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from portal.accounts.views import person
from portal.setup.queue_form import MIB_PER_GIB, QueueForm
from portal.teams.access import dividable_queues, is_admin, is_operator, visible_queues
from portal.teams.reading import reader_of
from portal.web.frame.requests import act_view, acted, form_view
from portal.web.frame.shell import get_cluster
from portal.web.quotas.draining import CONFIRMED, DrainPreview, draining
from portal.web.quotas.place import crumbs, get_queue, may_divide, may_edit_queue
from portal.web.quotas.preview import EditPreview, tried
from portal.web.studies.drafts import DRAFT
from portal.web.studies.ways import sentences
from scheduling.models import Queue, Sharing, Stop
from scheduling.services.errors import ServiceError
from scheduling.services.queues.faults import figure
from scheduling.services.queues.sharing import name_of
from scheduling.services.queues.tree import change_queue, create_queue, delete_queue
from scheduling.services.studies.whatif.documents import changes_of_queue

DRAFTED = (
    "priority",
    "stop",
    "sharing",
    "max_running",
    "max_running_per_user",
    "max_gpus_per_user",
)
"""Fields that an address may fill in."""


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
