"""The chart on a real control plane: the server applies each set, pods of one run on simulated nodes."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduling.cluster.connection.client import ApiError, Client
from scheduling.models import Cluster
from tests.deploy.charts import NAMESPACE, ROOT, SETS, Json, rendered, template
from tests.deploy.test_chart import OWN_KINDS
from tests.scheduling.kube import add_node
from workshop.testbed.control_plane.plane import ControlPlane
from workshop.testbed.kubelets import Machine, node_manifest

pytestmark = pytest.mark.deploy
WAIT_S = 60.0
NODES = ("d1", "d2")
STRICTEST = "pod-security.kubernetes.io/enforce"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
APPS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"


class Site:
    """A control plane with two nodes and the namespace that `helm install --create-namespace` makes."""

    def __init__(self, plane: ControlPlane) -> None:
        self._kubectl = plane._binaries.path("kubectl")
        self._kubeconfig = plane.access.kubeconfig
        self.admin = Client.connect(
            Cluster(kubeconfig=plane.access.kubeconfig, context=plane.access.context)
        )
        for name in NODES:
            machine = Machine(name, "nvidia.com/gpu", gpus=0, cpus=32, memory_gib=64)
            add_node(self.admin, node_manifest(machine))
        self.kubectl("create", "namespace", NAMESPACE)
        # The strictest that a cluster asks of pods: what does not hold it is never made.
        self.kubectl("label", "namespace", NAMESPACE, f"{STRICTEST}=restricted")
        self.kubectl("-n", NAMESPACE, "create", "secret", "generic", "weir-secrets")

    def kubectl(self, *words: str, text: str = "") -> str:
        done = subprocess.run(
            [self._kubectl, "--kubeconfig", self._kubeconfig, *words],
            input=text, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def apply(self, objects: list[Json], *options: str) -> str:
        text = yaml.safe_dump_all(one for one in objects if one["kind"] not in OWN_KINDS)
        words = ("apply", "--server-side", "--force-conflicts", "-f", "-", *options)
        return self.kubectl("-n", NAMESPACE, *words, text=text)

    def pods_of(self, component: str) -> list[Json]:
        query = f"app.kubernetes.io/component={component}"
        found = self.admin.get(PODS, labelSelector=query)["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


@pytest.fixture(scope="module")
def site(real_control_plane: ControlPlane) -> Iterator[Site]:
    made = Site(real_control_plane)
    yield made
    made.admin.close()


def within(condition: Callable[[], Any], seconds: float = WAIT_S) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"not within {seconds:g} s"
        time.sleep(0.2)


@pytest.mark.parametrize("name", SETS)
def test_api_server_takes_every_object_of_the_chart(site: Site, name: str) -> None:
    told = site.apply(rendered(name), "--dry-run=server")

    asked = [one for one in rendered(name) if one["kind"] not in OWN_KINDS]
    assert told.count("serverside-applied") == len(asked)


def ready(deployment: Json) -> int:
    return int(deployment["status"].get("readyReplicas", 0))


def test_processes_come_up_roll_over_and_are_never_all_away(site: Site, tmp_path: Path) -> None:
    values = SETS["large"] | {"nodeSelector": {}, "size": "trial", "web": {"replicas": 2}}
    site.apply(template(values))
    names = ("web", "engine", "worker", "studies", "beat")
    within(lambda: all(ready(site.admin.get(f"{APPS}/weir-{name}")) for name in names))
    within(lambda: ready(site.admin.get(f"{APPS}/weir-web")) == 2)
    first = {pod["metadata"]["name"] for pod in site.pods_of("web")}
    within(lambda: spare(site) == 1)

    site.kubectl(
        "cordon", *NODES
    )  # a replacement that is ready at once would free the budget again
    evict(site, min(first))
    with pytest.raises(ApiError) as refused:
        evict(site, max(first))
    assert refused.value.status == 429, "the budget lets one go at a time"
    site.kubectl("uncordon", *NODES)

    site.apply(template({**values, "image": {"tag": "2.0.0"}}))
    least = 2
    until = time.monotonic() + WAIT_S
    while not rolled_over(site, "2.0.0"):
        assert time.monotonic() < until
        least = min(least, ready(site.admin.get(f"{APPS}/weir-web")))
        time.sleep(0.05)
    assert least >= 1, "people always find a web server"
    jobs = site.admin.get(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs")["items"]
    assert len(jobs) == 2, "each image migrates"


def spare(site: Site) -> int:
    """How many web pods the budget lets go, as its controller last counted."""
    status = site.admin.get(f"{BUDGETS}/weir-web").get("status", {})
    return int(status.get("disruptionsAllowed", 0))


def evict(site: Site, name: str) -> None:
    of = {"name": name, "namespace": NAMESPACE}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": of}
    site.admin.request("POST", f"{PODS}/{name}/eviction", body=body, tries=1)


def rolled_over(site: Site, tag: str) -> bool:
    found = site.pods_of("web")
    images = {pod["spec"]["containers"][0]["image"] for pod in found}
    status = site.admin.get(f"{APPS}/weir-web")["status"]
    return (
        len(found) == 2
        and all(image.endswith(f":{tag}") for image in images)
        and status.get("readyReplicas") == status.get("updatedReplicas") == 2
    )


def test_plain_manifests_are_a_base_of_kustomize(site: Site, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(SETS["external"]))
    subprocess.run(
        [ROOT / "deploy/tools/manifests.sh", values, tmp_path / "base"], check=True, timeout=60
    )

    built = list(yaml.safe_load_all(site.kubectl("kustomize", str(tmp_path / "base"))))

    def named(objects: list[Json]) -> list[tuple[str, str]]:
        return sorted((one["kind"], one["metadata"]["name"]) for one in objects)

    assert named(built) == named(rendered("external"))
