"""Teams: which queue each has, and who is in it as what."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from portal.teams import people as doors
from portal.teams.access import is_admin
from portal.teams.forms import MemberForm, TeamForm
from portal.teams.giving import givable
from portal.teams.memberships import remove_member, set_member
from portal.teams.models import Membership, Team
from portal.teams.people import led_teams, visible_teams
from portal.teams.sight import person_for
from portal.web.frame.forms import form_page, saved
from portal.web.frame.pages import page_of
from portal.web.frame.requests import PersonRequest, act_view, acted, form_view


@form_view
def teams(request: PersonRequest) -> HttpResponse:
    """Every team that the person sees; whoever administers adds one."""
    form = TeamForm(request.POST or None)
    if request.method == "POST" and not is_admin(request.user):
        raise Http404

    def save() -> Team:
        return doors.save_team(by=request.user, **form.cleaned_data)

    made = saved(request, form, save, lambda one: f"Team {one.name} is there. Add its members.")
    if made:
        return redirect("web:team", made.name)
    seen = visible_teams(request.user).select_related("queue__cluster").order_by("name")
    seen = seen.prefetch_related("memberships__persona", "memberships__user")
    context = {"page": page_of(request, seen), "is_admin": is_admin(request.user)}
    return form_page(request, "web/people/teams.html", form, context)


@form_view
def team(request: PersonRequest, team: str) -> HttpResponse:
    """The members; a POST gives somebody a persona."""
    found = get_team(request, team)
    gives = led_teams(request.user).filter(pk=found.pk).exists()
    form = _member_form(request, found) if gives else None
    if request.method == "POST":
        if form is None:
            raise Http404
        if give(request, found, form):
            return redirect("web:team", found.name)
    members = found.memberships.select_related("user", "persona")
    context = {
        "team": found,
        "members": members.prefetch_related(person_for(request.user, "given_by")),
        "gives": gives,
        "is_admin": is_admin(request.user),
    }
    return form_page(request, "web/people/team.html", form, context)


def _member_form(request: PersonRequest, team: Team) -> MemberForm:
    zone = request.user.display_time_zone or team.queue.cluster.display_time_zone
    return MemberForm(request.POST or None, personas=givable(request.user, team), zone=zone)


def give(request: PersonRequest, team: Team, form: MemberForm) -> bool:
    """Whether the person has the persona now."""

    def save() -> Membership:
        typed = form.cleaned_data
        person, persona, until = typed["user"], typed["persona"], typed["until"]
        return set_member(by=request.user, team=team, person=person, persona=persona, until=until)

    made = saved(request, form, save, lambda one: f"{one.user} is {one.persona} in {team}.")
    return made is not None


@act_view
def remove(request: PersonRequest, team: str, username: str) -> HttpResponse:
    """Take somebody's persona away."""
    found = get_team(request, team)
    if not led_teams(request.user).filter(pk=found.pk).exists():
        raise Http404
    membership = get_object_or_404(found.memberships, user__username=username)
    gone = f"{username} is no longer in {found}."
    acted(request, lambda: remove_member(by=request.user, membership=membership), gone)
    return redirect("web:team", found.name)


@act_view
def delete(request: PersonRequest, team: str) -> HttpResponse:
    found = get_team(request, team)
    if not is_admin(request.user):
        raise Http404
    gone = f"Team {team} is gone."
    if acted(request, lambda: doors.delete_team(by=request.user, team=found), gone):
        return redirect("web:teams")
    return redirect("web:team", found.name)


def get_team(request: PersonRequest, name: str) -> Team:
    seen = visible_teams(request.user).select_related("queue__cluster")
    return get_object_or_404(seen, name=name)
