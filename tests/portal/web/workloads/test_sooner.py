import pytest

from scheduling.models import MILLI
from tests.factories import make_workload
from tests.portal.kubernetes import serving

pytestmark = pytest.mark.django_db


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
                "annotations": {
                    "weir.dev/gpu-classes": "h100-80gb",
                    "weir.dev/user": "researcher",
                },
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


def test_cluster_that_does_not_answer_is_said(as_user, cluster, waiting):
    cluster.api_url = "http://127.0.0.1:9"
    cluster.save(update_fields=["api_url"])
    assert "Cluster fra1 does not answer." in _asked(as_user("researcher"), waiting)


def test_page_of_a_waiting_workload_offers_to_ask(as_user, waiting):
    page = as_user("researcher").get(f"/c/fra1/w/{waiting.uid}/").content.decode()
    assert f"/c/fra1/w/{waiting.uid}/sooner/" in page
