"""Queues added, changed and removed by page: refusals stand at their field, what was typed stays."""

import pytest

from portal.accounts.models import User
from scheduling.models import Queue
from tests.factories import example_cluster, make_workload
from tests.portal.kubernetes import serving

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


def test_name_taken_out_of_sight_is_refused_without_saying_that_it_is_there(lead):
    for address, parent in (
        (url("research", "add"), "research"),
        (url("robotics", "edit"), "research"),
    ):
        answer = lead.post(address, fields("search", parent))

        assert answer.context["form"].errors == {
            "name": ["That name cannot be used here. Choose another name."]
        }


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

    assert "An admin can give" in answer.context["form"].errors["namespace"][0]
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


def test_what_the_cluster_holds_a_namespace_to_is_set_by_operators_alone(lead, client):
    bounds = {"max_cpus": "12.5", "max_memory_gib": "64", "max_pods": "9"}
    typed = fields("vision", "research", namespace="vision", pod_security="privileged", **bounds)
    page = lead.get(url("vision", "edit")).content.decode()
    assert not any(f'name="{name}"' in page for name in ("pod_security", *bounds))
    lead.post(url("vision", "edit"), typed)
    found = Queue.objects.get(name="vision")
    assert (found.pod_security, found.max_cpus, found.max_pods) == ("", None, None)

    client.force_login(User.objects.get(username="admin"))
    client.post(url("vision", "edit"), {**typed, "access_group": found.access_group})
    found = Queue.objects.get(name="vision")
    assert (found.pod_security, found.max_cpus) == ("privileged", 12_500)
    assert (found.max_memory_mib, found.max_pods) == (64 * 1024, 9)
    page = client.get(url("vision", "edit")).content.decode()
    assert '<option value="privileged" selected>' in page
    assert 'name="max_cpus" inputmode="decimal" value="12.5"' in page


def test_lead_who_edits_a_queue_leaves_what_operators_set(lead):
    Queue.objects.filter(name="vision").update(pod_security="restricted", max_pods=5)
    lead.post(url("vision", "edit"), fields("vision", "research", namespace="vision"))

    found = Queue.objects.get(name="vision")
    assert (found.pod_security, found.max_pods) == ("restricted", 5)


def test_level_that_is_none_is_refused_at_its_field(admin):
    answer = admin.post(url("vision", "edit"), fields("vision", "research", pod_security="lax"))

    assert list(answer.context["form"].errors) == ["pod_security"]


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


@pytest.fixture
def running(cluster):
    """The row of a Job that runs in pretraining on its cluster."""
    with serving(cluster) as client:
        labels = {"weir.dev/queue": "pretraining"}
        notes = {"weir.dev/gpu-classes": "h100-80gb", "weir.dev/user": "researcher"}
        container = {
            "name": "main",
            "image": "a/b",
            "resources": {"limits": {"nvidia.com/gpu": "4"}},
        }
        pod = {"restartPolicy": "Never", "containers": [container]}
        body = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "busy", "labels": labels, "annotations": notes},
            "spec": {"suspend": False, "parallelism": 1, "template": {"spec": pod}},
        }
        made = client.create("/apis/batch/v1/namespaces/pretraining/jobs", body)
        owner = {"kind": "Job", "name": "busy", "uid": made["metadata"]["uid"], "controller": True}
        owner["apiVersion"] = "batch/v1"
        client.create(
            "/api/v1/namespaces/pretraining/pods",
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "busy-0", "labels": labels, "ownerReferences": [owner]},
                "spec": {**pod, "nodeName": "h100-01"},
                "status": {"phase": "Running"},
            },
        )
        queue = cluster.queues.get(name="pretraining")
        yield make_workload(
            queue, uid=made["metadata"]["uid"], name="busy", state="running", gpus=4000
        )


def drain(client, **more):
    given = fields("pretraining", "language", stop="drain", namespace="pretraining", **more)
    return client.post(url("pretraining", "edit"), given)


def test_drain_says_whom_it_evicts_before_it_does(lead, running):
    page = drain(lead)

    assert [one.name for one in page.context["draining"].leaving] == ["busy"]
    assert "evicts 1 workload with 4 GPUs" in page.content.decode()
    assert Queue.objects.get(name="pretraining").stop == "none"


def test_confirmed_drain_is_done(lead, running):
    assert drain(lead, confirm_drain="1").status_code == 302
    assert Queue.objects.get(name="pretraining").stop == "drain"


def test_drain_is_confirmed_where_nobody_can_say_whom_it_evicts(lead):
    assert "does not answer" in drain(lead).content.decode()
    assert Queue.objects.get(name="pretraining").stop == "none"
    assert drain(lead, confirm_drain="1").status_code == 302


def test_lead_chooses_how_what_is_above_nominal_is_given_out(lead):
    lead.post(url("speech", "edit"), fields("speech", "research", sharing="promise"))

    assert Queue.objects.get(name="speech").sharing == "promise"
    assert 'value="promise" selected' in lead.get(url("speech", "edit")).content.decode()


@pytest.mark.parametrize(("edit", "told"), [
    ({"max_running": "0"}, "planned at"),
    ({"sharing": "throughput"}, "planned at"),
    ({"max_gpus_per_user": "1.5"}, "planned at"),
    ({"name": "sight"}, "None of the edited fields changes what the engine plans"),
])  # fmt: skip
def test_edit_of_a_queue_is_planned_before_it_is_saved(lead, cluster, edit, told):
    with serving(cluster):
        answer = lead.post(url("vision", "edit"), fields("vision", "research", preview="1") | edit)
    assert answer.status_code == 200
    assert told in answer.content.decode()
    assert Queue.objects.filter(name="vision", max_running=None, sharing="").exists()
