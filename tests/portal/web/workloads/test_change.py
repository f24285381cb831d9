from datetime import timedelta

import pytest

from scheduling.models import MILLI, State, Workload
from scheduling.services.workloads.manifest import build_job_manifest
from tests.factories import make_workload
from tests.portal.kubernetes import job

pytestmark = pytest.mark.django_db
JOBS = "/apis/batch/v1/namespaces/pretraining/jobs"


@pytest.fixture
def probe(cluster, kube):
    """A waiting workload of the researcher's that the API server holds."""
    manifest = build_job_manifest(
        name="probe",
        queue="pretraining",
        namespace="pretraining",
        image="registry.example.org/probe:1",
        gpu_classes=[cluster.gpu_classes.get(name="h100-80gb")],
        gpus_per_pod=8,
        pods_min=2,
        priority_class="research-normal",
        run_time_limit_s=36_000,
    )
    made = kube.create(JOBS, manifest)
    row = make_workload(
        cluster.queues.get(name="pretraining"), uid=made["metadata"]["uid"], name="probe",
        user="researcher", gpus=8 * MILLI, min_members=2, max_members=2, run_time_limit_s=36_000,
        gpu_classes=["h100-80gb"],
    )  # fmt: skip
    return row


def fields(**more):
    return {
        "run_time_limit": "10 h", "gpus_per_pod": "8", "pods_min": "2", "pods_max": "2",
        "class_1": "h100-80gb", "not_before": "", "after": "", **more,
    }  # fmt: skip


def url(work):
    return f"/c/fra1/w/{work.uid}/change/"


def test_form_begins_with_what_stands_there(as_user, probe):
    page = as_user("researcher").get(url(probe))
    form = page.context["form"]
    assert [form[n].value() for n in ("run_time_limit", "gpus_per_pod", "pods_max", "class_1")] == [
        "10 h",
        8,
        2,
        "h100-80gb",
    ]


def test_check_shows_both_starts_and_writes_nothing(as_user, probe, kube):
    page = as_user("researcher").post(url(probe), fields(gpus_per_pod="1", check="1"))
    assert page.status_code == 200
    compared = page.context["compared"]
    assert compared.draft.after.gpus == MILLI
    assert "Nothing is saved yet" in page.content.decode()
    spec = kube.get(job("pretraining", "probe"))["spec"]
    limits = spec["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits["nvidia.com/gpu"] == "8"


def test_save_writes_to_the_cluster_and_leads_back(as_user, probe, kube):
    done = as_user("researcher").post(url(probe), fields(pods_min="1", run_time_limit="5 h"))
    assert done.headers["Location"] == f"/c/fra1/w/{probe.uid}/"
    made = kube.get(job("pretraining", "probe"))
    assert made["spec"]["activeDeadlineSeconds"] == 18_000
    assert made["spec"]["parallelism"] == 2
    assert made["metadata"]["annotations"]["weir.dev/min-members"] == "1"


def test_work_to_start_later_is_never_said_to_start_now(as_user, probe, cluster):
    later = (cluster.now() + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M")
    page = as_user("researcher").post(
        url(probe), fields(not_before=later, gpus_per_pod="1", check="1")
    )
    after = page.context["compared"].after
    assert (after.starts, after.reason) == (False, "not_before")
    assert "no sooner than" in after.sentence


@pytest.mark.parametrize(
    ("typed", "field", "said"),
    [
        ({"not_before": "2020-01-01T10:00"}, "not_before", "is past"),
        ({"after": "nothing-there"}, "after", "no workload nothing-there"),
        ({"after": "probe"}, "after", "none of them ever would"),
        ({"after": "Not A Name"}, "after", "no workload to start after"),
        ({"run_time_limit": "soon"}, "run_time_limit", "Write a duration"),
        ({"pods_min": "3", "pods_max": "2"}, "pods_max", "fewer than at least 3"),
        ({}, None, "Nothing is to be otherwise"),
    ],
)
def test_bad_input_is_refused_at_its_field(as_user, probe, typed, field, said):
    page = as_user("researcher").post(url(probe), fields(**typed))
    assert page.status_code == 422
    errors = page.context["form"].errors
    assert said in str(errors[field or "__all__"])


def test_circle_through_other_work_is_refused(as_user, probe, cluster):
    queue = cluster.queues.get(name="pretraining")
    make_workload(queue, name="middle", user="researcher", turn={"after": ["first"]})
    make_workload(queue, name="first", user="researcher", turn={"after": ["probe:ended"]})
    page = as_user("researcher").post(url(probe), fields(after="middle"))
    assert "none of them ever would" in str(page.context["form"].errors["after"])


def test_work_of_other_queues_is_as_what_is_not_there(as_user, probe, cluster):
    other = cluster.queues.exclude(name="pretraining").filter(children__isnull=True).last()
    make_workload(other, name="secret", namespace="pretraining", user="somebody")
    client = as_user("researcher")
    hidden = client.post(url(probe), fields(after="secret")).context["form"].errors["after"]
    absent = client.post(url(probe), fields(after="absent")).context["form"].errors["after"]
    assert str(hidden).replace("secret", "absent") == str(absent)


def test_only_who_may_operate_it_can_change_it(as_user, probe):
    assert as_user("q.nguyen").get(url(probe)).status_code == 404
    assert as_user("q.nguyen").post(url(probe), fields(pods_min="1")).status_code == 404


def test_what_runs_by_now_leads_back(as_user, probe):
    Workload.objects.filter(pk=probe.pk).update(state=State.RUNNING)
    assert as_user("researcher").get(url(probe)).status_code == 302
