from datetime import timedelta

import pytest

from portal.plans import asking
from portal.selectors import sooner as selectors
from portal.teams.reach import plan_for_owners
from portal.web.workloads.sooner import FIELDS
from scheduling.models import MILLI, Cluster, StartChanges, StartForecast, State, Workload
from scheduling.services.explain import sooner as service
from tests.factories import NOW, make_workload
from tests.portal.kubernetes import serving
from tests.portal.web.workloads.test_submit import FORM

pytestmark = pytest.mark.django_db

CHANGE = {
    "change": "fewer_gpus", "value": 4.0, "queue": "pretraining", "gpu_class": "h100-80gb",
    "evicts_gpus": 0, "sentence": "So it would.",
}  # fmt: skip


@pytest.fixture
def kube(cluster):
    with serving(cluster, nodes=False) as client:
        yield client


@pytest.fixture
def half_a_node(kube):
    """One node with four H100, which is what the cluster has."""
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "kubernetes.io/hostname": "n1"}
    return kube.create(
        "/api/v1/nodes",
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n1", "labels": labels},
            "status": {
                "allocatable": {"nvidia.com/gpu": "4", "cpu": "64", "memory": "512Gi"},
                "capacity": {"nvidia.com/gpu": "4", "cpu": "64", "memory": "512Gi"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        },
    )


@pytest.fixture
def waiting(cluster, kube):
    """A workload that asks for eight GPUs."""
    made = kube.create(
        "/apis/batch/v1/namespaces/pretraining/jobs",
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": "probe",
                "labels": {"weir.dev/queue": "pretraining"},
                "annotations": {"weir.dev/gpu-classes": "h100-80gb", "weir.dev/user": "researcher"},
            },
            "spec": {
                "suspend": True,
                "activeDeadlineSeconds": 3600,
                "template": {
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [
                            {
                                "name": "main",
                                "image": "registry.example.org/probe:1",
                                "resources": {"limits": {"nvidia.com/gpu": "8"}},
                            }
                        ],
                    }
                },
            },
        },
    )
    queue = cluster.queues.get(name="pretraining")
    return make_workload(
        queue, uid=made["metadata"]["uid"], name="probe", user="researcher", gpus=8 * MILLI
    )


def _asked(client, work):
    return client.get(f"/c/fra1/w/{work.uid}/sooner/").content.decode()


def test_most_gpus_that_would_start_it_are_named(as_user, half_a_node, waiting):
    page = _asked(as_user("researcher"), waiting)
    assert "With 4 instead of 8 GPUs per member" in page


def test_answer_stands_before_its_owner_asks(as_user, cluster, half_a_node, waiting, monkeypatch):
    assert plan_for_owners(cluster) > 0
    monkeypatch.setattr(service, "live_or_refused", None)  # the cluster is not asked again
    page = _asked(as_user("researcher"), waiting)
    assert "With 4 instead of 8 GPUs per member" in page
    assert "Planned" in page or "planned" in page


def test_each_is_planned_again_once_the_plan_has_changed(cluster, half_a_node, waiting):
    count = plan_for_owners(cluster)
    assert plan_for_owners(cluster) == 0
    cluster.touch()
    cluster.refresh_from_db()
    assert plan_for_owners(cluster) == count


def test_answer_in_the_background_is_that_of_planning_now(cluster, half_a_node, waiting):
    plan_for_owners(cluster)
    row = StartChanges.objects.get(workload=waiting)
    reach = service.Reach(row.queues, row.priority_classes)
    assert row.found == next(service.plan_now(cluster, [(waiting, reach)])).found != []


def test_work_of_nobody_who_could_ask_is_not_planned_ahead(cluster, half_a_node, waiting):
    Workload.objects.filter(pk=waiting.pk).update(user="stranger")
    plan_for_owners(cluster)
    assert not StartChanges.objects.filter(workload=waiting).exists()


def test_answer_goes_once_the_work_waits_no_longer(cluster, half_a_node, waiting):
    plan_for_owners(cluster)
    Workload.objects.filter(pk=waiting.pk).update(state=State.FINISHED)
    cluster.touch()
    plan_for_owners(Cluster.objects.get())
    assert not StartChanges.objects.filter(workload=waiting).exists()


def test_who_looks_first_at_anothers_work_has_it_planned_then(
    as_user, cluster, half_a_node, waiting
):
    plan_for_owners(cluster)
    assert "With 4 instead of 8 GPUs per member" in _asked(as_user("lead"), waiting)
    assert StartChanges.objects.filter(workload=waiting, kept_until=None).count() == 1
    assert StartChanges.objects.filter(workload=waiting).count() == 2


def test_cluster_that_does_not_answer_is_said(as_user, cluster, waiting):
    cluster.api_url = "http://127.0.0.1:9"
    cluster.save(update_fields=["api_url"])
    assert "Cluster fra1 does not answer." in _asked(as_user("researcher"), waiting)


def test_page_says_that_it_is_planned_until_a_worker_has(
    as_user, cluster, half_a_node, waiting, monkeypatch
):
    sent: list[int] = []
    monkeypatch.setattr(asking, "_ask", sent.append)
    first = _asked(as_user("researcher"), waiting)
    asking.answer(sent[0])
    then = _asked(as_user("researcher"), waiting)

    assert "The engine plans it" in first
    assert "No single change" not in first
    assert "With 4 instead of 8 GPUs per member" in then
    assert len(sent) == 1


def test_page_of_a_waiting_workload_offers_to_ask(as_user, waiting):
    page = as_user("researcher").get(f"/c/fra1/w/{waiting.uid}/").content.decode()
    assert f"/c/fra1/w/{waiting.uid}/sooner/" in page


@pytest.mark.parametrize(
    ("change", "value", "told"),
    [
        ("gpu_class", "a100-40gb", "class_1=a100-40gb"),
        ("fewer_gpus", 4.0, "gpus_per_pod=4"),
        ("fewer_members", 2, "pods_min=2"),
        ("queue", "alignment", "queue=alignment"),
        ("limit", 24.0, "/requests/new/?kind=quota&amp;queue=pretraining&amp;gpu_class=h100-80gb"),
        ("priority", "interactive", 'name="priority_class" value="interactive"'),
        ("topology", "", ""),
    ],
)
def test_each_change_has_its_start_its_cost_and_the_way_to_do_it(
    as_user, waiting, monkeypatch, change, value, told
):
    found = {**CHANGE, "change": change, "value": value}
    kept = StartChanges(found=[found], at=NOW)
    monkeypatch.setattr(selectors, "planned_changes", lambda *_args: kept)
    page = _asked(as_user("researcher"), waiting)
    assert "<b>now</b>" in page
    assert "Cost an hour" in page
    assert "As it is" in page
    assert told in page
    assert ("Clone with this" in page) is (change in FIELDS)


def test_clone_takes_the_one_change_from_the_address(as_user, cluster, kube):
    researcher = as_user("researcher")
    made = researcher.post("/c/fra1/submit/", {**FORM, "name": "run-7", "even_if_never": "on"})
    uid = made.headers["Location"].rstrip("/").rpartition("/")[2]
    make_workload(cluster.queues.get(name="pretraining"), uid=uid, name="run-7", user="researcher")
    page = f"/c/fra1/submit/?clone={uid}"
    whole = researcher.get(page).context["form"]
    other = researcher.get(f"{page}&class_1=a100-40gb&gpus_per_pod=4").context["form"]
    assert whole["class_1"].value() == FORM["class_1"]
    assert (other["class_1"].value(), str(other["gpus_per_pod"].value())) == ("a100-40gb", "4")
    assert other["image"].value() == whole["image"].value()


def test_clone_that_the_form_cannot_say_tells_what_is_to_be_changed(as_user, waiting):
    page = f"/c/fra1/submit/?clone={waiting.uid}&class_1=a100-40gb"
    told = as_user("researcher").get(page).content.decode()
    assert "yours to make in the manifest: class 1 a100-40gb." in told


def test_page_leads_to_the_change_of_its_priority(as_user, waiting):
    page = as_user("researcher").get(f"/c/fra1/w/{waiting.uid}/").content.decode()
    assert f'href="/c/fra1/w/{waiting.uid}/change/"' in page


def test_priority_of_many_is_chosen_with_the_present_class_first_chosen(as_user, waiting):
    asked = {"action": "priority", "uid": waiting.uid}
    shown = as_user("researcher").post("/c/fra1/workloads/act/", asked)
    own = waiting.priority_class.name
    assert f"<option selected>{own}</option>" in shown.content.decode()


def test_part_of_a_page_whose_work_has_started_has_the_page_read_anew(as_user, cluster, waiting):
    Workload.objects.filter(pk=waiting.pk).update(state=State.RUNNING)
    part = as_user("researcher").get(f"/c/fra1/w/{waiting.uid}/sooner/")
    assert (part.status_code, part.headers["HX-Refresh"]) == (204, "true")


def test_two_who_choose_among_the_same_have_one_plan(waiting, half_a_node, monkeypatch):
    planned = []

    def counted(frame, slot, reach):
        planned.append(list(reach.queues))
        return real(frame, slot, reach)

    real = service.relaxations_in
    monkeypatch.setattr(service, "relaxations_in", counted)
    reaches = [service.Reach(queues) for queues in (["pretraining"], ["ci"], ["pretraining"])]
    first, other, like = service.plan_now(waiting.cluster, [(waiting, one) for one in reaches])

    assert planned == [["pretraining"], ["ci"]]
    assert first.found == like.found
    assert other.reach != first.reach == like.reach


def test_starts_stand_on_one_axis_from_now_to_its_forecast_as_it_is(
    as_user, cluster, waiting, monkeypatch
):
    now = cluster.now()
    StartForecast.objects.create(
        workload=waiting, at=now, p50_at=now + timedelta(hours=3), p90_at=now + timedelta(hours=5)
    )
    kept = StartChanges(found=[dict(CHANGE)], at=NOW)
    monkeypatch.setattr(selectors, "planned_changes", lambda *_args: kept)
    shown = as_user("researcher").get(f"/c/fra1/w/{waiting.uid}/sooner/").context
    assert shown["ticks"][0].text == "now"
    assert 0 < shown["as_it_is_box"].x < shown["as_it_is_box"].x + shown["as_it_is_box"].width < 100
    assert (shown["found"][0].box.x, shown["found"][0].box.width) == (0, 0)


def test_without_a_forecast_there_is_no_axis_of_time(as_user, waiting, monkeypatch):
    kept = StartChanges(found=[dict(CHANGE)], at=NOW)
    monkeypatch.setattr(selectors, "planned_changes", lambda *_args: kept)
    shown = as_user("researcher").get(f"/c/fra1/w/{waiting.uid}/sooner/")
    assert "time-cell" not in shown.content.decode()
