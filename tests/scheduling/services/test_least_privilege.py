"""A real API server with RBAC on: the manifests are enough to observe and to enforce, and no more."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

from scheduling.cluster.connection.client import (
    APPLY_PATCH,
    ApiError,
    Client,
    ForbiddenError,
    InvalidError,
    Person,
)
from scheduling.cluster.guardrails.reconcile import Finding
from scheduling.cluster.vocabulary.labels import QUEUE, USER
from scheduling.models import Cluster, ClusterMode, GpuClass, GuardrailState, Queue
from scheduling.services.clusters.adopting import ROLE, adopt
from scheduling.services.clusters.checkup import check
from scheduling.services.clusters.connection import for_people
from scheduling.services.clusters.gaps import Grade, Item
from scheduling.services.clusters.guardrails import guard
from scheduling.services.clusters.outside import look
from scheduling.services.errors import ServiceError
from scheduling.services.worker import cluster_turns as workers
from scheduling.services.worker.cycles import run_cycle
from scheduling.services.workloads.manifest import build_job_manifest
from tests.factories import make_user
from tests.scheduling.kube import add_node, eventually, policy
from workshop.testbed.control_plane.access import Access
from workshop.testbed.kubelets import Machine, node_manifest

pytestmark = pytest.mark.real

FOLDER = Path(settings.BASE_DIR) / "docker" / "kubernetes"
GROUPS = {"v1": "/api/v1"}
RBAC = "/apis/rbac.authorization.k8s.io/v1"
TOKEN = "/api/v1/namespaces/weir-system/serviceaccounts/{}/token"


@dataclass
class Site:
    """A cluster whose row carries the token of Weir's own account, and the administrator beside it."""

    cluster: Cluster
    admin: Client
    namespace: str
    product: str

    def install(self, file: str) -> None:
        for body in yaml.safe_load_all((FOLDER / file).read_text()):
            self.admin.apply(_path(body), body, force=True)

    def remove(self, file: str) -> None:
        """Take the rights of ``file`` away again; its namespace and accounts stay."""
        for body in yaml.safe_load_all((FOLDER / file).read_text()):
            if body["kind"].endswith(("Role", "RoleBinding")):
                self.admin.delete(_path(body))

    def lacks(self) -> list[Item]:
        """What the manifests lack. Operators whose definitions other tests installed are nobody's here."""
        missing = [i for i in check(Cluster.objects.get()) if i.grade is Grade.MISSING]
        return [item for item in missing if item.topic != "operators"]


def _path(body: dict[str, Any]) -> str:
    root = "/api/v1" if body["apiVersion"] == "v1" else f"/apis/{body['apiVersion']}"
    space = body["metadata"].get("namespace")
    scope = f"/namespaces/{space}" if space else ""
    plural = f"{body['kind'].lower()}s".replace("ys", "ies")
    return f"{root}{scope}/{plural}/{body['metadata']['name']}"


@pytest.fixture
def site(db: None, kubernetes: Any, tmp_path: Path) -> Iterator[Site]:
    access: Access = kubernetes.access
    name = f"lp-{uuid.uuid4().hex[:8]}"
    cluster = policy("observe", access.url, "research", nominal_gpus=8)
    cluster.ca_file, cluster.token_file = access.ca_file, str(tmp_path / "token")
    admin = Client.connect(Cluster(kubeconfig=access.kubeconfig, context=access.context))
    site = Site(cluster, admin, name, name)
    site.install("observe.yaml")
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = admin.create(TOKEN.format("weir-engine"), asked)["status"]["token"]
    (tmp_path / "token").write_text(token)
    cluster.save()
    machine = Machine(name, "nvidia.com/gpu", gpus=8, cpus=32, memory_gib=64, labels={"gpu": name})
    add_node(admin, node_manifest(machine))
    GpuClass.objects.update(node_labels={"gpu": name})
    Queue.objects.filter(name="research").update(namespace=name, access_group="lab-people")
    yield site
    workers.close_all()
    admin.delete(f"/api/v1/nodes/{name}")
    admin.close()


def refusals(worker: workers.HeldWorker) -> list[str]:
    """What a pass of the guardrails is refused, and why."""
    found = passed(worker)
    return [f"{f.path}: {f.detail}" for f in found if f.standing is GuardrailState.REFUSED]


def passed(worker: workers.HeldWorker) -> list[Finding]:
    """How all stands after a pass of the guardrails. What tests whose engine had every right left in
    namespaces of theirs is not this engine's to remove."""
    found = guard(Cluster.objects.get(), worker.link).findings
    return [
        f
        for f in found
        if not (f.namespace and f.standing is GuardrailState.REFUSED and f.wanted is None)
    ]


def enforce() -> None:
    Cluster.objects.update(mode=ClusterMode.ENFORCE)


def work(site: Site, name: str) -> dict[str, Any]:
    return build_job_manifest(
        name=name,
        queue="research",
        namespace=site.namespace,
        image="work",
        gpu_classes=list(GpuClass.objects.all()),
        gpus_per_pod=1,
        pods_min=1,
    )


def test_observe_manifest_is_enough_to_plan_and_grants_no_write(site: Site) -> None:
    assert site.lacks() == []
    assert eventually(lambda: run_cycle(site.cluster.pk).number)
    worker = workers.held_of(site.cluster, on_change=lambda: None)
    assert guard(site.cluster, worker.link).count(GuardrailState.MISSING)
    with pytest.raises(ApiError) as refused:
        worker.link.client.create("/api/v1/namespaces", {"metadata": {"name": "x"}})
    assert refused.value.status == 403


def test_right_that_an_older_manifest_lacks_is_named_and_the_rest_works(site: Site) -> None:
    """Rights of before Weir counted what runtime classes add to pods."""
    role = f"{RBAC}/clusterroles/weir-observe"
    rules = site.admin.get(role)["rules"]
    older = [rule for rule in rules if rule["apiGroups"] != ["node.k8s.io"]]
    site.admin.patch(role, {"rules": older})
    said = "Weir may not list or watch runtimeclasses.node.k8s.io to count what runtime classes add to pods."

    assert eventually(lambda: [i.sentence for i in site.lacks()]) == [said]
    assert eventually(lambda: run_cycle(site.cluster.pk).number)


def test_enforcing_without_its_manifest_is_named_as_missing(site: Site) -> None:
    enforce()
    said = [item.sentence for item in site.lacks() if item.topic == "permissions"]

    assert "Weir may not create or patch namespaces to keep the guardrails." in said
    assert any("leases.coordination.k8s.io in weir-system" in s for s in said)


def test_enforce_manifest_is_enough_to_guard_admit_and_tell(site: Site) -> None:
    site.install("enforce.yaml")
    enforce()
    assert eventually(lambda: not site.lacks())
    worker = workers.held_of(site.cluster, on_change=lambda: None)

    def out_of_step() -> list[str]:
        return [f.detail for f in passed(worker) if f.standing != GuardrailState.IN_STEP]

    # New rights take a moment to be known.
    eventually(lambda: not out_of_step(), seen=lambda: str(out_of_step()))

    jobs = f"/apis/batch/v1/namespaces/{site.namespace}/jobs"
    site.admin.create(jobs, work(site, "w"))

    def admitted() -> bool:
        assert not run_cycle(site.cluster.pk).failed
        return not site.admin.get(f"{jobs}/w")["spec"]["suspend"]

    eventually(admitted)
    events = site.admin.get(f"/api/v1/namespaces/{site.namespace}/events")["items"]
    assert "Admitted" in {e["reason"] for e in events}
    site.remove("enforce.yaml")


def test_thief_of_the_engines_token_gets_no_further_than_managed_namespaces(site: Site) -> None:
    """``lp-…-other`` stands, as a platform's own namespace does."""
    site.install("enforce.yaml")
    enforce()
    worker = workers.held_of(site.cluster, on_change=lambda: None)
    engine = worker.link.client
    eventually(lambda: not refusals(worker), seen=lambda: str(refusals(worker)))
    other = f"{site.namespace}-other"
    site.admin.create("/api/v1/namespaces", {"metadata": {"name": other}})
    system = "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical"
    theirs = {"metadata": {"labels": OFFERED}}
    eventually(lambda: "others made" in _refusal(engine, "PATCH", system, theirs))

    for refused in tried_by_a_thief(engine, other):
        assert refused
    site.admin.patch(f"/api/v1/namespaces/{other}", {"metadata": {"labels": OFFERED}})
    managed = {"metadata": {"labels": {"weir.dev/managed": "true"}}}
    assert not _refusal(engine, "PATCH", f"/api/v1/namespaces/{other}", managed)
    site.remove("enforce.yaml")


OFFERED = {"weir.dev/offered": "true"}


def tried_by_a_thief(engine: Client, other: str) -> Iterator[str]:
    """The refusal of each try, in a namespace of the cluster and in one of others."""
    theirs = {"metadata": {"labels": OFFERED}}
    for namespace in ("kube-system", other):
        home, roles = f"/api/v1/namespaces/{namespace}", f"{RBAC}/namespaces/{namespace}"
        for labels in ({"weir.dev/managed": "true"}, OFFERED):
            yield _refusal(engine, "PATCH", home, {"metadata": {"labels": labels}})
        for role in ("weir-engine-work", "weir-member", "cluster-admin"):
            for name in ("weir-engine", "weir", "x"):
                yield _refusal(
                    engine, "PATCH", f"{roles}/rolebindings/{name}", _bound(name, role), apply=True
                )
        yield _refusal(engine, "DELETE", f"{home}/pods/x", {})
        yield _refusal(engine, "GET", f"{home}/secrets", {})
        yield _refusal(engine, "PUT", f"/apis/apps/v1/namespaces/{namespace}/deployments/x", {})
        yield _refusal(engine, "PATCH", f"{home}/resourcequotas/weir", theirs)
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    yield _refusal(engine, "DELETE", f"{policies}/weir-engine", {})
    bindings = policies.removesuffix("ies") + "ybindings"
    yield _refusal(engine, "DELETE", f"{bindings}/weir-engine", {})
    yield _refusal(engine, "POST", f"{RBAC}/clusterrolebindings", {})
    yield _refusal(engine, "PATCH", f"{RBAC}/clusterroles/weir-engine-work", theirs)


def _bound(name: str, role: str) -> dict[str, Any]:
    subject = {"kind": "ServiceAccount", "name": "weir-engine", "namespace": "weir-system"}
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1", "kind": "RoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role}, "subjects": [subject],
    }  # fmt: skip


def _refusal(
    client: Client, method: str, path: str, body: dict[str, Any], *, apply: bool = False
) -> str:
    """Why the API server says no; empty where it would take it."""
    kind = {"content_type": APPLY_PATCH} if apply else {}
    query = {"dryRun": "All", **({"fieldManager": "x"} if apply else {})}
    try:
        client.request(
            method, path, body=body or None, query={} if method == "GET" else query, **kind
        )
    except (ForbiddenError, InvalidError) as refused:
        return refused.message
    return ""


def test_portal_account_acts_with_the_rights_of_the_persons_team(
    site: Site, tmp_path: Path
) -> None:
    site.install("enforce.yaml")
    site.install("portal.yaml")
    enforce()
    worker = workers.held_of(site.cluster, on_change=lambda: None)
    # New rights take a moment to be known.
    eventually(lambda: not refusals(worker), seen=lambda: str(refusals(worker)))
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = site.admin.create(TOKEN.format("weir-portal"), asked)["status"]["token"]
    (tmp_path / "portal").write_text(token)
    portal = Client.connect(
        Cluster(
            api_url=site.cluster.api_url,
            ca_file=site.cluster.ca_file,
            token_file=str(tmp_path / "portal"),
        )
    )
    jobs = f"/apis/batch/v1/namespaces/{site.namespace}/jobs"
    with pytest.raises(ApiError, match="forbidden"):
        portal.create(jobs, work(site, "w"), as_person=Person("weir:ann"))

    member = Person("weir:ann", ("weir:people",))
    eventually(lambda: _taken(portal, jobs, work(site, "w"), member))
    elsewhere = jobs.replace(site.namespace, "default")
    stray = work(site, "w")
    stray["metadata"]["namespace"] = "default"
    with pytest.raises(ApiError, match="forbidden"):
        portal.create(elsewhere, stray, as_person=member)
    refused_to_portal(portal, site)
    portal.close()
    site.remove("enforce.yaml")


def test_portal_account_labels_work_where_it_is_bound_and_changes_nothing_else(
    site: Site, tmp_path: Path
) -> None:
    """And may nothing before an admin of the cluster bound it."""
    site.install("portal.yaml")
    site.install("adopt.yaml")
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = site.admin.create(TOKEN.format("weir-portal"), asked)["status"]["token"]
    (tmp_path / "portal").write_text(token)
    site.cluster.portal_token_file = str(tmp_path / "portal")
    site.cluster.save()
    _run_without_a_queue(site)
    (found,) = [one for one in look(site.cluster) if one.namespace == site.namespace]
    author = make_user("boss")
    with pytest.raises(ServiceError, match="create rolebinding weir-adopter"):
        adopt(site.cluster, [found.uid], author=author)

    _bind_adopter(site)
    job = f"/apis/batch/v1/namespaces/{site.namespace}/jobs/w"
    portal = Client.connect(for_people(site.cluster))
    for patch, said in TOO_MUCH:
        eventually(lambda patch=patch, said=said: said in _refusal(portal, "PATCH", job, patch))
    portal.close()
    assert adopt(site.cluster, [found.uid], owner="ann", author=author) == [found]
    meta = site.admin.get(job)["metadata"]
    assert (meta["labels"][QUEUE], meta["annotations"][USER]) == ("research", "ann")
    assert not [one for one in look(site.cluster) if one.namespace == site.namespace]


TOO_MUCH = (
    ({"spec": {"parallelism": 9}}, "changes nothing that it is made of"),
    ({"metadata": {"labels": {QUEUE: "research", "x": "y"}}}, "and no other"),
    (
        {"metadata": {"annotations": {"x": "y"}, "labels": {QUEUE: "q"}}},
        "writes no other annotation",
    ),
)
"""Patches of the portal's account that the policy of adopt.yaml refuses, and what it says."""


def _run_without_a_queue(site: Site) -> None:
    """As work does that was there before Weir."""
    site.admin.create("/api/v1/namespaces", {"metadata": {"name": site.namespace}})
    body = work(site, "w")
    del body["metadata"]["labels"][QUEUE]
    body["spec"]["suspend"] = False
    site.admin.create(f"/apis/batch/v1/namespaces/{site.namespace}/jobs", body)
    pods = f"/api/v1/namespaces/{site.namespace}/pods"
    eventually(lambda: site.admin.get(pods)["items"])


def _bind_adopter(site: Site) -> None:
    """The line that the page says."""
    account = {"kind": "ServiceAccount", "name": "weir-portal", "namespace": "weir-system"}
    site.admin.create(
        f"{RBAC}/namespaces/{site.namespace}/rolebindings",
        {
            "metadata": {"name": ROLE},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": ROLE,
            },
            "subjects": [account],
        },
    )


def refused_to_portal(portal: Client, site: Site) -> None:
    """What a thief of the portal's token tries."""
    secrets = f"/api/v1/namespaces/{site.namespace}/secrets"
    admins = Person("kubernetes-admin", ("system:masters",))
    parts = Person("system:kube-controller-manager")
    tries: tuple[tuple[str, Person], ...] = (
        (secrets, Person()), (secrets, admins), (secrets, parts), ("/api/v1/nodes", parts),
        ("/api/v1/namespaces/kube-system/pods", parts),
        (f"/apis/batch/v1/namespaces/{site.namespace}/jobs", admins),
    )  # fmt: skip
    for path, person in tries:
        with pytest.raises(ApiError, match="forbidden"):
            portal.request("GET", path, as_person=person)


def _taken(client: Client, path: str, body: dict[str, Any], person: Person) -> bool:
    """RBAC learns of a new binding a moment after it was made."""
    try:
        client.create(path, body, as_person=person)
    except ApiError as error:
        if error.status != 403:
            raise
        return False
    return True
