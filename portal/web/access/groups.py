"""Which groups of the directory give which persona in which team."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from portal.accounts.entry import provider_name
from portal.accounts.models import Persona, User
from portal.accounts.views import person
from portal.teams import directory
from portal.teams.models import GroupRule, SeenGroups, Team
from portal.web.access.forms import GroupRuleForm
from portal.web.frame.forms import form_page, saved, typed
from portal.web.frame.requests import act_view, form_view


def _ruler(request: HttpRequest) -> User:
    user = person(request)
    if not directory.may_rule(user):
        raise Http404
    return user


@form_view
def group_rules(request: HttpRequest) -> HttpResponse:
    """The rules, and a form for one more."""
    user = _ruler(request)
    form = GroupRuleForm(typed(request))

    def save() -> GroupRule:
        return directory.add_rule(user, request=request, **form.cleaned_data)

    if saved(request, form, save, _said):
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


def _said(rule: GroupRule) -> str:
    return f"Who is in {rule.group} is {rule.persona} in {rule.team}, from their next sign-in."


@act_view
def delete_rule(request: HttpRequest, pk: int) -> HttpResponse:
    user = _ruler(request)
    rule = get_object_or_404(GroupRule, pk=pk)
    said = f"The rule for {rule.group} is deleted, and the memberships that it gave are gone."
    directory.delete_rule(user, rule, request=request)
    messages.success(request, said)
    return redirect("web:group_rules")
