"""The first run on nodes whose labels tell little or nothing of their GPUs."""

import pytest

from scheduling.cluster.connection.client import Client
from scheduling.models import Cluster, GpuClass
from scheduling.services.clusters import discovery
from scheduling.services.clusters.add import find_classes
from tests.portal.setup.test_first_run import LABEL, connect, node
from workshop.testbed.server import EmbeddedServer

pytestmark = pytest.mark.django_db


def labelled(name, **labels):
    made = node(name, "True")
    made["metadata"]["labels"] = {"kubernetes.io/hostname": name, **labels}
    return made


@pytest.fixture
def server():
    with EmbeddedServer(port=0, controllers=False) as running:
        running.client = Client.connect(Cluster(name="x", api_url=running.url))
        yield running
        running.client.close()


@pytest.fixture
def found(admin, server):
    def found(*nodes):
        for each in nodes:
            server.client.create("/api/v1/nodes", each)
        assert connect(admin, server.url).status_code == 302
        return {c.name: c.node_labels for c in GpuClass.objects.all()}

    return found


def test_nodes_without_labels_get_a_class_named_after_the_resource(found, admin):
    assert found(labelled("n1")) == {"nvidia-gpu": {}}
    page = admin.get("/set-up/classes/").text
    assert "Named after its resource" in page
    assert "every node that offers nvidia.com/gpu" in page


def test_class_of_nodes_without_labels_is_kept_as_proposed(found, admin):
    found(labelled("n1"))
    line = f"class-{GpuClass.objects.get().pk}-"
    typed = {"act": "save", f"{line}name": "nvidia-gpu", f"{line}exchange_rate": "1"}
    answer = admin.post("/set-up/classes/", {**typed, f"{line}price_per_gpu_hour": "0.5"})
    assert answer.status_code == 302, [f.errors for f in answer.context["forms"]]


def test_class_of_every_node_is_added_by_hand(found, admin):
    found()
    typed = {"act": "add", "name": "any", "resource_name": "amd.com/gpu", "node_labels": ""}
    answer = admin.post(
        "/set-up/classes/", {**typed, "exchange_rate": "1", "price_per_gpu_hour": "1"}
    )
    assert answer.status_code == 302
    assert GpuClass.objects.get().node_labels == {}


@pytest.mark.parametrize(
    ("label", "value", "name"),
    [
        ("cloud.google.com/gke-accelerator", "nvidia-tesla-t4", "t4"),
        ("k8s.amazonaws.com/accelerator", "nvidia-tesla-v100", "v100"),
        ("karpenter.k8s.aws/instance-gpu-name", "a10g", "a10g"),
        (
            "node.kubernetes.io/instance-type",
            "Standard_NC24ads_A100_v4",
            "standard-nc24ads-a100-v4",
        ),
        ("kubernetes.azure.com/accelerator", "nvidia", "nvidia"),
    ],
)
def test_label_of_a_cloud_names_the_class(found, admin, label, value, name):
    assert found(labelled("n1", **{label: value})) == {name: {label: value}}
    assert f"Named after the label {label}={value}." in admin.get("/set-up/classes/").text


def test_label_without_a_value_tells_nothing(found):
    assert found(labelled("n1", **{LABEL: ""})) == {"nvidia-gpu": {}}


def test_names_that_read_alike_are_told_apart(found):
    names = found(
        labelled("n1", **{LABEL: "NVIDIA-L4"}),
        labelled("n2", **{LABEL: "L4"}),
        labelled("n3", **{LABEL: "Tesla-L4"}),
    )
    assert sorted(names) == ["l4", "l4-2", "l4-3"]


def test_slices_without_a_product_are_named_after_their_profile(found):
    sliced = labelled("n1")
    sliced["status"]["allocatable"] = {"nvidia.com/mig-1g.5gb": "7"}
    assert found(sliced) == {"nvidia-mig-1g.5gb": {}}


def test_node_of_a_product_is_counted_in_its_class_alone(found):
    found(labelled("n1"), labelled("n2", **{LABEL: "NVIDIA-L4"}))
    seen = discovery.look(Cluster.objects.get())
    assert {c.gpu_class.name: c.nodes for c in seen.classes} == {"nvidia-gpu": 1, "l4": 1}
    assert seen.gpus == 16


def test_node_that_a_class_covers_makes_no_other(found, server):
    found(labelled("n1", **{"node.kubernetes.io/instance-type": "g5"}))
    more = {LABEL: "NVIDIA-A10G", "node.kubernetes.io/instance-type": "g5"}
    server.client.create("/api/v1/nodes", labelled("n2", **more))
    assert find_classes(Cluster.objects.get()) == []


def test_product_that_shows_later_gets_a_class_beside_that_of_every_node(found, server):
    found(labelled("n1"))
    server.client.create("/api/v1/nodes", labelled("n2", **{LABEL: "NVIDIA-L4"}))
    assert [c.name for c in find_classes(Cluster.objects.get())] == ["l4"]


def test_class_that_was_named_anew_says_its_nodes_only(found, admin):
    found(labelled("n1"))
    GpuClass.objects.update(name="gold")
    page = admin.get("/set-up/classes/").text
    assert "Named after" not in page
    assert "It is every node that offers nvidia.com/gpu" in page
