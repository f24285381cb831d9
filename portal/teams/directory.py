"""Groups of the organisation's directory become memberships, kept in step at each sign-in.

What a person gave stays: a rule neither changes nor takes a membership that it has not given.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from allauth.account.signals import user_logged_in
from django.db import transaction
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone
from rest_framework.request import Request

from portal.accounts.audit import record
from portal.accounts.models import Persona, User
from portal.accounts.provider import claims_of, groups_in
from portal.teams.access import is_admin
from portal.teams.giving import check_end, check_within
from portal.teams.models import (
    DirectoryGroup,
    DirectoryPerson,
    GroupRule,
    Membership,
    SeenGroups,
    Team,
)
from scheduling.services.errors import ServiceError

Asked = HttpRequest | Request | None


@dataclass(frozen=True)
class PersonaChange:
    """What changed for one person: memberships given (or given another persona) and taken."""

    given: tuple[Membership, ...] = ()
    taken: tuple[str, ...] = ()
    """Names of teams."""


@receiver(user_logged_in)
def note_groups(request: HttpRequest, user: User, sociallogin: Any = None, **kwargs: Any) -> None:
    """Only the provider's own word counts: a sign-in by password says nothing of groups. Whose groups the
    directory keeps by SCIM has those: a claim of a sign-in may be older."""
    if sociallogin is None or is_kept_by_directory(user):
        return
    groups = groups_in(claims_of(sociallogin.account))
    if groups is not None:
        keep_in_step(user, groups, request)


def is_kept_by_directory(user: User) -> bool:
    known = DirectoryPerson.objects.filter(user=user).exists()
    return known and DirectoryGroup.objects.exists()


@transaction.atomic
def keep_in_step(user: User, groups: Iterable[str], request: Asked) -> PersonaChange:
    """``user`` has just these groups: give what rules give for them, take what rules gave for others."""
    names = list(groups)
    SeenGroups.objects.update_or_create(user=user, defaults={"names": names, "at": timezone.now()})
    return _follow(user, names, request)


@transaction.atomic
def add_rule(
    by: User, *, group: str, team: Team, persona: Persona, order: int, request: Asked
) -> GroupRule:
    """A person who was in the group at their last sign-in has the membership at once.

    Raises ServiceError: ``forbidden`` where ``by`` may not rule, ``name_taken`` where the group has a rule
    for this team, ``not_yours`` where ``by`` may not give this persona, ``past_your_own_end``
    where they may for a while alone.
    """
    _check_rules(by)
    check_within(by, persona, team, "give")
    check_end(by, persona, team, None, field="persona")
    if GroupRule.objects.filter(group=group, team=team).exists():
        sentence = f"{group} has a rule for {team} already."
        raise ServiceError("name_taken", sentence, "Delete that one first.", field="group")
    rule = GroupRule.objects.create(group=group, team=team, persona=persona, order=order)
    record("group_rule.added", request, user=by, **_facts(rule))
    _follow_all(request)
    return rule


@transaction.atomic
def delete_rule(by: User, rule: GroupRule, *, request: Asked) -> None:
    """What it gave goes with it, unless another rule gives the same people something in that team.

    Raises ServiceError ``forbidden`` for whoever may not rule."""
    _check_rules(by)
    record("group_rule.deleted", request, user=by, **_facts(rule))
    holders = list(User.objects.filter(memberships__rule=rule))
    Membership.objects.filter(rule=rule).delete()
    rule.delete()
    for user in holders:
        _follow(user, seen_by(user), request)


def may_rule(user: User) -> bool:
    return is_admin(user)


def _check_rules(user: User) -> None:
    if not may_rule(user):
        raise ServiceError(
            "forbidden",
            "You make no rules for groups.",
            "Ask somebody who administers the installation.",
        )


def _follow_all(request: Asked) -> None:
    for seen in SeenGroups.objects.select_related("user"):
        _follow(seen.user, seen.names, request)


def seen_by(user: User) -> list[str]:
    found = SeenGroups.objects.filter(user=user).first()
    return list(found.names) if found else []


def _follow(user: User, groups: list[str], request: Asked) -> PersonaChange:
    wanted = _rules_by_team(groups)
    memberships = {
        m.team_id: m for m in Membership.objects.filter(user=user).select_related("team")
    }
    gone = [m for m in memberships.values() if m.rule_id is not None and m.team_id not in wanted]
    for membership in gone:
        record("membership.taken", request, user=user, team=membership.team.name, by="group")
        membership.delete()
    given = [
        _give(user, rule, memberships.get(team), request)
        for team, rule in wanted.items()
        if _differs(memberships.get(team), rule)
    ]
    return PersonaChange(tuple(given), tuple(membership.team.name for membership in gone))


def _rules_by_team(groups: list[str]) -> dict[int, GroupRule]:
    """Team -> the rule that gives there: the first of those that fit."""
    wanted: dict[int, GroupRule] = {}
    rules = GroupRule.objects.filter(group__in=groups).select_related("team", "persona")
    for rule in rules.order_by("order", "pk"):
        wanted.setdefault(rule.team_id, rule)
    return wanted


def _differs(current: Membership | None, rule: GroupRule) -> bool:
    if current is None:
        return True
    by_hand = current.rule_id is None
    return not by_hand and (current.rule_id, current.persona_id) != (rule.pk, rule.persona_id)


def _give(user: User, rule: GroupRule, current: Membership | None, request: Asked) -> Membership:
    membership = current or Membership(user=user, team=rule.team)
    membership.persona, membership.rule = rule.persona, rule
    membership.save()
    record("membership.given", request, user=user, by="group", **_facts(rule))
    return membership


def _facts(rule: GroupRule) -> dict[str, Any]:
    return {"team": rule.team.name, "persona": rule.persona.name, "group": rule.group}
