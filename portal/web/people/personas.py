"""Personas side by side, and the form of one. Whoever administers edits them."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.forms import BoundField
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from portal.accounts.capabilities import MEANINGS, Capability
from portal.accounts.models import Persona
from portal.boundary.forms import WeirForm
from portal.teams.access import is_admin
from portal.teams.persona_preview import Preview, preview
from portal.teams.personas import PersonaValues, delete_persona, save_persona
from portal.web.frame.forms import form_page
from portal.web.frame.requests import PersonRequest, act_view, acted, form_view, page_view
from portal.web.people.matrix import matrix
from scheduling.models import MILLI, GpuClass, PriorityClass, State
from scheduling.models.workloads import Workload
from scheduling.services.errors import ServiceError

HOUR_S = 3600
MOST_GPUS = 1_000_000
MOST_HOURS = 100_000
GRANT = "grants."
NUMBER = {"invalid": "Write a number, or leave it empty for no limit."}


def _bound(most: int, label: str, help_text: str) -> forms.DecimalField:
    """A number up to ``most`` that may be left out."""
    return forms.DecimalField(
        required=False,
        min_value=0,
        max_value=most,
        label=label,
        help_text=help_text,
        error_messages=NUMBER,
    )


class PersonaForm(WeirForm):
    name = forms.CharField(max_length=63, error_messages={"required": "A persona needs a name."})
    approves_gpus = _bound(MOST_GPUS, "Approves up to", "GPUs of one request; empty: any")
    max_gpus_per_workload = _bound(MOST_GPUS, "GPUs a workload", "Empty: no limit")
    max_gpus_at_once = _bound(
        MOST_GPUS,
        "GPUs at once",
        "What would have its user hold more waits; one workload asks for no more. Empty: no limit",
    )
    max_run_time_h = _bound(MOST_HOURS, "Run-time limit (h)", "Empty: none")
    preemptible_only = forms.BooleanField(required=False, label="Only preemptible work")
    interactive = forms.BooleanField(required=False, label="Interactive work too")
    priority_classes = forms.ModelMultipleChoiceField(
        PriorityClass.objects.order_by("-value"),
        required=False,
        to_field_name="name",
        widget=forms.CheckboxSelectMultiple,
        help_text="None chosen: every one",
    )
    gpu_classes = forms.ModelMultipleChoiceField(
        GpuClass.objects.select_related("cluster"),
        required=False,
        label="GPU classes",
        widget=forms.CheckboxSelectMultiple,
        help_text="None chosen: every one",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for capability, meaning in MEANINGS.items():
            choices = [("", "–"), *((reach.value, reach.value) for reach in meaning.reaches)]
            self.fields[f"{GRANT}{capability}"] = forms.ChoiceField(
                choices=choices, required=False, label=meaning.name
            )

    def reaches(self) -> list[tuple[str, list[BoundField]]]:
        """Its capabilities by group."""
        groups: dict[str, list[BoundField]] = {}
        for capability, meaning in MEANINGS.items():
            groups.setdefault(meaning.group, []).append(self[f"{GRANT}{capability}"])
        return list(groups.items())

    def values(self) -> PersonaValues:
        typed = self.cleaned_data
        hours = typed["max_run_time_h"]
        return PersonaValues(
            name=typed["name"],
            grants={name: typed[f"{GRANT}{name}"] for name in Capability},
            approves_gpus=_milli(typed["approves_gpus"]),
            priority_classes=list(typed["priority_classes"]),
            gpu_classes=list(typed["gpu_classes"]),
            max_gpus_per_workload=_milli(typed["max_gpus_per_workload"]),
            max_gpus_at_once=_milli(typed["max_gpus_at_once"]),
            max_run_time_s=None if hours is None else int(hours * HOUR_S),
            preemptible_only=typed["preemptible_only"],
            interactive=typed["interactive"],
        )


def initial_of(persona: Persona) -> dict[str, Any]:
    """What the form of ``persona`` begins with."""
    seconds = persona.max_run_time_s
    return {
        "name": persona.name,
        "approves_gpus": _gpus(persona.approves_gpus),
        "max_gpus_per_workload": _gpus(persona.max_gpus_per_workload),
        "max_gpus_at_once": _gpus(persona.max_gpus_at_once),
        "max_run_time_h": None if seconds is None else f"{seconds / HOUR_S:g}",
        "preemptible_only": persona.preemptible_only,
        "interactive": persona.interactive,
        "priority_classes": list(persona.priority_classes.all()),
        "gpu_classes": list(persona.gpu_classes.all()),
        **{f"{GRANT}{name}": reach for name, reach in persona.grants.items()},
    }


def _milli(gpus: Any) -> int | None:
    return None if gpus is None else int(gpus * MILLI)


def _gpus(milli: int | None) -> str | None:
    return None if milli is None else f"{milli / MILLI:g}"


@page_view
def personas(request: PersonRequest) -> HttpResponse:
    context = {"matrix": matrix(request.user, request.user), "is_admin": is_admin(request.user)}
    return render(request, "web/people/personas.html", context)


@form_view
def add(request: PersonRequest) -> HttpResponse:
    return _form(request, None)


@form_view
def edit(request: PersonRequest, persona: str) -> HttpResponse:
    return _form(request, _get(request, persona))


@act_view
def delete(request: PersonRequest, persona: str) -> HttpResponse:
    found = _get(request, persona)
    gone = f"Persona {persona} is gone."
    if acted(request, lambda: delete_persona(by=request.user, persona=found), gone):
        return redirect("web:personas")
    return redirect("web:persona", found.name)


def _form(request: PersonRequest, persona: Persona | None) -> HttpResponse:
    if not is_admin(request.user):
        raise Http404
    begins = initial_of(persona) if persona else {"interactive": True}
    form, shown = PersonaForm(request.POST or None, initial=begins), None
    if request.method == "POST" and form.is_valid():
        try:
            shown = _to_confirm(request, form, persona)
            if shown is None:
                return _saved(request, form, persona)
        except ServiceError as refused:
            form.refuse(refused)
    context = {"persona": persona, "touched": _touched(persona), "preview": shown}
    return form_page(request, "web/people/persona.html", form, context)


def _to_confirm(
    request: PersonRequest, form: PersonaForm, persona: Persona | None
) -> Preview | None:
    """What an edit would do, unless that is what was confirmed. A new persona touches nobody."""
    if persona is None:
        return None
    found = preview(by=request.user, persona=persona, values=form.values())
    return None if request.POST.get("confirm") == found.fingerprint else found


def _saved(request: PersonRequest, form: PersonaForm, persona: Persona | None) -> HttpResponse:
    saved = save_persona(by=request.user, values=form.values(), persona=persona)
    messages.success(request, f"Persona {saved.name} holds from the next request on.")
    return redirect("web:personas")


def _touched(persona: Persona | None) -> dict[str, int]:
    """Whose work an edit reaches."""
    if persona is None:
        return {}
    names = persona.memberships.values_list("user__username", flat=True)
    live = Workload.objects.filter(user__in=list(names)).exclude(state=State.FINISHED)
    return {"people": len(set(names)), "work": live.count()}


def _get(request: PersonRequest, name: str) -> Persona:
    if not is_admin(request.user):
        raise Http404
    return get_object_or_404(Persona, name=name)
