"""What a cluster lacks, said in words with a remedy."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from scheduling.cluster.connection.client import Client
from scheduling.cluster.guardrails.rights import Need
from scheduling.models import Cluster, ClusterMode, GpuClass, Queue
from scheduling.services.clusters import checkup, tokens
from scheduling.services.clusters.checkup import check
from scheduling.services.clusters.gaps import Grade, Item
from scheduling.services.clusters.guardrails import guard
from scheduling.services.worker import cluster_turns as workers
from tests.scheduling.kube import World, node


def found(world: World, grade: Grade = Grade.MISSING) -> list[Item]:
    items = check(Cluster.objects.get(pk=world.cluster.pk))
    assert all(item.remedy for item in items if item.grade is Grade.MISSING)
    return [item for item in items if item.grade is grade]


def answer(monkeypatch: pytest.MonkeyPatch, path: str, body: Any) -> None:
    """Have the API server answer GET ``path`` with ``body``."""
    request = Client.request

    def asked(self: Client, method: str, at: str, **more: Any) -> Any:
        return body if (method, at) == ("GET", path) else request(self, method, at, **more)

    monkeypatch.setattr(Client, "request", asked)


def refuse(monkeypatch: pytest.MonkeyPatch, *refused: tuple[str, str]) -> None:
    """Have RBAC refuse these (verb, resource)."""

    def may(client: Client, need: Need, verb: str) -> bool:
        return (verb, need.resource) not in refused

    monkeypatch.setattr(checkup, "_may", may)


@pytest.fixture
def role(world: World) -> str:
    """What enforce.yaml gives people in managed namespaces."""
    role = {"metadata": {"name": "weir-member"}, "rules": []}
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    world.kube.create(roles, role)
    return f"{roles}/weir-member"


@pytest.mark.usefixtures("role")
def test_cluster_with_everything_lacks_nothing(world: World) -> None:
    assert found(world) == []
    said = [item.sentence for item in found(world, Grade.GOOD)]
    assert "h100: 16 GPUs on 2 nodes." in said
    assert any(s.startswith("Kubernetes v1.3") for s in said)


@pytest.mark.usefixtures("role")
def test_what_the_engine_may_is_not_said_by_the_account_of_the_web_server(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, ("update", "jobs"))
    monkeypatch.setattr(checkup, "is_asked_as_portal", lambda cluster: True)

    assert found(world) == []
    (item,) = (one for one in found(world, Grade.ADVICE) if one.topic == "permissions")
    assert item.sentence == checkup.OF_ENGINE
    assert "exec deployment/weir-engine -- python manage.py doctor" in item.remedy


@pytest.mark.parametrize(
    ("account", "row", "as_portal"),
    [
        ("weir-portal", {}, True),
        ("weir-engine", {}, False),
        ("weir-portal", {"api_url": "https://10.0.0.1:6443"}, False),
    ],
)
def test_account_is_that_of_the_token_in_the_pod(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    account: str,
    row: dict[str, str],
    as_portal: bool,
) -> None:
    claims = json.dumps({"sub": f"system:serviceaccount:weir-system:{account}"}).encode()
    token = tmp_path / "token"
    token.write_text(f"e30.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.x")
    monkeypatch.setattr(tokens, "SERVICE_TOKEN_FILENAME", str(token))

    assert checkup.is_asked_as_portal(Cluster(name="x", **row)) is as_portal


def test_guardrails_that_stand_are_counted(world: World) -> None:
    guard(world.cluster, workers.held_of(world.cluster, on_change=lambda: None).link)
    said = [item.sentence for item in found(world, Grade.GOOD)]
    assert any("stand as they should" in s for s in said)


def test_observed_cluster_hears_what_enforcing_would_write(world: World) -> None:
    Cluster.objects.update(mode=ClusterMode.OBSERVE)
    said = [item.sentence for item in found(world, Grade.ADVICE)]
    assert any(s.startswith("Enforcing would write") for s in said)


def test_permission_to_enforce_is_needed_where_weir_enforces(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard(world.cluster, workers.held_of(world.cluster, on_change=lambda: None).link)
    refuse(monkeypatch, ("update", "jobs"), ("create", "leases"), ("update", "leases"))
    items = [item for item in found(world) if item.topic == "permissions"]

    assert [item.sentence for item in items] == [
        "Weir may not create or update leases.coordination.k8s.io in weir-system "
        "so that one worker writes.",
        "Weir may not update jobs.batch in default to admit and evict work of kind Job.",
    ]
    assert items[0].remedy == "Apply docker/kubernetes/enforce.yaml."


def test_permission_to_enforce_is_counted_where_weir_observes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    Cluster.objects.update(mode=ClusterMode.OBSERVE)
    refuse(monkeypatch, ("create", "namespaces"), ("create", "leases"))
    (item,) = [item for item in found(world, Grade.ADVICE) if item.topic == "permissions"]

    assert item.sentence == "2 permissions that enforcing needs are not granted yet."


@pytest.mark.usefixtures("role")
def test_permission_on_a_kind_that_is_not_there_is_not_asked_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, ("update", "jobsets"), ("watch", "rayjobs"))
    # A control plane that several tests share may have them by now.
    serves = checkup._serves
    monkeypatch.setattr(checkup, "_serves", lambda api, path: "batch" in path and serves(api, path))
    assert found(world) == []


def test_permission_to_observe_is_always_needed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    Cluster.objects.update(mode=ClusterMode.OBSERVE)
    refuse(monkeypatch, ("list", "nodes"))
    (item,) = found(world)
    assert item.sentence == "Weir may not list nodes to see the GPUs there are."


@pytest.mark.parametrize(
    ("minor", "grade", "words"),
    [
        ("29", Grade.MISSING, "older than 1.30"),
        ("31+", Grade.ADVICE, "cannot change the resource"),
        ("36", Grade.GOOD, "Kubernetes v1.36."),
        ("37", Grade.GOOD, "Kubernetes v1.37."),
        ("38", Grade.ADVICE, "newer than 1.37"),
    ],
)
def test_version_is_judged(
    world: World, monkeypatch: pytest.MonkeyPatch, minor: str, grade: Grade, words: str
) -> None:
    version = {"major": "1", "minor": minor, "gitVersion": f"v1.{minor}"}
    answer(monkeypatch, "/version", version)
    (item,) = [item for item in found(world, grade) if item.topic == "version"]
    assert words in item.sentence


def test_cluster_that_does_not_answer_says_only_that(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduling.cluster.connection.client.BACK_OFF_S", (0.0, 0.0))
    Cluster.objects.update(api_url="http://127.0.0.1:9")
    (item,) = check(Cluster.objects.get())
    assert (item.grade, item.topic) == (Grade.MISSING, "connection")


def test_kubeconfig_that_cannot_be_read_is_no_traceback(db: None) -> None:
    (item,) = check(Cluster(name="x", kubeconfig="/nowhere/config"))
    assert (item.grade, item.topic) == (Grade.MISSING, "connection")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"node_labels": {"gpu": "b200"}}, "none has gpu=b200"),
        ({"resource_name": "amd.com/gpu"}, "2 nodes with gpu=h100, but none offers amd.com/gpu"),
    ],
)
def test_class_without_gpus_is_missing(world: World, fields: dict[str, Any], words: str) -> None:
    GpuClass.objects.update(**fields)
    assert any(words in item.sentence for item in found(world))


def test_nodes_of_no_class_are_noted_and_of_two_are_a_fault(world: World) -> None:
    world.kube.create("/api/v1/nodes", node("stray", gpu="l40"))
    assert any("Node stray has GPUs" in i.sentence for i in found(world, Grade.ADVICE))

    GpuClass.objects.create(cluster=world.cluster, name="any", node_labels={})
    assert any("belong to two classes" in item.sentence for item in found(world))


def test_cluster_without_classes_or_queues_shares_nothing(world: World) -> None:
    Queue.objects.exclude(parent=None).delete()
    GpuClass.objects.all().delete()
    assert [item.topic for item in found(world)] == ["GPU classes", "queues"]


def test_group_without_the_member_role_is_missing(world: World) -> None:
    Queue.objects.exclude(parent=None).update(access_group="lab")
    assert any("weir-member" in item.sentence for item in found(world))

    role = {"metadata": {"name": "weir-member"}, "rules": []}
    world.kube.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
    assert found(world) == []


POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
HELD_TO = {"kind": "ValidatingAdmissionPolicy", "metadata": {"name": "weir-engine"}, "spec": {}}
"""What enforce.yaml brings: the engine takes no namespace that stands and is not offered."""


@pytest.mark.parametrize(
    ("mode", "grade"), [(ClusterMode.ENFORCE, Grade.MISSING), (ClusterMode.OBSERVE, Grade.ADVICE)]
)
def test_namespaces_of_queues_that_stand_are_to_be_offered_by_one_line(
    world: World, monkeypatch: pytest.MonkeyPatch, mode: ClusterMode, grade: Grade
) -> None:
    answer(monkeypatch, f"{POLICIES}/weir-engine", HELD_TO)
    Cluster.objects.update(mode=mode)
    Queue.objects.update(namespace="")
    names = [f"speech-{mode}", f"vision-{mode}"]
    root = Queue.objects.get(parent=None)
    for name in names:
        Queue.objects.create(cluster=world.cluster, parent=root, name=name, namespace=name)
        world.kube.create("/api/v1/namespaces", {"metadata": {"name": name}})

    (item,) = [one for one in found(world, grade) if one.topic == "namespaces"]
    assert ", ".join(names) in item.sentence
    assert item.command == f"kubectl label namespace {' '.join(names)} weir.dev/offered=true"
    assert item.command in item.remedy

    for name in names:
        offered = {"metadata": {"labels": {"weir.dev/offered": "true"}}}
        world.kube.patch(f"/api/v1/namespaces/{name}", offered)
    assert not [one for one in found(world, grade) if one.topic == "namespaces"]


def test_account_that_no_policy_holds_needs_no_offer_to_enforce(world: World) -> None:
    Queue.objects.exclude(parent=None).update(namespace="stands")
    world.kube.create("/api/v1/namespaces", {"metadata": {"name": "stands"}})

    assert not [one for one in found(world) if one.topic == "namespaces"]
