"""Submit: a form or a pasted manifest, the Job it makes, and what the engine says to it before the click."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from portal.boundary.reading import whole_or
from portal.teams import arrays, submission, templates
from portal.teams.models import SubmitTemplate
from portal.teams.reading import reader_of
from portal.web.frame.requests import PersonRequest, act_view, attached
from portal.web.frame.shell import get_cluster
from portal.web.workloads import manifest as texts
from portal.web.workloads.ahead import StartOutlook, outlook
from portal.web.workloads.class_choices import CHOICE
from portal.web.workloads.copies import Copy, clone_of, last_of
from portal.web.workloads.detail import remember
from portal.web.workloads.forms import Leaves, PasteForm, SubmitForm, first_values, leaves_of
from scheduling.models import Cluster, PriorityClass
from scheduling.services.errors import ServiceError

AnyForm = SubmitForm | PasteForm


@login_required
@require_http_methods(["GET", "POST"])
def submit(request: PersonRequest, cluster: str) -> HttpResponse:
    """The page. Posted with ``check`` it shows what would happen, and creates nothing."""
    found = get_cluster(request, cluster)
    form, note = form_of(request, found)
    checked = "check" in request.POST
    if request.method == "POST" and form.is_valid() and not checked:
        uid = _create(request, found, form)
        if uid:
            return redirect("web:workload", cluster=found.name, uid=uid)
    context = {**_context(request, found, form), "note": note}
    if request.method == "POST":
        context["outlook"] = outlook_of(request, found, form)
    status = 422 if form.errors and not checked else 200
    return render(request, "web/workloads/submit.html", context, status=status)


@act_view
def preview(request: PersonRequest, cluster: str) -> HttpResponse:
    """What the form would make, as it stands now; ``?download`` gives the manifest as a file."""
    found = get_cluster(request, cluster)
    form, _ = form_of(request, found)
    form.is_valid()
    if "download" in request.GET and form.manifest is not None:
        name = form.manifest["metadata"]["name"]
        return attached(texts.write(form.manifest), f"{name}.yaml", "application/yaml")
    shown = {**_context(request, found, form), "outlook": outlook_of(request, found, form)}
    shown["faults"], shown["missing"] = _so_far(form)
    return render(request, "web/workloads/_outcome.html", {**shown, "swap": True})


@act_view
def keep_template(request: PersonRequest, cluster: str) -> HttpResponse:
    """Keep what is typed as a template, whether it could be submitted or not."""
    found = get_cluster(request, cluster)
    form = SubmitForm(request.user, found, request.POST)
    if not form.leaves:
        raise Http404
    try:
        template = templates.save(
            request.user,
            found,
            name=request.POST.get("template_name", ""),
            team=request.POST.get("template_team", ""),
            values=_as_text(form),
        )
    except ServiceError as fault:
        form.add_error(None, str(fault))
        context = {**_context(request, found, form), "template_fault": str(fault)}
        return render(request, "web/workloads/submit.html", context, status=422)
    return redirect(f"{reverse('web:submit', args=[found.name])}?template={template.pk}")


@act_view
def drop_template(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    """Delete one's own template."""
    found = get_cluster(request, cluster)
    if not templates.delete(request.user, found, pk):
        raise Http404
    return redirect("web:submit", cluster=found.name)


def _as_text(form: SubmitForm) -> dict[str, str]:
    """Field -> text, but for the name, which is another each time, and a confirmation."""
    names = [name for name in form.fields if name not in ("name", "even_if_never")]
    return {name: str(form[name].value() or "")[:16384] for name in names}


def form_of(request: PersonRequest, cluster: Cluster) -> tuple[AnyForm, str]:
    """The form as it was posted, or as it begins; and what is to be said of how it begins."""
    pasted = request.GET.get("as") == "manifest"
    if request.method == "POST":
        if not leaves_of(request.user, cluster):
            raise Http404
        kind = PasteForm if pasted else SubmitForm
        return kind(request.user, cluster, request.POST), ""
    copied = clone_of(request.user, cluster, request.GET.get("clone", "")) or Copy()
    if pasted or copied.text:
        note = " ".join(filter(None, (copied.note, _to_change(request))))
        return PasteForm(request.user, cluster, initial={"text": copied.text}), note
    leaves = leaves_of(request.user, cluster)
    if not leaves:
        raise Http404
    values = _initial(request, cluster, leaves, copied)
    if not copied.values:
        values = _with_address(request, values)
    return SubmitForm(request.user, cluster, initial=values, leaves=leaves), copied.note


def _initial(
    request: PersonRequest, cluster: Cluster, leaves: Leaves, copied: Copy
) -> dict[str, Any]:
    """The values to clone, those of a template, else a small beginning with what was used last."""
    default = PriorityClass.objects.filter(is_default=True).first()
    values: dict[str, Any] = first_values(
        cluster, list(leaves.values()), default.name if default else ""
    )
    if queue := leaves.get(request.GET.get("queue", "")):
        values["queue"] = queue.name
    if copied.values:
        return _changed(request, values | copied.values)
    if template := _template(request, cluster):
        return values | dict(template.values)
    return values | last_of(request.user, cluster)


CHANGED = frozenset(
    {"queue", "class_1", "pods_min", "gpus_per_pod", "cpus_per_pod", "memory_gib_per_pod"}
)
"""Fields of a clone that the address may say otherwise."""


def _changed(request: PersonRequest, values: dict[str, Any]) -> dict[str, Any]:
    """``values`` of a clone but for what the address says. One class, or a smaller gang, stands alone."""
    said = {name: text for name, text in request.GET.items() if name in CHANGED}
    if "class_1" in said:
        values = {name: value for name, value in values.items() if not name.startswith("class_")}
    if "pods_min" in said:
        values = values | {"pods_max": ""}
    return values | said


def _to_change(request: PersonRequest) -> str:
    """What of a clone that the form cannot say is left to its author."""
    said = [
        f"{name.replace('_', ' ')} {text}" for name, text in request.GET.items() if name in CHANGED
    ]
    if "clone" not in request.GET or not said:
        return ""
    changes = ", ".join(said)
    return (
        f"The form cannot say all of it, so the change is yours to make in the manifest: {changes}."
    )


def _template(request: PersonRequest, cluster: Cluster) -> SubmitTemplate | None:
    pk = request.GET.get("template", "")
    if not (pk.isascii() and pk.isdigit() and len(pk) < 19):
        return None
    return templates.usable(request.user, cluster).filter(pk=int(pk)).first()


def _create(request: PersonRequest, cluster: Cluster, form: AnyForm) -> str:
    """The uid of what was created; empty when it was refused, which then stands in the form."""
    assert form.manifest is not None  # noqa: S101 - a valid form has one
    confirmed = form.cleaned_data["even_if_never"]
    try:
        made = _made(request, cluster, form, even_if_never=confirmed)
    except ServiceError as fault:
        form.add_fault(fault)
        return ""
    remember(request, made)
    return str(made["metadata"]["uid"])


def _made(
    request: PersonRequest, cluster: Cluster, form: AnyForm, *, even_if_never: bool
) -> dict[str, Any]:
    """What was created; of an array its first member."""
    manifest = form.manifest
    assert manifest is not None  # noqa: S101 - a valid form has one
    count, at_once = form.cleaned_data.get("array"), form.cleaned_data.get("at_once")
    if not count:
        return submission.submit(request.user, cluster, manifest, even_if_never=even_if_never)
    made = arrays.submit(
        request.user, cluster, manifest, count=count, at_once=at_once, even_if_never=even_if_never
    )
    messages.success(request, f"{len(made)} members of the array are submitted; this is the first.")
    return made[0]


SECRET = frozenset({"env", "secrets", "even_if_never", "template_name", "template_team"})
"""Fields that no address carries: what they hold is nobody else's, or decided anew each time."""
LONGEST_ADDRESS = 4000


def _address(request: PersonRequest, cluster: Cluster, form: AnyForm) -> str:
    """Where the form stands filled in as it is now, to be sent to others or kept; empty for what no address
    can hold."""
    if not form.is_bound or isinstance(form, PasteForm):
        return ""
    said = {name: str(form[name].value() or "") for name in form.fields if name not in SECRET}
    query = urlencode({name: text for name, text in said.items() if text})
    address = request.build_absolute_uri(f"{reverse('web:submit', args=[cluster.name])}?{query}")
    return address if len(address) <= LONGEST_ADDRESS else ""


def _with_address(request: PersonRequest, values: dict[str, Any]) -> dict[str, Any]:
    """``values`` but for what the address says of them; the classes that it names stand alone."""
    names = SubmitForm.base_fields.keys() - SECRET - {"queue"}
    said = {
        name: text for name, text in request.GET.items() if name in names or name.startswith(CHOICE)
    }
    if any(name.startswith(CHOICE) for name in said):
        values = {name: value for name, value in values.items() if not name.startswith(CHOICE)}
    return values | said


def _context(request: PersonRequest, cluster: Cluster, form: AnyForm) -> dict[str, Any]:
    text = texts.write(form.manifest) if form.manifest else ""
    used = _template(request, cluster)
    return {
        "cluster": cluster,
        "form": form,
        "pasted": isinstance(form, PasteForm),
        "form_url": reverse("web:submit", args=[cluster.name]),
        "tries": whole_or(request.POST.get("tries", "0"), 0),
        "faults": _faults(form) if form.is_bound else [],
        "lines": texts.lines(text),
        "yaml": text,
        "address": _address(request, cluster, form),
        "queue": form.chosen_queue if isinstance(form, SubmitForm) else None,
        "templates": templates.usable(request.user, cluster),
        "teams": templates.teams_of(request.user, cluster),
        "used": used,
        "owns_used": used is not None and used.owner_id == request.user.pk,
    }


def _faults(form: AnyForm) -> list[tuple[str, str]]:
    """(label, what is wrong with it); the label is empty where it is about the whole."""
    each = [(str(field.label), str(said)) for field in form for said in field.errors]
    return [*each, *(("", str(said)) for said in form.non_field_errors())]


def _so_far(form: AnyForm) -> tuple[list[tuple[str, str]], list[str]]:
    """While one types: faults of what is typed, and the labels of what is still to be. An empty field is no
    fault before somebody submits it."""
    faulty = [form[name] for name in form.fields if name in form.errors]
    empty = [str(field.label) for field in faulty if not field.value()]
    return [fault for fault in _faults(form) if fault[0] not in empty], empty


def outlook_of(request: PersonRequest, cluster: Cluster, form: AnyForm) -> StartOutlook | None:
    """What would happen to what is typed so far; None while there is nothing to judge."""
    draft = form.draft()
    try:
        draft_work = submission.asked_of(request.user, cluster, draft) if draft else None
    except ServiceError:
        return None
    if draft is None or draft_work is None or not draft_work.observed.gpus:
        return None
    classes = list(cluster.gpu_classes.all())
    if isinstance(form, PasteForm):
        classes = [c for c in classes if c.name in draft_work.observed.gpu_classes]
    unread = () if isinstance(form, PasteForm) else form.unread
    return outlook(draft_work, draft, classes, request.user, reader_of(request), unread)
