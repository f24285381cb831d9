"""Rules for groups of the directory, and the programs that act for a team, with their tokens."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone

from portal.accounts.forms import TokenForm, token_terms
from portal.accounts.identity import provider_name
from portal.accounts.models import Persona, User
from portal.accounts.proof import proving
from portal.accounts.views import person
from portal.teams import directory
from portal.teams import service_accounts as service
from portal.teams.access import is_admin
from portal.teams.forms import GroupRuleForm, ServiceAccountForm
from portal.teams.giving import givable, led_teams
from portal.teams.models import GroupRule, SeenGroups, ServiceAccount, Team
from portal.teams.sight import person_for
from portal.web.frame.forms import form_page, saved, sent_fields
from portal.web.frame.requests import act_view, form_view
from scheduling.services.errors import ServiceError


def _ruler(request: HttpRequest) -> User:
    user = person(request)
    if not directory.may_rule(user):
        raise Http404
    return user


@form_view
def group_rules(request: HttpRequest) -> HttpResponse:
    """The rules, and a form for one more."""
    user = _ruler(request)
    form = GroupRuleForm(sent_fields(request))

    def save() -> GroupRule:
        return directory.add_rule(user, request=request, **form.cleaned_data)

    if saved(request, form, save, _in_words):
        return redirect("web:group_rules")
    rules = GroupRule.objects.select_related("team__queue__cluster", "persona")
    context = {
        "rules": rules.prefetch_related("memberships"),
        "teams": Team.objects.all(),
        "personas": Persona.objects.all(),
        "provider": provider_name(),
        "seen": SeenGroups.objects.count(),
    }
    return form_page(request, "web/access/groups.html", form, context)


def _in_words(rule: GroupRule) -> str:
    return f"Members of {rule.group} are {rule.persona} in {rule.team}, from their next sign-in."


@act_view
def delete_rule(request: HttpRequest, pk: int) -> HttpResponse:
    user = _ruler(request)
    rule = get_object_or_404(GroupRule, pk=pk)
    said = f"The rule for {rule.group} is deleted, and the memberships that it gave are gone."
    directory.delete_rule(user, rule, request=request)
    messages.success(request, said)
    return redirect("web:group_rules")


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
    form = ServiceAccountForm(sent_fields(request), personas=givable(user, found))

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
    try:
        token, plain = service.issue_token(
            person(request), found, **token_terms(form.cleaned_data), request=request
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
        "user__api_tokens", "user__memberships__persona", person_for(person(request), "made_by")
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
