"""Personas side by side, and the form of one. Admins edit them."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from portal.accounts.models import Persona
from portal.teams.access import is_admin
from portal.teams.persona_form import PersonaForm, initial_of
from portal.teams.persona_preview import Preview, preview
from portal.teams.personas import delete_persona, save_persona
from portal.web.frame.forms import form_page
from portal.web.frame.requests import PersonRequest, act_view, acted, form_view, page_view
from portal.web.people.matrix import matrix
from scheduling.models import State, Workload
from scheduling.services.errors import ServiceError


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
    begins = initial_of(persona) if persona else {}
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
