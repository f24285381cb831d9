"""The engine's account is kept to managed namespaces by a policy that it may not write, whatever RBAC says.

Here it holds every right there is, so the policy alone stands in its way; what RBAC leaves it is tried in
``tests/scheduling/services/test_least_privilege.py``.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

from scheduling.cluster.connection.client import ConflictError, NotFoundError
from tests.scheduling.kube import eventually
from tests.scheduling.services.guardrails.lab import Lab

from .people import Member, account

Json = dict[str, Any]
RBAC = "/apis/rbac.authorization.k8s.io/v1"
POLICIES = "/apis/admissionregistration.k8s.io/v1"
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
ENGINE = account("weir-system", "weir-engine")
MANAGED, OFFERED = "weir.dev/managed", "weir.dev/offered"


@pytest.fixture
def engine(lab: Lab) -> Iterator[Member]:
    text = (Path(settings.BASE_DIR) / "docker/kubernetes/enforce.yaml").read_text()
    for body in yaml.safe_load_all(text):
        if body["kind"] in PLURALS:
            with suppress(ConflictError):
                lab.kube.create(f"{POLICIES}/{PLURALS[body['kind']]}", body)
    name = f"thief-{uuid.uuid4().hex[:8]}"
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": ENGINE.name}
    reference = {**subject, "kind": "ClusterRole", "name": "cluster-admin"}
    body = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
    lab.kube.create(f"{RBAC}/clusterrolebindings", body)
    thief, home = Member(lab, ENGINE), standing(lab)
    # A try that came before the policy would have made the namespace a managed one.
    eventually(lambda: thief.tries_edit(home, labelled(MANAGED)))
    yield thief
    with suppress(NotFoundError):
        lab.kube.delete(f"{RBAC}/clusterrolebindings/{name}")


def standing(lab: Lab, **labels: str) -> str:
    """The address of a namespace that somebody else made."""
    name = f"lab-{uuid.uuid4().hex[:8]}"
    lab.kube.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    return f"/api/v1/namespaces/{name}"


def labelled(label: str) -> Json:
    return {"metadata": {"labels": {label: "true"}}}


def bound(home: str) -> Json:
    name = home.rpartition("/")[2]
    subject = {"kind": "ServiceAccount", "name": "weir-engine", "namespace": "weir-system"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "weir-member"}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "roleRef": role,
        "metadata": {"name": "weir-engine", "namespace": name}, "subjects": [subject],
    }  # fmt: skip


def binds(engine: Member, home: str) -> str:
    path = f"{RBAC}/namespaces/{home.rpartition('/')[2]}/rolebindings"
    return engine._asks("POST", path, bound(home))


@pytest.mark.parametrize("label", [MANAGED, OFFERED])
def test_engine_takes_no_namespace_that_stands_and_offers_itself_none(
    lab: Lab, engine: Member, label: str
) -> None:
    home = standing(lab)
    offer = f"kubectl label namespace {home.rpartition('/')[2]} weir.dev/offered=true"
    assert offer in engine.edits(home, labelled(label))
    assert not lab.kube.get(home)["metadata"].get("labels", {}).get(label)


def test_engine_takes_a_namespace_that_was_offered_and_binds_roles_in_it(
    lab: Lab, engine: Member
) -> None:
    home = standing(lab, **{OFFERED: "true"})
    assert engine.edits(home, labelled(MANAGED)) == ""
    eventually(lambda: binds(engine, home) == "")


@pytest.mark.parametrize(
    "labels", [{}, {OFFERED: "true"}], ids=["not offered", "offered, not taken"]
)
def test_engine_binds_no_role_outside_managed_namespaces(
    lab: Lab, engine: Member, labels: dict[str, str]
) -> None:
    home = standing(lab, **labels)
    assert "in managed namespaces only" in binds(engine, home)


def test_engine_makes_a_namespace_of_its_own(lab: Lab, engine: Member) -> None:
    name = f"lab-{uuid.uuid4().hex[:8]}"
    body = {"metadata": {"name": name, "labels": {MANAGED: "true"}}}
    assert engine._asks("POST", "/api/v1/namespaces", body) == ""
    eventually(lambda: binds(engine, f"/api/v1/namespaces/{name}") == "")


def test_engine_changes_no_priority_class_of_others(lab: Lab, engine: Member) -> None:
    name = f"theirs-{uuid.uuid4().hex[:8]}"
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    lab.kube.create(path, {"metadata": {"name": name}, "value": 7})
    edit = {"metadata": {"labels": {MANAGED: "true"}}}
    assert "that others made" in engine.edits(f"{path}/{name}", edit)
    assert "that others made" in engine.deletes(f"{path}/{name}")


def test_administrators_are_not_kept(lab: Lab, engine: Member) -> None:
    home = standing(lab)
    assert engine.edits(home, labelled(MANAGED))
    lab.kube.patch(home, labelled(MANAGED))
    assert lab.kube.get(home)["metadata"]["labels"][MANAGED] == "true"
