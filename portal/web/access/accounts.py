"""The programs that act for a team, and their tokens."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone

from portal.accounts.forms import TokenForm
from portal.accounts.proof import proving
from portal.accounts.views import person
from portal.teams import service_accounts as service
from portal.teams.access import is_admin
from portal.teams.giving import givable, led_teams
from portal.teams.models import ServiceAccount, Team
from portal.teams.sight import person_for
from portal.web.access.forms import ServiceAccountForm
from portal.web.frame.forms import saved, typed
from portal.web.frame.requests import act_view, form_view
from scheduling.services.errors import ServiceError


def _team(request: HttpRequest, name: str) -> Team:
    """The team if the person looks after its service accounts; absent otherwise."""
    teams = led_teams(person(request)).select_related("queue__cluster")
    return get_object_or_404(teams, name=name)


def _account(request: HttpRequest, team: str, account: str) -> ServiceAccount:
    found = ServiceAccount.objects.filter(team=_team(request, team)).select_related("user", "team")
    return get_object_or_404(found, user__username=account)


@form_view
@proving
def service_accounts(request: HttpRequest, team: str) -> HttpResponse:
    """The accounts of a team with their tokens, and a form for one more."""
    user, found = person(request), _team(request, team)
    form = ServiceAccountForm(typed(request), personas=givable(user, found))

    def save() -> ServiceAccount:
        return service.make(user, found, request=request, **form.cleaned_data)

    if saved(request, form, save, lambda made: f"{made} is made. Give it a token below."):
        return redirect("web:service_accounts", team=found.name)
    return _page(request, found, 400 if form.errors else 200, form=form)


@act_view
def delete_account(request: HttpRequest, team: str, account: str) -> HttpResponse:
    found = _account(request, team, account)
    said = f"{found} is deleted. What uses its tokens is refused from now."
    service.delete(person(request), found, request=request)
    messages.success(request, said)
    return redirect("web:service_accounts", team=team)


@act_view
@proving
def issue_token(request: HttpRequest, team: str, account: str) -> HttpResponse:
    """Make a token and show it, this once."""
    found = _account(request, team, account)
    form = TokenForm(request.POST, directory=is_admin(person(request)))
    if not form.is_valid():
        return _page(request, found.team, 400, token_form=form, asked_for=found)
    asked, days = form.cleaned_data, form.cleaned_data["days"]
    try:
        token, plain = service.issue_token(
            person(request),
            found,
            asked["name"],
            scopes=asked["scopes"],
            expires_at=timezone.now() + timedelta(days=days) if days else None,
            endless=days is None,
            request=request,
        )
    except ServiceError as refusal:
        form.add_error(None, str(refusal))
        return _page(request, found.team, 400, token_form=form, asked_for=found)
    return _page(request, found.team, issued=token, plain=plain)


@act_view
def revoke_token(request: HttpRequest, team: str, account: str, pk: int) -> HttpResponse:
    found = _account(request, team, account)
    token = get_object_or_404(found.user.api_tokens, pk=pk)
    service.revoke_token(person(request), found, token, request=request)
    messages.success(request, f"Token {token.name} of {found} is revoked.")
    return redirect("web:service_accounts", team=team)


def _page(request: HttpRequest, team: Team, status: int = 200, **extra: Any) -> HttpResponse:
    accounts = team.service_accounts.select_related("user").prefetch_related(
        "user__api_tokens",
        "user__memberships__persona",
        person_for(person(request), "made_by"),
    )
    personas = givable(person(request), team)
    context = {
        "team": team,
        "accounts": accounts,
        "personas": personas,
        "form": ServiceAccountForm(personas=personas),
        "token_form": TokenForm(directory=is_admin(person(request))),
        "real_now": timezone.now(),
        **extra,
    }
    return render(request, "web/access/service_accounts.html", context, status=status)
