"""What a reader is told of the memberships of people whom they know from a team of theirs."""

import pytest

from portal.accounts.capabilities import Capability
from portal.accounts.models import User
from portal.teams.may import ask, may, may_not
from portal.teams.models import Membership, Team
from portal.teams.sight import grants_before, visible_memberships
from tests.factories import example_cluster, make_member, make_persona

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(db):
    return example_cluster()


@pytest.fixture
def colleague(cluster):
    """Of pretraining, and of search with a persona that reaches everywhere."""
    made = make_member(cluster.queues.get(name="pretraining"), name="colleague", may_submit=True)
    beside = make_persona("beside", may_operate=True)
    Membership.objects.create(user=made, team=Team.objects.get(name="search"), persona=beside)
    return made


def reader(name):
    return User.objects.get(username=name)


def test_membership_of_a_team_out_of_sight_is_not_told(colleague):
    seen = visible_memberships(reader("researcher")).filter(user=colleague)
    assert [membership.team.name for membership in seen] == ["pretraining"]


def test_own_membership_is_told_wherever_it_is(colleague):
    assert visible_memberships(colleague).filter(user=colleague).count() == 2


@pytest.mark.parametrize(("name", "teams"), [
    ("researcher", {"pretraining"}), ("admin", {"pretraining", "search"}),
])  # fmt: skip
def test_grants_follow_the_teams_that_the_reader_sees(colleague, name, teams):
    assert {grant.team for grant in grants_before(reader(name), colleague)} == teams


def test_what_a_hidden_membership_gives_is_in_no_list(colleague):
    told = [*may(reader("researcher"), colleague), *may_not(reader("researcher"), colleague)]
    assert not [line for line in told if "beside" in f"{line.source} {line.where}"]


def test_what_a_hidden_membership_allows_is_answered_without_its_names(cluster, colleague):
    queue = cluster.queues.get(name="pretraining")
    answer = ask(reader("researcher"), colleague, Capability.OPERATE, queue)
    assert answer.yes
    assert answer.sentence == "Yes, by a membership of a team that you do not see."


def test_nearest_of_the_memberships_that_are_told_is_named(cluster, colleague):
    queue = cluster.queues.get(name="pretraining")
    answer = ask(reader("researcher"), colleague, Capability.SEE, queue)
    assert answer.team == "pretraining"


def test_giver_out_of_sight_is_not_named(cluster, colleague, client):
    colleague.memberships.update(given_by=reader("p.rossi"))
    client.force_login(reader("researcher"))
    for page in ("/people/colleague/", "/teams/pretraining/"):
        text = client.get(page).content
        assert b"p.rossi" not in text
        assert b"somebody whom you do not see" in text
