"""Who has something for a while gives nothing that goes on after that.

root ── research ── vision      ``stand-in`` leads research for a week, and submits there
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from portal.accounts.models import ApiToken, Persona, Scope, User
from portal.teams import directory, service_accounts
from portal.teams.memberships import set_member
from portal.teams.models import Membership, Team
from portal.teams.personas import PersonaValues, save_persona
from scheduling.services.errors import ServiceError
from tests.factories import make_user
from tests.security.test_handing_out import REQUEST, account_with, teams

__all__ = ["teams"]
pytestmark = pytest.mark.django_db
WEEK = timezone.now() + timedelta(days=7)
DAY, MONTH = WEEK - timedelta(days=6), WEEK + timedelta(days=23)


def have(user: User, team: Team, persona: str, until=None) -> User:
    found = Persona.objects.get(name=persona)
    Membership.objects.create(user=user, team=team, persona=found, until=until)
    return user


@pytest.fixture
def stand_in(teams) -> User:
    return have(make_user("stand-in"), teams["research"], "team lead", WEEK)


@pytest.fixture
def boss_for_a_week(teams) -> User:
    return have(make_user("boss"), teams["fra1"], "admin", WEEK)


LEAD = "team lead"


def give(by: User, team: Team, until, persona: str = LEAD) -> Membership:
    other, given = make_user(f"other{User.objects.count()}"), Persona.objects.get(name=persona)
    return set_member(by=by, team=team, person=other, persona=given, until=until)


@pytest.mark.parametrize("until", [None, MONTH], ids=["no end", "a later end"])
@pytest.mark.parametrize("who", ["stand_in", "boss_for_a_week"])
def test_membership_that_outlives_its_givers_own_is_refused_and_the_end_is_named(
    teams, request, who, until
):
    with pytest.raises(ServiceError) as refused:
        give(request.getfixturevalue(who), teams["vision"], until)
    assert (refused.value.code, refused.value.field) == ("past_your_own_end", "until")
    assert f"{WEEK:%Y-%m-%d %H:%M}" in refused.value.remedy
    assert not Membership.objects.filter(user__username__startswith="other").exists()


@pytest.mark.parametrize("until", [DAY, WEEK], ids=["earlier", "the same"])
def test_membership_that_ends_with_its_givers_own_is_given(teams, stand_in, until):
    assert give(stand_in, teams["vision"], until).until == until


def test_lead_for_good_gives_without_end(teams):
    lead = have(make_user("lead"), teams["research"], LEAD)
    assert give(lead, teams["vision"], None).until is None


def test_membership_for_good_beside_one_for_a_while_gives_what_it_has_for_good(teams, stand_in):
    """They lead vision for good, and research for a week."""
    have(stand_in, teams["vision"], LEAD)
    assert give(stand_in, teams["vision"], None).until is None


def test_class_of_service_that_one_has_for_a_while_is_given_for_as_long(teams):
    lead = have(make_user("lead"), teams["research"], LEAD)
    have(lead, teams["vision"], "researcher", WEEK)
    with pytest.raises(ServiceError, match="would go on"):
        give(lead, teams["vision"], None, "researcher")
    assert give(lead, teams["vision"], DAY, "researcher").until == DAY


def test_edit_makes_no_membership_longer_than_the_givers_own(teams, stand_in):
    held = give(stand_in, teams["vision"], DAY)
    given = {"team": teams["vision"], "person": held.user, "persona": held.persona}
    with pytest.raises(ServiceError, match="would go on"):
        set_member(by=stand_in, until=None, **given)
    held.refresh_from_db()
    assert held.until == DAY


def test_service_account_of_a_lead_for_a_while_ends_with_them(teams, stand_in):
    persona = Persona.objects.get(name=LEAD)
    given = {"name": "bot", "persona": persona, "purpose": "", "request": REQUEST}
    made = service_accounts.make(stand_in, teams["vision"], **given)
    assert made.user.memberships.get().until == WEEK


@pytest.mark.parametrize("expires_at", [None, MONTH], ids=["the default", "a month"])
def test_token_of_anothers_account_that_outlives_ones_right_to_it_is_refused(
    teams, stand_in, expires_at
):
    account = account_with(teams["vision"], Persona.objects.get(name=LEAD))
    asked = {"scopes": [Scope.ALL], "endless": False, "request": REQUEST}
    with pytest.raises(ServiceError) as refused:
        service_accounts.issue_token(stand_in, account, "t", expires_at=expires_at, **asked)
    assert refused.value.code == "past_your_own_end"
    assert not ApiToken.objects.exists()
    token, _ = service_accounts.issue_token(stand_in, account, "t", expires_at=DAY, **asked)
    assert token.expires_at == DAY


def test_admin_for_a_while_makes_no_rule_and_edits_no_persona(teams, boss_for_a_week):
    persona, before = Persona.objects.get(name="researcher"), Persona.objects.count()
    with pytest.raises(ServiceError, match="would go on"):
        directory.add_rule(
            boss_for_a_week, group="g", team=teams["vision"], persona=persona, order=1, request=None
        )
    for changed in (persona, None):
        with pytest.raises(ServiceError, match="would stay"):
            save_persona(by=boss_for_a_week, values=PersonaValues("x"), persona=changed)
    assert Persona.objects.count() == before


def test_lead_neither_deletes_nor_mutes_an_account_that_is_stronger_than_they(teams):
    """Its pipeline would stop at a word of who could not have made it."""
    lead = have(make_user("lead"), teams["research"], LEAD)
    account = account_with(teams["vision"], Persona.objects.get(name="admin"))
    token, _ = ApiToken.issue(account.user, "t")
    for act in (
        lambda: service_accounts.delete(lead, account, request=REQUEST),
        lambda: service_accounts.revoke_token(lead, account, token, request=REQUEST),
    ):
        with pytest.raises(ServiceError) as refused:
            act()
        assert refused.value.code == "not_yours"
    assert ApiToken.objects.filter(user__username=account.user.username).exists()


def test_lead_deletes_an_account_that_they_could_have_made(teams):
    lead = have(make_user("lead"), teams["research"], LEAD)
    account = account_with(teams["vision"], Persona.objects.get(name=LEAD))
    service_accounts.delete(lead, account, request=REQUEST)
    assert not User.objects.filter(username__startswith="svc-").exists()
