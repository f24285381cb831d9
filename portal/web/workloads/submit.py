"""Submit: a form or a pasted manifest, the Job it makes, and what the quota says to it before the click."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from portal.teams import submission
from portal.teams.access import visible_workloads
from portal.web.format import gpus, number
from portal.web.requests import PersonRequest
from portal.web.shell import get_cluster
from portal.web.workloads import manifest as texts
from portal.web.workloads.detail import remember
from portal.web.workloads.fits import Gang, fits, is_preemptible
from portal.web.workloads.forms import PasteForm, SubmitForm, first_values, values_of
from scheduling.models import Cluster, PriorityClass, Workload
from scheduling.services.errors import ServiceError

AnyForm = SubmitForm | PasteForm


@login_required
@require_http_methods(["GET", "POST"])
def submit(request: PersonRequest, cluster: str) -> HttpResponse:
    found = get_cluster(request, cluster)
    pasted = request.GET.get("as") == "manifest"
    form = _form(request, found, pasted)
    if request.method == "POST" and form.is_valid():
        uid = _create(request, found, form)
        if uid:
            return redirect("web:workload", cluster=found.name, uid=uid)
    status = 422 if form.errors else 200
    return render(request, "web/workloads/submit.html", _shown(found, form), status=status)


@login_required
@require_POST
def preview(request: PersonRequest, cluster: str) -> HttpResponse:
    """What the form would make, as it stands now; ``?download`` gives the manifest as a file."""
    found = get_cluster(request, cluster)
    form = _form(request, found, pasted=False)
    form.is_valid()
    if "download" in request.GET and form.manifest is not None:
        response = HttpResponse(texts.write(form.manifest), content_type="application/yaml")
        name = form.manifest["metadata"]["name"]
        response["Content-Disposition"] = f'attachment; filename="{name}.yaml"'
        return response
    return render(request, "web/workloads/_outcome.html", {**_shown(found, form), "swap": True})


def _form(request: PersonRequest, cluster: Cluster, pasted: bool) -> AnyForm:
    if request.method == "POST":
        kind = PasteForm if pasted else SubmitForm
        return kind(request.user, cluster, request.POST)
    if pasted:
        return PasteForm(request.user, cluster)
    form = SubmitForm(request.user, cluster)
    if not form.leaves:
        raise Http404
    form.initial = _initial(request, cluster, form)
    return form


def _initial(request: PersonRequest, cluster: Cluster, form: SubmitForm) -> dict[str, Any]:
    """The values of the workload to clone, else a small beginning."""
    default = PriorityClass.objects.filter(is_default=True).first()
    values = first_values(cluster, list(form.leaves.values()), default.name if default else "")
    if queue := form.leaves.get(request.GET.get("queue", "")):
        values["queue"] = queue.name
    copied = _to_clone(request, cluster)
    return values if copied is None else values | values_of(copied)


def _to_clone(request: PersonRequest, cluster: Cluster) -> Workload | None:
    seen = visible_workloads(request.user).filter(cluster=cluster)
    return seen.filter(uid=request.GET.get("clone", "")).first()


def _create(request: PersonRequest, cluster: Cluster, form: AnyForm) -> str:
    """The uid of what was created; empty when it was refused, which then stands in the form."""
    assert form.manifest is not None  # noqa: S101 - a valid form has one
    try:
        made = submission.submit(request.user, cluster, form.manifest)
    except ServiceError as fault:
        form.add_fault(fault)
        return ""
    remember(request, made)
    return str(made["metadata"]["uid"])


def _shown(cluster: Cluster, form: AnyForm) -> dict[str, Any]:
    context: dict[str, Any] = {
        "cluster": cluster,
        "form": form,
        "pasted": isinstance(form, PasteForm),
        "form_url": reverse("web:submit", args=[cluster.name]),
    }
    if isinstance(form, SubmitForm):
        context |= _outcome(cluster, form)
    return context


def _outcome(cluster: Cluster, form: SubmitForm) -> dict[str, Any]:
    """The right half: the manifest, and a row for each class."""
    text = texts.write(form.manifest) if form.manifest else ""
    queue, gang = form.chosen_queue, _gang(form)
    shown: dict[str, Any] = {"lines": texts.lines(text), "yaml": text, "queue": queue}
    if queue is None or gang is None:
        return shown
    chosen = [name for field in form.choices_of_class if (name := str(field.value() or ""))]
    limit = form.cleaned_data.get("run_time_limit") if form.is_bound else None
    rows, on = fits(cluster, queue, gang, chosen, limit)
    return {**shown, "fits": rows, "axis": on, "gang": gang, "size": _size(gang)}


def _gang(form: SubmitForm) -> Gang | None:
    """As far as it can be read from what is typed."""
    each, low, high = (_whole(form[n].value()) for n in ("gpus_per_pod", "pods_min", "pods_max"))
    if not each or not low:
        return None
    preemptible = is_preemptible(str(form["priority_class"].value() or ""))
    return Gang(each * 1000, low, max(low, high or low), preemptible)


def _whole(value: Any) -> int:
    try:
        return max(0, min(int(value), 10**6))
    except (TypeError, ValueError):
        return 0


def _size(gang: Gang) -> str:
    least, most = gpus(gang.least), gpus(gang.most)
    amount = least if least == most else f"{least} to {most}"
    pods = (
        number(gang.pods_min)
        if gang.pods_min == gang.pods_max
        else (f"{number(gang.pods_min)} to {number(gang.pods_max)}")
    )
    return (
        f"{amount} GPU{'' if most == '1' else 's'} in {pods} pod{'' if gang.pods_max == 1 else 's'}"
    )
