"""Nobody hands out more than they have, by whatever door that makes something that acts.

Each shipped persona tries each door with each persona in each team. What came of it is measured by what the
new one may do, queue by queue, not by the predicate that the doors ask. The table of docs/security.md is what
was found; ``WEIR_WRITE_DOCS=1`` writes it anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import transaction
from django.test import RequestFactory
from django.utils import timezone

from portal.accounts.capabilities import CLASS_OF_SERVICE, MEANINGS, Capability
from portal.accounts.doors import issue_token
from portal.accounts.models import ApiToken, Persona, Scope, User
from portal.approvals.loans import doors as loans
from portal.notices import webhooks
from portal.teams import directory, service_accounts, templates
from portal.teams.access import is_admin, places
from portal.teams.memberships import set_member
from portal.teams.models import Membership, ServiceAccount, Team
from portal.teams.people import add_person
from portal.teams.personas import PersonaValues, save_persona
from portal.teams.rights import rights_of
from portal.teams.service import grant_of
from portal.teams.shipped_personas import SHIPPED, ensure_personas, ensure_priority_classes
from scheduling.models import PriorityClass, Queue
from scheduling.services.errors import ServiceError
from tests.factories import make_cluster, make_user

pytestmark = pytest.mark.django_db
PERSONAS = [spec.name for spec in SHIPPED]
REQUEST = RequestFactory().post("/")
TOMORROW = timezone.now() + timedelta(days=1)
DOCS = Path(settings.BASE_DIR) / "docs/security.md"
BEGIN, END = "<!-- who can make what: begin -->\n", "<!-- who can make what: end -->\n"
TEAMS = ("fra1", "research", "vision", "products")
"""root ── research ── vision, and products beside it; who tries leads or works in research."""


@pytest.fixture
def teams(db) -> dict[str, Team]:
    cluster = make_cluster("fra1")
    above: dict[str, Queue] = {}
    for name, parent in zip(TEAMS, (None, "fra1", "research", "fra1"), strict=True):
        above[name] = Queue.objects.create(
            cluster=cluster, name=name, parent=above.get(parent or "")
        )
    ensure_priority_classes()
    ensure_personas()
    return {name: Team.objects.create(name=name, queue=queue) for name, queue in above.items()}


def giver_with(teams: dict[str, Team], persona: str) -> User:
    """Has it in research; a class of service beside it, as a lead who also works there has."""
    user = make_user("giver")
    found = Persona.objects.get(name=persona)
    Membership.objects.create(user=user, team=teams["research"], persona=found)
    return user


def account_with(team: Team, persona: Persona) -> ServiceAccount:
    """Somebody made it, who could."""
    user = User.objects.create(username=f"svc-{team.pk}-{persona.pk}")
    Membership.objects.create(user=user, team=team, persona=persona)
    return ServiceAccount.objects.create(user=user, team=team)


def member(giver: User, team: Team, persona: Persona) -> User:
    other = make_user("other")
    set_member(by=giver, team=team, person=other, persona=persona)
    return other


def new_person(giver: User, team: Team, persona: Persona) -> User:
    made, _ = add_person(by=giver, username="made.anew")
    set_member(by=giver, team=team, person=made, persona=persona)
    return made


def account(giver: User, team: Team, persona: Persona) -> User:
    made = service_accounts.make(
        giver, team, name="bot", persona=persona, purpose="", request=REQUEST
    )
    return made.user


def account_token(giver: User, team: Team, persona: Persona) -> User:
    asked = {"scopes": [Scope.ALL], "expires_at": TOMORROW, "endless": False, "request": REQUEST}
    token, _ = service_accounts.issue_token(giver, account_with(team, persona), "t", **asked)
    return token.user


def group_rule(giver: User, team: Team, persona: Persona) -> User:
    """Whoever is in the group has it at their next sign-in."""
    directory.add_rule(giver, group="g", team=team, persona=persona, order=1, request=None)
    member = make_user("of.the.group")
    directory.keep_in_step(member, ["g"], None)
    return member


def edited_persona(giver: User, team: Team, persona: Persona) -> User:
    """A persona that somebody has is made into that one."""
    worn = Persona.objects.create(name="worn", grants={})
    wearer = make_user("wearer")
    Membership.objects.create(user=wearer, team=team, persona=worn)
    save_persona(by=giver, values=PersonaValues("worn", persona.grants), persona=worn)
    return wearer


Door = Callable[[User, Team, Persona], User]
DOORS: dict[str, tuple[Door, str]] = {
    "a membership": (member, "the person who gets it, with its persona in its team"),
    "a person": (new_person, "the new person, who has what memberships they are given"),
    "a service account": (account, "the program, with one persona in its team"),
    "a token of a service account": (
        account_token,
        "the program, at most with what its account has",
    ),
    "a rule for a group of the directory": (group_rule, "everybody in the group, with its persona"),
    "a persona, made or edited": (edited_persona, "everybody who has it"),
}
"""What somebody makes: the door, and as whom what is made acts."""


def tried(door: Door, giver: User, team: Team, persona: Persona) -> Iterator[User]:
    """The one who acts by what was made; nothing where the door refused. It is undone."""
    point = transaction.savepoint()
    try:
        yield door(giver, team, persona)
    except ServiceError:
        pass
    finally:
        transaction.savepoint_rollback(point)


def reached(user: User, capability: Capability) -> set[str]:
    return {
        queue.path
        for queue in Queue.objects.filter(places(User.objects.get(pk=user.pk), capability))
    }


def holds(user: User) -> dict[Capability, set[str]]:
    """Capability -> the queues in which they have it; what is one's own is everybody's."""
    return {name: reached(user, name) for name in MEANINGS if name not in CLASS_OF_SERVICE}


def service_of(user: User) -> list[dict[str, object]]:
    every = list(PriorityClass.objects.all())
    cluster = Queue.objects.first().cluster
    held = Persona.objects.filter(memberships__user=user, grants__has_key="submit")
    return [grant_of(persona, cluster, every) for persona in held]


def is_served_within(asked: dict[str, object], mine: dict[str, object]) -> bool:
    limits = ("max_gpus", "max_gpus_at_once", "max_run_time_s")
    bounded = all(
        mine[name] is None or (asked[name] is not None and asked[name] <= mine[name])
        for name in limits
    )
    classes = all(
        mine[name] is None or (asked[name] is not None and asked[name] <= mine[name])
        for name in ("priority_classes", "gpu_classes")
    )
    return bounded and classes


@pytest.mark.parametrize("who", [name for name in PERSONAS if name != "admin"])
@pytest.mark.parametrize("door", DOORS)
def test_what_somebody_makes_may_do_no_more_than_they(teams, door, who):
    giver = giver_with(teams, who)
    mine, served = holds(giver), service_of(giver)
    for team in teams.values():
        for persona in Persona.objects.all():
            for actor in tried(DOORS[door][0], giver, team, persona):
                told = f"{who} made {door} with {persona} in {team}"
                for name, queues in holds(actor).items():
                    assert queues <= mine[name], (told, name, queues - mine[name])
                assert not rights_of(actor).everywhere(Capability.ADMINISTER), told
                for asked in service_of(actor):
                    assert any(is_served_within(asked, one) for one in served), told


@pytest.mark.parametrize("door", DOORS)
def test_admin_hands_out_anything_by_every_door(teams, door):
    giver = giver_with(teams, "admin")
    for persona in Persona.objects.all():
        made = list(tried(DOORS[door][0], giver, teams["vision"], persona))
        assert made, (door, persona)


def test_lead_hands_out_something_by_the_doors_that_are_theirs(teams):
    """The doors that hand out nothing to anybody would pass every other test here."""
    giver = giver_with(teams, "team lead")
    lead = Persona.objects.get(name="team lead")
    open_to = {
        name for name, (door, _) in DOORS.items() if list(tried(door, giver, teams["vision"], lead))
    }
    assert open_to == set(DOORS) - {
        "a rule for a group of the directory",
        "a persona, made or edited",
    }


def test_own_token_acts_as_oneself_and_dies_with_ones_rights(teams):
    giver = giver_with(teams, "team lead")
    asked = {"scopes": [Scope.ALL], "expires_at": TOMORROW, "endless": False}
    token, _ = issue_token(REQUEST, giver, "t", **asked)
    assert token.user == giver
    assert ApiToken.objects.exclude(user=giver).count() == 0


@pytest.mark.parametrize("who", PERSONAS)
def test_webhook_brings_its_maker_their_own_notices_alone(teams, who, settings):
    settings.WEIR_WEBHOOK_INSIDE = ["127.0.0.1"]
    giver = giver_with(teams, who)
    made, _ = webhooks.add(giver, name="w", address="https://127.0.0.1/x")
    assert made.user == giver


@pytest.mark.parametrize("who", PERSONAS)
def test_template_is_shared_with_ones_own_team_alone_and_submits_nothing(teams, who):
    giver = giver_with(teams, who)
    cluster = teams["research"].queue.cluster
    with pytest.raises(ServiceError):
        templates.save(giver, cluster, name="x", team="products", values={})
    kept = templates.save(giver, cluster, name="x", team="research", values={"queue": "products"})
    assert kept.owner == giver
    assert not {"token", "user", "persona"} & {field.name for field in kept._meta.fields}


@pytest.mark.parametrize("who", PERSONAS)
def test_loan_is_given_by_who_divides_the_lender_alone(teams, who):
    giver = giver_with(teams, who)
    for team in (teams["products"], teams["vision"]):
        mine = rights_of(giver).everywhere(Capability.EDIT_QUOTAS) or team.name in {
            path.rpartition("/")[2] for path in reached(giver, Capability.EDIT_QUOTAS)
        }
        try:
            loans._check_leads(giver, team.queue, "lender")
        except ServiceError:
            assert not mine
        else:
            assert mine


def cell(teams: dict[str, Team], door: Door, who: str) -> str:
    """Which personas that one hands out by the door in vision, below their own queue."""
    giver = giver_with(teams, who)
    try:
        if is_admin(giver):
            return "any"
        made = [
            persona.name
            for persona in Persona.objects.order_by("pk")
            if list(tried(door, giver, teams["vision"], persona))
        ]
        return ", ".join(made) or "–"
    finally:
        giver.delete()


def table(teams: dict[str, Team]) -> str:
    found = {
        name: [cell(teams, door, who) for who in PERSONAS] for name, (door, _) in DOORS.items()
    }
    makers = [i for i, _ in enumerate(PERSONAS) if any(row[i] != "–" for row in found.values())]
    head = ["who makes", "acts as", *(PERSONAS[i] for i in makers)]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for name, row in found.items():
        lines.append(f"| {' | '.join([name, DOORS[name][1], *(row[i] for i in makers)])} |")
    own = "themselves, for their own"
    for name, acts in (
        ("a token of one's own", "oneself, within its scopes and what one has at that moment"),
        ("a webhook", "nobody: it brings one's own notices"),
        ("a template", "nobody: whoever uses it submits as themselves"),
    ):
        lines.append(f"| {' | '.join([name, acts, *(own for _ in makers)])} |")
    others = ", ".join(name for i, name in enumerate(PERSONAS) if i not in makers)
    return "\n".join(
        [*lines, "", f"Every other persona ({others}) makes the last three alone.", ""]
    )


def test_table_of_the_documentation_is_what_the_doors_do(teams):
    said = DOCS.read_text()
    before, _, rest = said.partition(BEGIN)
    _, _, after = rest.partition(END)
    now = f"{before}{BEGIN}{table(teams)}{END}{after}"
    if os.environ.get("WEIR_WRITE_DOCS"):
        DOCS.write_text(now)
    assert said == now
