"""The operators of other kinds, as far as Weir sees them: pods for what runs, none for what is suspended."""

from __future__ import annotations

import copy
from collections.abc import Container, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings

from scheduling.cluster.adapters import ADAPTERS, Adapter
from scheduling.cluster.adapters.roles import Role
from scheduling.cluster.connection.client import Client, ConflictError, NotFoundError
from tests.scheduling.control_plane import ON
from tests.scheduling.kube import eventually

Json = dict[str, Any]

PODS = "/api/v1/namespaces/default/pods"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@cache
def definitions() -> tuple[Json, ...]:
    """The CustomResourceDefinitions that Weir's tests install."""
    folder = Path(settings.BASE_DIR) / "docker" / "kubernetes" / "crds"
    return tuple(yaml.safe_load(path.read_text()) for path in sorted(folder.glob("*.yaml")))


def install(kube: Client) -> None:
    """Install them where they are not, and wait until their kinds are served."""
    for definition in definitions():
        with suppress(ConflictError):
            kube.create(DEFINITIONS, definition)
    for definition in definitions():
        kind = definition["spec"]["names"]["kind"]
        eventually(partial(_is_served, kube, adapter_of(kind).list_path))


def _is_served(kube: Client, path: str) -> bool:
    try:
        return bool(kube.get(path))
    except NotFoundError:
        return False


def adapter_of(kind: str) -> Adapter:
    return next(a for a in ADAPTERS if a.kind == kind)


class Operator:
    """Plays the operator of one object: ``act`` brings its pods into line with it."""

    def __init__(self, kube: Client, kind: str, name: str) -> None:
        self._kube = kube
        self._adapter: Any = adapter_of(kind)
        self.path = self._adapter.path("default", name)

    def read(self) -> Json:
        return self._kube.get(self.path)

    def pods(self) -> list[Json]:
        meta = self.read()["metadata"]
        found: list[Json] = self._kube.get(PODS)["items"]
        return [
            pod
            for pod in found
            if pod["metadata"]["ownerReferences"][0]["uid"] == meta["uid"]
            or self._adapter.owner_name(pod) == meta["name"]
        ]

    def act(self, *, only: Container[str] | None = None) -> None:
        """``only`` names the roles whose pods are made by now."""
        if ON and self._adapter.kind == "Deployment":
            return  # Kubernetes does it itself.
        obj = self.read()
        wanted = {} if self._adapter.is_suspended(obj) else dict(self._wanted(obj, only))
        there = {p["metadata"]["name"] for p in self.pods()}
        for name in there - wanted.keys():
            self._kube.delete(f"{PODS}/{name}")
        for name in sorted(wanted.keys() - there):
            self._kube.create(PODS, wanted[name])

    def say(self, status: Json) -> None:
        obj = self.read()
        body = {"metadata": {"resourceVersion": obj["metadata"]["resourceVersion"]}}
        self._kube.patch(f"{self.path}/status", {**body, "status": status})

    def _wanted(self, obj: Json, only: Container[str] | None = None) -> Iterator[tuple[str, Json]]:
        for role in self._adapter.roles(obj):
            for number in range(role.count if only is None or role.name in only else 0):
                name = f"{obj['metadata']['name']}-{role.name}-{number}".lower()
                yield name, self._pod(obj, role, name)

    def _pod(self, obj: Json, role: Role, name: str) -> Json:
        meta = obj["metadata"]
        owner = {
            "apiVersion": obj["apiVersion"],
            "kind": obj["kind"],
            "name": meta["name"],
            "uid": meta["uid"],
            "controller": True,
        }
        spec = copy.deepcopy(role.pod)
        for container in spec["containers"]:
            container.setdefault("name", "main")
            container.setdefault("image", "work")
        for patch in obj["spec"].get("runtimePatches") or []:
            (job,) = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
            spec |= job["template"]["spec"]["template"]["spec"]
        spec["terminationGracePeriodSeconds"] = 0
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "ownerReferences": [owner]},
            "spec": spec,
        }
