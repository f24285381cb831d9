"""People: who there is, what each may do and why, and whom a lead gives which persona."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone

from portal.accounts.capabilities import MEANINGS, Capability
from portal.accounts.models import User
from portal.accounts.proof import proving
from portal.teams import people as doors
from portal.teams.access import is_admin
from portal.teams.factors import has_one, must_have
from portal.teams.forms import PersonForm
from portal.teams.may import answer_about, may, may_not
from portal.teams.people import may_add_people, visible_people
from portal.teams.sight import memberships_for, person_for, visible_memberships
from portal.web.frame.forms import form_page
from portal.web.frame.pages import page_of
from portal.web.frame.requests import PersonRequest, act_view, acted, form_view, page_view
from portal.web.people.matrix import matrix


@form_view
@proving
def people(request: PersonRequest) -> HttpResponse:
    """Everybody whom the person sees; whoever gives personas may add somebody."""
    form, made = PersonForm(request.POST or None), None
    if request.method == "POST":
        if not may_add_people(request.user):
            raise Http404
        if form.is_valid():
            made = form.done(lambda: doors.add_person(by=request.user, **form.cleaned_data))
            form = PersonForm() if made else form
    seen = visible_people(request.user).prefetch_related(memberships_for(request.user))
    context = {
        "page": page_of(request, seen.order_by("-is_active", "username")),
        "made": made,
        "may_add": may_add_people(request.user),
    }
    return form_page(request, "web/people/people.html", form, context)


@page_view
def person(request: PersonRequest, username: str) -> HttpResponse:
    found = get_person(request, username)
    now = timezone.now()
    seen = visible_memberships(request.user).filter(user=found)
    rows = seen.select_related("team__queue", "persona")
    memberships = list(rows.prefetch_related(person_for(request.user, "given_by")))
    private = found == request.user or is_admin(request.user)
    context = {
        "person": found,
        "memberships": memberships,
        "in_force": set(seen.in_force(now)),
        "now": now,
        "may": _grouped(may(request.user, found)),
        "may_not": list(may_not(request.user, found)),
        "capabilities": MEANINGS.items(),
        "question": _question(request, found),
        "matrix": matrix(request.user, found),
        "is_admin": is_admin(request.user),
        "tokens": list(found.api_tokens.all()) if private else None,
        "has_factor": has_one(found) if private else None,
        "factor_asked": must_have(found),
        "sessions": list(found.sessions.filter(expire_date__gt=now)) if private else None,
        "leads": [m for m in memberships if Capability.MEMBERS in m.persona.grants],
        "submits": [m for m in memberships if Capability.SUBMIT in m.persona.grants],
    }
    return render(request, "web/people/person.html", context)


@act_view
def set_active(request: PersonRequest, username: str) -> HttpResponse:
    """Deactivate, or activate again. For who administers."""
    found = get_person(request, username)
    if not is_admin(request.user):
        raise Http404
    acted(
        request, lambda: doors.set_active(by=request.user, person=found, active=not found.is_active)
    )
    return redirect("web:person", found.username)


def get_person(request: PersonRequest, username: str) -> User:
    return get_object_or_404(visible_people(request.user), username=username)


def _grouped(lines: Any) -> list[tuple[str, list[Any]]]:
    groups: dict[str, list[Any]] = {}
    for line in lines:
        groups.setdefault(line.group, []).append(line)
    return list(groups.items())


def _question(request: PersonRequest, about: User) -> dict[str, Any]:
    """What was asked of the person, and the answer."""
    verb, thing = request.GET.get("verb", ""), request.GET.get("on", "").strip()
    question: dict[str, Any] = {"verb": verb, "on": thing, "answer": None, "fault": ""}
    if not thing:
        return question
    if verb not in MEANINGS:
        return {**question, "fault": "Choose one of the listed verbs."}
    answer = answer_about(request.user, about, Capability(verb), thing)
    if answer is None:
        return {**question, "fault": f"You see no queue and no workload called {thing}."}
    return {**question, "answer": answer}
