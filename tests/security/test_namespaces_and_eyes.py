"""Nobody gets a namespace, a token or a decision by a side door.

fra1 ── research ── language, vision …      lead divides research; search belongs to another team
"""

import pytest
from django.test import Client, RequestFactory
from django.urls import reverse
from rest_framework.exceptions import ValidationError
from rest_framework.test import APIClient

from portal.accounts.models import Persona, Scope, User
from portal.approvals.models import QuotaRequest
from portal.approvals.states import Kind, State
from portal.approvals.who import Decider, acted
from portal.selectors.fields import GpusField
from portal.teams import namespaces, people, service_accounts
from portal.teams.models import Membership, ServiceAccount, Team
from scheduling.models import Queue
from scheduling.services.errors import ServiceError
from scheduling.services.queues.tree import change_queue, create_queue
from tests.factories import example_cluster, make_workload


@pytest.fixture
def taken(monkeypatch):
    """Namespaces that stand on the cluster already."""
    names = {"argocd", "weir-audio"}
    monkeypatch.setattr(namespaces, "has_namespace", lambda cluster, name: name in names)


@pytest.fixture
def cluster(db, taken):
    return example_cluster()


@pytest.fixture
def lead(cluster):
    return User.objects.get(username="lead")


def queue(name):
    return Queue.objects.get(name=name)


@pytest.mark.parametrize("namespace", ["argocd", "search", "monitoring", "weir-other"])
def test_lead_names_a_foreign_namespace_by_the_api_is_refused(cluster, lead, namespace):
    client = APIClient()
    client.force_login(lead)
    body = {"name": "x", "parent": "research", "namespace": namespace}
    answer = client.post(f"/api/v1/clusters/{cluster.name}/queues", body, format="json")
    assert answer.status_code == 400
    assert list(answer.json()["fields"]) == ["namespace"]
    assert not Queue.objects.filter(name="x").exists()


def test_lead_gives_a_new_queue_the_namespace_made_for_it(cluster, lead):
    made = create_queue(parent=queue("research"), name="x", author=lead, namespace="weir-x")
    assert made.namespace == "weir-x"


def test_namespace_made_for_a_queue_that_stands_on_the_cluster_is_refused(cluster, lead):
    with pytest.raises(ServiceError, match="is taken"):
        create_queue(parent=queue("research"), name="audio", author=lead, namespace="weir-audio")


def test_lead_moves_a_queue_into_a_foreign_namespace_is_refused(cluster, lead):
    with pytest.raises(ServiceError) as refused:
        change_queue(queue=queue("vision"), author=lead, namespace="argocd")
    assert refused.value.field == "namespace"
    assert queue("vision").namespace == "vision"


def test_admin_names_any_namespace(cluster):
    admin = User.objects.get(username="admin")
    made = create_queue(parent=queue("research"), name="x", author=admin, namespace="argocd")
    assert made.namespace == "argocd"


@pytest.fixture
def platform(monkeypatch):
    """``argocd`` runs five pods, some as an account that is strong."""
    told = {"argocd": "5 pods, which run as argocd-controller, default"}
    monkeypatch.setattr(namespaces, "what_stands", lambda cluster, name: told.get(name))


def test_admin_is_shown_what_taking_a_namespace_does_before_it_is_taken(cluster, platform):
    admin = User.objects.get(username="admin")
    with pytest.raises(ServiceError) as refused:
        create_queue(parent=queue("research"), name="x", author=admin, namespace="argocd")

    assert (refused.value.code, refused.value.field) == ("namespace_stands", "namespace")
    for told in ("argocd-controller", "weir-member", "Pod Security baseline", "ResourceQuota"):
        assert told in refused.value.sentence
    assert not Queue.objects.filter(name="x").exists()
    given = {"namespace": "argocd", "taking": "argocd"}
    made = create_queue(parent=queue("research"), name="x", author=admin, **given)
    assert made.namespace == "argocd"


def test_having_looked_at_another_namespace_counts_for_nothing(cluster, platform):
    admin = User.objects.get(username="admin")
    given = {"namespace": "argocd", "taking": "monitoring"}
    with pytest.raises(ServiceError):
        create_queue(parent=queue("research"), name="x", author=admin, **given)


def test_page_asks_an_admin_to_say_that_they_looked(cluster, platform):
    client = Client()
    client.force_login(User.objects.get(username="admin"))
    address = reverse("web:queue_add", args=[cluster.name, "research"])
    typed = {"name": "x", "parent": "research", "priority": "0", "stop": "none", "namespace": "argocd",
             "pod_security": ""}  # fmt: skip

    asked = client.post(address, typed)

    assert 'name="taking" value="argocd"' in asked.content.decode()
    assert not Queue.objects.filter(name="x").exists()
    assert client.post(address, {**typed, "taking": "argocd"}).status_code == 302
    assert queue("x").namespace == "argocd"


def test_lead_who_says_that_they_looked_gets_no_namespace_by_it(cluster, lead, platform):
    given = {"namespace": "argocd", "taking": "argocd"}
    with pytest.raises(ServiceError):
        create_queue(parent=queue("research"), name="x", author=lead, **given)


def persona(name):
    return Persona.objects.get(name=name)


SENT = RequestFactory().post("/")


def program(team: Team, name: str) -> ServiceAccount:
    admin, given = User.objects.get(username="admin"), persona(name)
    return service_accounts.make(admin, team, name="x", persona=given, purpose="", request=SENT)


def test_lead_issues_a_token_of_an_account_that_is_stronger_is_refused(cluster, lead):
    account = program(Team.objects.get(queue__name="research"), "admin")
    with pytest.raises(ServiceError) as refused:
        service_accounts.issue_token(
            lead, account, "t", scopes=[Scope.ALL], expires_at=None, endless=True, request=SENT
        )
    assert refused.value.code == "not_yours"
    assert not account.user.api_tokens.exists()


def asked_by(author: User) -> QuotaRequest:
    at = queue("research")
    return QuotaRequest(
        cluster=at.cluster,
        queue=at,
        author=author,
        kind=Kind.QUEUE,
        name="evals",
        state=State.SUBMITTED,
    )


def test_account_that_the_asker_made_decides_as_the_asker(cluster, lead):
    second, _ = people.add_person(by=lead, username="second")
    request = asked_by(lead)
    assert "made your account" in acted(second, request)
    assert not acted(User.objects.get(username="admin"), request)


def test_account_that_was_made_by_an_account_that_the_asker_made_decides_as_the_asker(
    cluster, lead
):
    second, _ = people.add_person(by=lead, username="second")
    given = {"team": Team.objects.get(queue__name="research"), "persona": persona("team lead")}
    Membership.objects.create(user=second, **given)
    third, _ = people.add_person(by=second, username="third")
    assert acted(third, asked_by(lead))
    assert acted(lead, asked_by(third)) == "You made the account of third."
    fourth, _ = people.add_person(by=lead, username="fourth")
    assert acted(fourth, asked_by(third)) == "One person made both accounts."


def test_people_whom_an_admin_added_are_as_many_pairs_of_eyes(cluster):
    admin = User.objects.get(username="admin")
    one, two = (people.add_person(by=admin, username=name)[0] for name in ("one", "two"))
    assert not acted(one, asked_by(two))
    assert not acted(admin, asked_by(one))


def test_who_may_issue_tokens_of_the_program_that_asks_does_not_decide(cluster, lead):
    account = program(Team.objects.get(queue__name="research"), "researcher")
    assert acted(lead, asked_by(account.user)) == f"You may issue tokens of {account}."
    assert not acted(User.objects.get(username="s.marchetti"), asked_by(account.user))
    account.user.memberships.all().delete()
    assert not acted(User.objects.get(username="s.marchetti"), asked_by(account.user))


def test_program_decides_on_no_request(cluster, lead):
    account = program(Team.objects.get(queue__name="research"), "team lead")
    request = asked_by(User.objects.get(username="s.marchetti"))
    assert acted(account.user, request) == "Programs decide on no request."


def test_queue_is_approved_by_who_approves_any_amount_or_divides_there(cluster, lead):
    request = asked_by(User.objects.get(username="s.marchetti"))
    small = User.objects.create_user("small")
    bounded = persona("team lead")
    team = Team.objects.get(queue__name="language")
    Membership.objects.create(user=small, team=team, persona=bounded)
    assert Decider(lead).approves(request)
    assert not Decider(small).approves(request)


@pytest.mark.parametrize("typed", [1e308, 2_000_001, -1, float("inf")])
def test_gpus_out_of_bounds_are_refused_before_arithmetic(typed):
    with pytest.raises(ValidationError):
        GpusField().run_validation(typed)


def test_gpus_are_read_to_the_thousandth():
    assert GpusField().run_validation("1.5") == 1500


@pytest.mark.parametrize(
    "name", ["kubernetes-admin", "kube-proxy", "weir-engine", "admin@corp.example", "svc-anything"]
)
def test_lead_takes_a_name_that_the_cluster_or_a_provider_gives_is_refused(cluster, lead, name):
    with pytest.raises(ServiceError) as refused:
        people.add_person(by=lead, username=name)
    assert refused.value.field == "username"
    assert not User.objects.filter(username=name).exists()


def test_admin_gives_a_person_the_name_of_their_provider(cluster):
    admin = User.objects.get(username="admin")
    made, _ = people.add_person(by=admin, username="ada@corp.example")
    assert made.username == "ada@corp.example"


def test_name_of_a_person_with_work_and_no_account_is_not_given_by_a_lead(cluster, lead):
    make_workload(queue("search"), user="ghost")
    with pytest.raises(ServiceError, match="Work stands"):
        people.add_person(by=lead, username="ghost")


def test_name_of_a_deleted_program_with_work_is_never_given_again(cluster, lead):
    research = Team.objects.get(queue__name="research")
    account = program(research, "researcher")
    make_workload(queue("vision"), user="svc-x")
    service_accounts.delete(lead, account, request=SENT)
    with pytest.raises(ServiceError) as refused:
        program(research, "researcher")
    assert refused.value.code == "name_taken"


def test_name_of_a_deleted_program_that_did_nothing_is_free_again(cluster, lead):
    research = Team.objects.get(queue__name="research")
    service_accounts.delete(lead, program(research, "researcher"), request=SENT)
    assert program(research, "researcher").user.username == "svc-x"
