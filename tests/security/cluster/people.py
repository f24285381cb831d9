"""Who attacks: a member of a team, with the rights that Weir gives a team in its namespace."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings

from scheduling.cluster.connection.client import (
    APPLY_PATCH,
    ApiError,
    Client,
    ConflictError,
    ForbiddenError,
    InvalidError,
    Person,
)
from tests.scheduling.kube import eventually
from tests.scheduling.manifests import template
from tests.scheduling.operators import adapter_of
from tests.scheduling.services.guardrails.lab import Lab, job

Json = dict[str, Any]

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
TEAM = ("lab-people", "system:authenticated")
ANN = Person("ann", TEAM)
PATHS = {
    "Pod": "/api/v1/namespaces/{}/pods",
    "CronJob": "/apis/batch/v1/namespaces/{}/cronjobs",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "DaemonSet": "/apis/apps/v1/namespaces/{}/daemonsets",
    "ReplicaSet": "/apis/apps/v1/namespaces/{}/replicasets",
}
"""Paths of kinds that have no adapter, by namespace."""


def account(namespace: str, name: str) -> Person:
    """A service account as the API server sees it."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return Person(f"system:serviceaccount:{namespace}:{name}", (*groups, "system:authenticated"))


def cpu_pod(lab: Lab, priority: str = "system-node-critical") -> Json:
    meta = {"name": "p", "namespace": lab.namespace}
    spec = template(0)["spec"] | {"priorityClassName": priority}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def cpu_work(lab: Lab, priority: str = "system-node-critical") -> Json:
    body: Json = job(lab, queue="", gpus=0, suspend=False)
    body["spec"]["template"]["spec"] |= {"priorityClassName": priority}
    return body


def cpu_service(lab: Lab, priority: str = "system-node-critical") -> Json:
    """A Deployment without pods."""
    body = job(lab, queue="", gpus=0) | {"apiVersion": "apps/v1", "kind": "Deployment"}
    body["spec"] = {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "work"}},
        "template": template(0) | {"metadata": {"labels": {"app": "work"}}},
    }
    body["spec"]["template"]["spec"] |= {"priorityClassName": priority, "restartPolicy": "Always"}
    return body


def install_role(kube: Client) -> None:
    """The ClusterRole that enforce.yaml gives teams."""
    manifests = Path(settings.BASE_DIR) / "docker" / "kubernetes" / "enforce.yaml"
    for body in yaml.safe_load_all(manifests.read_text()):
        if body["metadata"]["name"] == "weir-member":
            with suppress(ConflictError):
                kube.create(ROLES, body)


def path_of(kind: str, namespace: str) -> str:
    return PATHS[kind].format(namespace) if kind in PATHS else adapter_of(kind).path(namespace, "")


@dataclass(frozen=True)
class Member:
    """``person`` at work in the namespace of ``lab``; every verb answers with the refusal, or nothing."""

    lab: Lab
    person: Person = ANN

    def path(self, body: Json) -> str:
        return path_of(body["kind"], body["metadata"]["namespace"])

    def wait_until_bound(self) -> None:
        """The API server takes policies and role bindings up one by one."""
        eventually(lambda: "has to name a queue" in self.tries(job(self.lab, queue="")))
        for body in (cpu_work(self.lab), cpu_pod(self.lab), cpu_service(self.lab)):
            # Until then it goes by the classes of the lab before.
            eventually(lambda body=body: self.lab.priority in self.tries(body))
        eventually(lambda: self.tries(job(self.lab)) == "")

    def tries(self, body: Json) -> str:
        """To create ``body``, which is not kept."""
        return self._asks("POST", self.path(body), body, dryRun="All")

    def creates(self, body: Json) -> str:
        return self._asks("POST", self.path(body), body)

    def edits(self, path: str, patch: Json) -> str:
        return self._asks("PATCH", path, patch)

    def tries_edit(self, path: str, patch: Json) -> str:
        """To edit what is there, which stays as it is."""
        return self._asks("PATCH", path, patch, dryRun="All")

    def applies(self, body: Json, **query: str) -> str:
        path = f"{self.path(body)}/{body['metadata']['name']}"
        query = {"fieldManager": "kubectl", **query}
        return self._asks("PATCH", path, body, content_type=APPLY_PATCH, **query)

    def replaces(self, path: str, body: Json) -> str:
        return self._asks("PUT", path, body)

    def deletes(self, path: str, **options: Any) -> str:
        return self._asks("DELETE", path, options or None)

    def _asks(
        self, method: str, path: str, body: Json | None, *, content_type: str = "", **query: str
    ) -> str:
        try:
            self.lab.kube.request(
                method,
                path,
                query=query,
                body=body,
                as_person=self.person,
                content_type=content_type,
            )
        except (ForbiddenError, InvalidError) as refused:
            return refused.message
        except ApiError as failed:
            return f"{failed.status} {failed.message}"
        return ""


def let_edit(lab: Lab, person: Person) -> Person:
    """``person``, who may edit all there is to edit in the lab's namespace."""
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": person.name}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    body = {"metadata": {"name": "editor"}, "roleRef": role, "subjects": [subject]}
    root = "/apis/rbac.authorization.k8s.io/v1"
    lab.kube.create(f"{root}/namespaces/{lab.namespace}/rolebindings", body)
    probe = {"metadata": {"name": "w", "namespace": lab.namespace}, "kind": "StatefulSet"}
    eventually(lambda: "cannot create" not in Member(lab, person).tries(probe))
    return person
