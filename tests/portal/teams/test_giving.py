"""Nobody hands out more than they have, and nobody is left who could undo it."""

import pytest

from portal.accounts.capabilities import Capability, Reach
from portal.accounts.models import Persona, User
from portal.teams.giving import excess, givable
from portal.teams.memberships import remove_member, set_member
from portal.teams.models import Membership, Team
from portal.teams.personas import PersonaValues, save_persona
from portal.teams.shipped_personas import ensure_personas, ensure_priority_classes
from scheduling.models import MILLI, PriorityClass, Queue
from scheduling.services import events
from scheduling.services.errors import ServiceError
from tests.factories import make_cluster, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def teams(db):
    """root ── research ── vision, and products beside it; a team each, and the shipped personas."""
    cluster = make_cluster("fra1")
    root = Queue.objects.create(cluster=cluster, name="fra1")
    research = Queue.objects.create(cluster=cluster, parent=root, name="research")
    vision = Queue.objects.create(cluster=cluster, parent=research, name="vision")
    products = Queue.objects.create(cluster=cluster, parent=root, name="products")
    ensure_priority_classes()
    ensure_personas()
    return {q.name: Team.objects.create(name=q.name, queue=q)
            for q in (root, research, vision, products)}  # fmt: skip


def join(team, name, persona):
    user = User.objects.filter(username=name).first() or make_user(name)
    Membership.objects.create(user=user, team=team, persona=Persona.objects.get(name=persona))
    return user


@pytest.fixture
def lead(teams):
    """Leads research, and submits to vision as a researcher."""
    join(teams["vision"], "lead", "researcher")
    return join(teams["research"], "lead", "team lead")


def names(personas):
    return {persona.name for persona in personas}


def test_lead_hands_out_their_own_personas_below(teams, lead):
    assert names(givable(lead, teams["vision"])) == {"researcher", "team lead"}


def test_persona_that_allows_more_says_what(teams, lead):
    more = Persona.objects.get(name="data scientist")
    over = excess(lead, more, teams["vision"])
    assert over.sentence == "It allows 32 GPUs a workload, against 16 GPUs a workload of its giver."


def test_longer_run_time_is_said_in_days_as_elsewhere(teams, lead):
    more = Persona.objects.get(name="researcher")
    more.max_run_time_s = 30 * 86400
    [said] = [over.sentence for over in [excess(lead, more, teams["vision"])] if over]
    assert said == "It allows 30 d of run time, against 1 d of run time of its giver."


def test_lead_who_submits_nowhere_hands_out_nothing_that_submits(teams):
    lead = join(teams["research"], "pure", "team lead")
    assert names(givable(lead, teams["vision"])) == {"team lead"}


def test_lead_gives_nothing_beside_their_queue(teams, lead):
    with pytest.raises(ServiceError) as refused:
        give(lead, teams["products"], make_user("new"), "researcher")
    assert refused.value.code == "forbidden"


def test_lead_gives_nothing_to_themselves(teams, lead):
    with pytest.raises(ServiceError) as refused:
        give(lead, teams["vision"], lead, "researcher")
    assert refused.value.field == "user"


def test_refused_try_is_kept_though_its_transaction_is_undone(teams, lead):
    with events.coming_from(events.Origin()) as origin:
        with pytest.raises(ServiceError):
            give(lead, teams["vision"], make_user("new"), "admin")
        assert [told["after"] for told in origin.refused] == [{"persona": "admin"}]
    assert not Membership.objects.filter(user__username="new").exists()


def test_lead_takes_nothing_that_they_could_not_give(teams, lead):
    join(teams["vision"], "scientist", "data scientist")
    membership = Membership.objects.get(user__username="scientist")
    with pytest.raises(ServiceError):
        remove_member(by=lead, membership=membership)
    with pytest.raises(ServiceError):
        give(lead, teams["vision"], membership.user, "researcher")


def test_admin_hands_out_everything_everywhere(teams):
    admin = join(teams["fra1"], "boss", "admin")
    assert names(givable(admin, teams["products"])) == set(
        Persona.objects.values_list("name", flat=True)
    )


def test_last_admin_keeps_the_persona(teams):
    admin = join(teams["fra1"], "boss", "admin")
    with pytest.raises(ServiceError) as refused:
        give(admin, teams["fra1"], admin, "finance")
    assert refused.value.code == "last_admin"


def test_persona_of_the_last_admin_keeps_the_capability(teams):
    admin = join(teams["fra1"], "boss", "admin")
    with pytest.raises(ServiceError) as refused:
        save_persona(
            by=admin, values=PersonaValues("admin"), persona=Persona.objects.get(name="admin")
        )
    assert refused.value.code == "last_admin"


@pytest.mark.parametrize(
    ("grants", "field"),
    [
        ({"fly": "all"}, "grants.fly"),
        ({"submit": "all"}, "grants.submit"),
        ({"operate": "all"}, "grants.see"),
        ({"edit_quotas": "own"}, "grants.edit_quotas"),
    ],
)
def test_grant_that_does_not_exist_is_refused_at_its_field(teams, grants, field):
    admin = join(teams["fra1"], "boss", "admin")
    with pytest.raises(ServiceError) as refused:
        save_persona(by=admin, values=PersonaValues("odd", grants))
    assert refused.value.field == field


def test_shipped_personas_reach_as_told(teams):
    researcher = Persona.objects.get(name="researcher")
    assert researcher.grants[Capability.SUBMIT] == Reach.TEAM
    assert researcher.max_gpus_per_workload == 16 * MILLI
    assert not researcher.priority_classes.filter(value__gt=50).exists()
    assert PriorityClass.objects.filter(is_default=True).count() == 1


def give(by, team, person, persona):
    return set_member(by=by, team=team, person=person, persona=Persona.objects.get(name=persona))
