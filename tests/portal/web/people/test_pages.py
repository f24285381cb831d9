"""People, teams and personas on pages: who sees, who gives, and what comes back for what is wrong."""

import pytest

from portal.accounts.models import Persona, User
from portal.teams.models import Membership, Team
from tests.factories import example_cluster, make_member, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(db):
    return example_cluster()


@pytest.fixture
def as_user(client):
    def sign_in(name):
        client.force_login(User.objects.get(username=name))
        return client

    return sign_in


@pytest.mark.parametrize("path", [
    "/people/", "/people/researcher/", "/teams/", "/teams/pretraining/", "/personas/"
])  # fmt: skip
def test_member_reads_the_pages_of_their_team(cluster, as_user, path):
    assert as_user("researcher").get(path).status_code == 200


def test_person_of_another_team_is_absent(cluster, as_user):
    assert as_user("researcher").get("/people/p.rossi/").status_code == 404
    assert as_user("researcher").get("/teams/search/").status_code == 404
    assert b"p.rossi" not in as_user("researcher").get("/people/").content


def test_question_is_answered_with_team_and_persona(cluster, as_user):
    asked = as_user("admin").get("/people/lead/?verb=edit_quotas&on=vision").context["question"]
    assert asked["answer"].yes
    assert asked["answer"].sentence == (
        "Yes, as team lead in research: research/vision is below research, and the persona may edit the"
        " quotas of the subtree of the team's queue."
    )


def test_question_about_what_they_may_not_says_who_could_change_it(cluster, as_user):
    answer = as_user("admin").get("/people/lead/?verb=edit_quotas&on=search").context["question"]
    assert not answer["answer"].yes
    assert "what is below research as team lead, and products/search is not there." in (
        answer["answer"].sentence
    )


def test_what_somebody_may_do_with_their_own_work_alone_reads_as_a_sentence(cluster, as_user):
    may = as_user("admin").get("/people/researcher/").context["may"]
    said = {f"{line.what} {line.where}" for _, lines in may for line in lines}
    assert "Cancel, hold and release their own work alone" in said


def test_question_about_what_the_reader_does_not_see_is_not_answered(cluster, as_user):
    asked = as_user("researcher").get("/people/researcher/?verb=see&on=search").context["question"]
    assert asked["answer"] is None
    assert "You see no queue" in asked["fault"]


def test_lead_gives_a_persona_in_a_team_below(cluster, as_user):
    Membership.objects.create(
        user=User.objects.get(username="lead"),
        team=Team.objects.get(name="vision"),
        persona=Persona.objects.get(name="researcher"),
    )
    newcomer = make_user("newcomer")
    answer = as_user("lead").post("/teams/speech/", {"user": "newcomer", "persona": "researcher"})
    assert answer.status_code == 302
    membership = Membership.objects.get(user=newcomer)
    assert (membership.persona.name, membership.given_by.username) == ("researcher", "lead")


def test_what_was_typed_comes_back_with_the_fault_at_its_field(cluster, as_user):
    answer = as_user("lead").post("/teams/speech/", {"user": "nobody-known", "persona": "admin"})
    form = answer.context["form"]
    assert answer.status_code == 400
    assert set(form.errors) == {"user", "persona"}
    assert form["user"].value() == "nobody-known"


def test_member_who_gives_nothing_finds_no_door(cluster, as_user):
    client = as_user("researcher")
    assert client.post("/teams/pretraining/", {"user": "lead"}).status_code == 404
    assert client.post("/people/", {"username": "new"}).status_code == 404
    assert client.get("/personas/new/").status_code == 404


def typed(client, **edits):
    """The form of the researcher as a browser sends it back, with ``edits``."""
    form = client.get("/personas/researcher/").context["form"]
    begun = {field.name: field.value() for field in form}
    return {name: value for name, value in begun.items() if value not in (None, False)} | edits


def test_edit_of_a_persona_is_shown_before_it_is_saved(cluster, as_user):
    client = as_user("admin")
    answer = client.post("/personas/researcher/", typed(client, max_gpus_per_workload="4"))
    assert answer.status_code == 200, answer.context["form"].errors
    assert "nothing is saved yet" in answer.content.decode()
    assert Persona.objects.get(name="researcher").max_gpus_per_workload != 4000
    assert [line.name for line in answer.context["preview"].loses] == ["GPUs a workload"]


def test_admin_confirms_the_edit_of_a_persona_and_its_members_have_it(cluster, as_user):
    client = as_user("admin")
    edit = typed(client, max_gpus_per_workload="4")
    shown = client.post("/personas/researcher/", edit).context["preview"]
    answer = client.post("/personas/researcher/", edit | {"confirm": shown.fingerprint})
    assert answer.status_code == 302, answer.context["form"].errors
    assert Persona.objects.get(name="researcher").max_gpus_per_workload == 4000


def test_confirmation_of_another_edit_is_previewed_again(cluster, as_user):
    client = as_user("admin")
    shown = client.post("/personas/researcher/", typed(client, max_gpus_per_workload="4"))
    other = typed(client, max_gpus_per_workload="1")
    confirmed = other | {"confirm": shown.context["preview"].fingerprint}
    assert client.post("/personas/researcher/", confirmed).status_code == 200
    assert Persona.objects.get(name="researcher").max_gpus_per_workload != 1000


def test_persona_that_somebody_has_is_not_deleted(cluster, as_user):
    as_user("admin").post("/personas/researcher/delete/")
    assert Persona.objects.filter(name="researcher").exists()


def test_added_person_signs_in_with_the_password_that_is_shown_once(cluster, as_user):
    answer = as_user("admin").post("/people/", {"username": "new.one"})
    _, password = answer.context["made"]
    assert User.objects.get(username="new.one").check_password(password)
    assert password.encode() not in as_user("admin").get("/people/").content


def test_last_admin_cannot_be_deactivated(cluster, as_user):
    as_user("admin").post("/people/admin/active/")
    assert User.objects.get(username="admin").is_active


def test_deactivated_person_is_signed_out(cluster, as_user, client):
    make_member(cluster.queues.get(name="search"), name="leaver")
    as_user("admin").post("/people/leaver/active/")
    assert not User.objects.get(username="leaver").is_active


def test_no_persona_is_chosen_beforehand(cluster, as_user):
    page = as_user("admin").get("/teams/pretraining/").content.decode()
    assert '<option value="" selected>Choose a persona</option>' in page
    answer = as_user("admin").post("/teams/pretraining/", {"user": "lead", "persona": ""})
    assert "Choose a persona." in answer.content.decode()


def test_admin_reads_why_no_team_can_be_added_where_every_queue_has_one(cluster, as_user):
    for queue in cluster.queues.filter(team=None):
        Team.objects.create(name=queue.name or "root", queue=queue)
    text = as_user("admin").get("/teams/").content.decode()
    assert "Every queue has a team." in text
