from datetime import timedelta

import pytest

from scheduling.models import MILLI
from scheduling.services.workloads.manifest import build_job_manifest
from tests.factories import make_workload
from tests.portal.kubernetes import job

pytestmark = pytest.mark.django_db
LIST = "/api/v1/clusters/fra1/workloads"


@pytest.fixture
def probe(cluster, kube):
    manifest = build_job_manifest(
        name="probe",
        queue="pretraining",
        namespace="pretraining",
        image="registry.example.org/probe:1",
        gpu_classes=[cluster.gpu_classes.get(name="h100-80gb")],
        gpus_per_pod=8,
        pods_min=2,
        run_time_limit_s=36_000,
    )
    made = kube.create("/apis/batch/v1/namespaces/pretraining/jobs", manifest)
    return make_workload(
        cluster.queues.get(name="pretraining"), uid=made["metadata"]["uid"], name="probe",
        user="researcher", gpus=8 * MILLI, min_members=2, max_members=2, run_time_limit_s=36_000,
        gpu_classes=["h100-80gb"],
    )  # fmt: skip


def test_preview_says_both_and_change_writes(api, probe, kube, cluster):
    client, at = api("researcher"), f"{LIST}/{probe.uid}/change"
    later = (cluster.now() + timedelta(days=1)).isoformat()
    body = {"run_time_limit_s": 7200, "not_before": later}
    told = client.post(f"{at}/preview", body, format="json").json()
    assert told["after"]["reason"] == "not_before"
    assert not told["after"]["starts_now"]
    spec = kube.get(job("pretraining", "probe"))["spec"]
    assert spec["activeDeadlineSeconds"] == 36_000

    assert client.post(at, body, format="json").status_code == 202
    made = kube.get(job("pretraining", "probe"))
    assert made["spec"]["activeDeadlineSeconds"] == 7200
    assert made["metadata"]["annotations"]["weir.dev/not-before"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"after": ["nowhere"]}, "after"),
        ({"not_before": "2020-01-01T00:00:00Z"}, "not_before"),
        ({"gpu_classes": ["none-such"]}, "gpu_classes"),
        ({"priority_class": "none-such"}, "priority_class"),
        ({"pods_min": 0}, "pods_min"),
    ],
)
def test_refusal_names_the_field(api, probe, body, field):
    done = api("researcher").post(f"{LIST}/{probe.uid}/change", body, format="json")
    assert done.status_code in (400, 409, 422)
    assert field in done.content.decode()


def test_who_may_not_operate_it_is_refused(api, probe):
    at = f"{LIST}/{probe.uid}/change"
    for path in (at, f"{at}/preview"):
        done = api("m.okafor").post(path, {"pods_min": 1}, format="json")
        assert done.status_code in (403, 404)


def test_array_of_a_manifest(api, cluster, kube):
    manifest = build_job_manifest(
        name="sweep",
        queue="pretraining",
        namespace="pretraining",
        image="registry.example.org/probe:1",
        gpu_classes=[cluster.gpu_classes.get(name="h100-80gb")],
        run_time_limit_s=3600,
    )
    body = {"manifest": manifest, "array": 2, "array_at_once": 1}
    done = api("researcher").post(LIST, body, format="json")
    assert done.status_code == 201, done.content
    assert [one["name"] for one in done.json()["members"]] == ["sweep-0", "sweep-1"]
    notes = kube.get(job("pretraining", "sweep-1"))["metadata"]["annotations"]
    assert notes["weir.dev/array-at-once"] == "1"
