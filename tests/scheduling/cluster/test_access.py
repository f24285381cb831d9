"""The manifests grant what the code does, no more and no less."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from django.conf import settings

from scheduling.cluster.adapters import ADAPTERS
from scheduling.cluster.guardrails import rights as access
from scheduling.cluster.guardrails.manifests import (
    ENGINE_ROLE,
    MEMBER_ROLE,
    PORTAL_ROLE,
    policy_names,
)
from scheduling.cluster.guardrails.rights import Need
from scheduling.cluster.vocabulary import people
from scheduling.services.clusters.adopting import ROLE

FOLDER = Path(settings.BASE_DIR) / "docker" / "kubernetes"
FILES = sorted(FOLDER.glob("*.yaml"))


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


def granted(file: str, *roles: str) -> set[tuple[str, str, str, str]]:
    """(group, resource, verb, the names it is limited to) that the roles of ``file`` grant."""
    return {
        (group, resource, verb, ",".join(sorted(rule.get("resourceNames", ()))))
        for role in documents(FOLDER / file)
        if role["kind"] in ("Role", "ClusterRole") and role["metadata"]["name"] in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def needed(needs: Iterable[Need]) -> set[tuple[str, str, str, str]]:
    return {
        (n.group, n.resource, verb, ",".join(sorted(n.names))) for n in needs for verb in n.verbs
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_manifest_fits_the_schema_of_its_kind(path: Path) -> None:
    for document in documents(path):
        kubernetes_validate.validate(document, "1.36", strict=True)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_manifest_grants_nothing_by_wildcard(path: Path) -> None:
    assert "*" not in path.read_text()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_binding_names_a_role_and_an_account_that_are_made(path: Path) -> None:
    made = {(d["kind"], d["metadata"]["name"]) for each in FILES for d in documents(each)}
    for binding in (d for d in documents(path) if d["kind"].endswith("RoleBinding")):
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in made
        assert {(s["kind"], s["name"]) for s in binding["subjects"]} <= made


def test_observe_manifest_grants_what_observing_needs() -> None:
    assert granted("observe.yaml", "weir-observe") == needed(access.observing())


def test_observe_manifest_grants_no_write() -> None:
    verbs = {verb for _, _, verb, _ in granted("observe.yaml", "weir-observe")}
    assert verbs == {"get", "list", "watch"}


def test_enforce_manifest_grants_what_enforcing_needs() -> None:
    assert granted("enforce.yaml", "weir-enforce", "weir-lease") == needed(access.enforcing())


def test_engine_writes_work_in_managed_namespaces_alone() -> None:
    """By a ClusterRole that no manifest binds: the engine binds itself to it, namespace by namespace."""
    assert granted("enforce.yaml", ENGINE_ROLE) == needed(access.working())
    bindings = [d for path in FILES for d in documents(path) if d["kind"].endswith("Binding")]
    assert ENGINE_ROLE not in {d.get("roleRef", {}).get("name") for d in bindings}


def test_engine_may_bind_roles_by_name_alone_and_escalate_none() -> None:
    everything = granted("enforce.yaml", "weir-enforce", ENGINE_ROLE, "weir-lease")
    verbs = {(verb, names) for _, _, verb, names in everything if verb in ("bind", "escalate")}
    assert verbs == {("bind", ENGINE_ROLE), ("bind", f"{MEMBER_ROLE},{PORTAL_ROLE}")}


def test_policy_that_keeps_the_engine_is_none_that_the_engine_may_write() -> None:
    kept = [d for d in documents(FOLDER / "enforce.yaml") if "AdmissionPolicy" in d["kind"]]
    assert [d["kind"] for d in kept] == [
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ]
    own = {name for names in policy_names().values() for name in names}
    assert not own & {d["metadata"]["name"] for d in kept}
    for _, resource, _, names in granted("enforce.yaml", "weir-enforce"):
        assert names or "admission" not in resource


def test_portal_manifest_grants_what_submitting_needs() -> None:
    assert granted("portal.yaml", "weir-portal") == needed(access.submitting())
    assert granted("portal.yaml", "weir-portal-work") == needed(access.acting())
    # Such a server knows no bounds of what is done in a name.
    users = Need("", "users", ("impersonate",), "")
    group = Need("", "groups", ("impersonate",), "", names=(people.GROUP,))
    assert granted("portal-before-1.36.yaml", "weir-portal-before") == needed([users, group])


def test_adopting_is_granted_to_nobody_by_a_manifest() -> None:
    assert granted("adopt.yaml", ROLE) == needed(access.adopting())
    bound = {d["roleRef"]["name"] for f in FILES for d in documents(f) if "roleRef" in d}
    assert ROLE not in bound


def test_lease_is_granted_in_its_namespace_alone() -> None:
    role = next(
        d for d in documents(FOLDER / "enforce.yaml") if d["metadata"]["name"] == "weir-lease"
    )
    lease = next(n for n in access.enforcing() if n.resource == "leases")
    assert (role["kind"], role["metadata"]["namespace"]) == ("Role", lease.namespace)


def test_member_role_is_the_one_that_teams_are_bound_to() -> None:
    made = {d["metadata"]["name"] for d in documents(FOLDER / "enforce.yaml")}
    assert MEMBER_ROLE in made


def test_members_may_create_every_kind_of_work() -> None:
    grants = granted("enforce.yaml", MEMBER_ROLE)
    for adapter in ADAPTERS:
        assert (*access.resource_of(adapter.list_path), "create", "") in grants
