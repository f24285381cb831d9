"""Queues added, changed and removed by page: refusals stand at their field, what was typed stays."""

import pytest

from portal.accounts.models import User
from scheduling.models import Queue
from tests.factories import example_cluster

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster():
    return example_cluster()


@pytest.fixture
def lead(cluster, client):
    client.force_login(User.objects.get(username="lead"))
    return client


@pytest.fixture
def admin(cluster, client):
    client.force_login(User.objects.get(username="admin"))
    return client


def url(queue, verb):
    return f"/c/fra1/quotas/{queue}/{verb}/"


def fields(name, parent, **more):
    return {"name": name, "parent": parent, "priority": "0", "stop": "none", **more}


def test_lead_adds_a_queue_below_the_own(lead):
    answer = lead.post(url("research", "add"), fields("audio", "language"))

    assert answer.headers["Location"] == "/c/fra1/quotas/language/"
    made = Queue.objects.get(name="audio")
    assert made.path == "research/language/audio"
    assert made.history.first().history_user.username == "lead"


def test_lead_cannot_hang_a_queue_elsewhere(lead):
    answer = lead.post(url("research", "add"), fields("audio", "products"))

    assert answer.status_code == 400
    assert list(answer.context["form"].errors) == ["parent"]
    assert not Queue.objects.filter(name="audio").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Audio Team", "lower-case letters"),
        ("vision", "has a queue named vision"),
        ("", "needs a name"),
    ],
)
def test_bad_name_is_refused_at_name_and_stays_typed(lead, name, said):
    answer = lead.post(url("research", "add"), fields(name, "research", priority="7"))
    page = answer.content.decode()

    assert list(answer.context["form"].errors) == ["name"]
    assert said in page
    assert f'value="{name}"' in page
    assert 'value="7"' in page


def test_cycle_in_the_tree_is_refused_at_parent_and_stays_chosen(lead):
    answer = lead.post(url("language", "edit"), fields("language", "alignment"))
    page = answer.content.decode()

    assert list(answer.context["form"].errors) == ["parent"]
    assert "Choose a queue outside it." in page
    assert '<option value="alignment" selected>' in page


def test_operator_moves_a_queue(admin):
    assert admin.post(url("ci", "edit"), fields("ci", "fra1")).status_code == 302
    assert Queue.objects.get(name="ci").path == "ci"


def test_lead_cannot_change_the_own_queue(lead):
    assert lead.get(url("research", "edit")).status_code == 404
    assert lead.post(url("research", "delete")).status_code == 404


def test_root_is_not_edited(admin):
    assert admin.get(url("fra1", "edit")).status_code == 404


def test_queue_with_workloads_stays_and_says_why(lead):
    answer = lead.post(url("vision", "delete"), follow=True)

    assert "Set it to drain instead" in answer.content.decode()
    assert Queue.objects.filter(name="vision").exists()


def test_empty_queue_goes(lead):
    lead.post(url("research", "add"), fields("audio", "research"))

    assert lead.post(url("audio", "delete")).headers["Location"] == "/c/fra1/quotas/research/"
    assert not Queue.objects.filter(name="audio").exists()


@pytest.mark.parametrize(("field", "text"), [("priority", "high"), ("stop", "maybe")])
def test_bad_choice_is_refused_at_its_field(lead, field, text):
    answer = lead.post(url("vision", "edit"), {**fields("vision", "research"), field: text})

    assert list(answer.context["form"].errors) == [field]


def test_bad_namespace_is_refused_at_its_field(admin):
    answer = admin.post(url("vision", "edit"), fields("vision", "research", namespace="No Way"))

    assert list(answer.context["form"].errors) == ["namespace"]


@pytest.mark.parametrize("namespace", ["kube-system", "weir-system"])
def test_namespace_of_the_clusters_own_parts_is_refused(admin, namespace):
    answer = admin.post(url("vision", "edit"), fields("vision", "research", namespace=namespace))

    assert "belongs to the cluster" in answer.context["form"].errors["namespace"][0]


@pytest.mark.parametrize("namespace", ["search", "monitoring"])
def test_lead_gives_a_queue_no_namespace_outside_the_own(lead, namespace):
    answer = lead.post(url("vision", "edit"), fields("vision", "research", namespace=namespace))

    assert "An operator can give" in answer.context["form"].errors["namespace"][0]
    assert Queue.objects.get(name="vision").namespace == "vision"


def test_lead_gives_a_new_queue_a_namespace_of_the_own(lead):
    lead.post(url("research", "add"), fields("audio", "language", namespace="speech"))

    assert Queue.objects.get(name="audio").namespace == "speech"


def test_access_group_is_set_by_operators_alone(lead, client):
    typed = fields("vision", "research", namespace="vision", access_group="vision-people")
    assert 'name="access_group"' not in lead.get(url("vision", "edit")).content.decode()
    lead.post(url("vision", "edit"), typed)
    assert Queue.objects.get(name="vision").access_group == "weir:vision"

    client.force_login(User.objects.get(username="admin"))
    client.post(url("vision", "edit"), typed)
    assert Queue.objects.get(name="vision").access_group == "vision-people"


def test_lead_sets_limits_and_takes_them_away(lead):
    limits = {"max_running": "9", "max_running_per_user": "3", "max_gpus_per_user": "2.5"}
    lead.post(url("speech", "edit"), fields("speech", "research", **limits))

    found = Queue.objects.get(name="speech")
    assert (found.max_running, found.max_running_per_user, found.max_gpus_per_user) == (9, 3, 2500)
    page = lead.get(url("speech", "edit")).content.decode()
    assert 'name="max_gpus_per_user" inputmode="decimal" value="2.5"' in page

    lead.post(url("speech", "edit"), fields("speech", "research"))
    found.refresh_from_db()
    assert (found.max_running, found.max_running_per_user, found.max_gpus_per_user) == (None,) * 3


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("max_running", "-1", "0 or more"),
        ("max_running_per_user", "many", "Write a number"),
        ("max_gpus_per_user", "0.0001", "three decimals"),
    ],
)
def test_limit_that_is_no_limit_is_refused_at_its_field(lead, field, typed, said):
    answer = lead.post(url("speech", "edit"), fields("speech", "research", **{field: typed}))

    assert answer.status_code == 400
    assert said in answer.context["form"].errors[field][0]
