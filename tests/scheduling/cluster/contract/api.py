"""A tiny raw client: what goes over the wire, nothing hidden."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlencode, urlsplit

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclass
class Answer:
    """Status code, headers and parsed body."""

    code: int
    headers: dict[str, str]
    body: Any

    def expect(self, code: int) -> Any:
        """Return the body, or fail showing what came instead of `code`."""
        assert self.code == code, f"{self.code} instead of {code}: {self.body}"
        return self.body


class Api:
    """One keep-alive connection to an API server."""

    def __init__(self, url: str, token: str = "", ca: str = "", namespace: str = "") -> None:
        self.url, self.token, self.ca, self.namespace = url, token, ca, namespace
        self._connection = self._connect()

    def _connect(self) -> HTTPConnection:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=self.ca or None)
            return HTTPSConnection(parts.hostname, parts.port, timeout=30, context=context)
        return HTTPConnection(parts.hostname, parts.port, timeout=30)

    def _headers(self, headers: dict[str, str]) -> dict[str, str]:
        return {**({"Authorization": f"Bearer {self.token}"} if self.token else {}), **headers}

    def call(
        self, method: str, path: str, body: Any = None, kind: str = "application/json",
        *, headers: dict[str, str] | None = None, **query: Any,
    ) -> Answer:  # fmt: skip
        """Send one request; `body` may be bytes to be sent as they are."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        target = f"{path}?{urlencode(query)}" if query else path
        sent = self._headers({**({"Content-Type": kind} if data else {}), **(headers or {})})
        self._connection.request(method, target, data, sent)
        response = self._connection.getresponse()
        raw = response.read()
        is_json = response.headers.get("Content-Type", "").startswith("application/json")
        parsed = json.loads(raw) if is_json else raw
        return Answer(response.status, dict(response.headers), parsed)

    def path(self, plural: str, name: str = "", sub: str = "") -> str:
        """Return the path of a collection, object or subresource in the test's namespace."""
        root = ROOTS.get(plural, "/api/v1")
        scope = "" if plural in CLUSTERED else f"/namespaces/{self.namespace}"
        return "/".join(filter(None, (f"{root}{scope}/{plural}", name, sub)))

    def create(self, plural: str, body: Any, **query: Any) -> Any:
        """Create an object that must be accepted."""
        return self.call("POST", self.path(plural), body, **query).expect(201)

    def get(self, plural: str, name: str = "", **query: Any) -> Any:
        """Read an object or list that must be there."""
        return self.call("GET", self.path(plural, name), **query).expect(200)

    def patch(self, plural: str, name: str, change: Any, kind: str = MERGE, sub: str = "") -> Any:
        """Patch an object that must take it."""
        return self.call("PATCH", self.path(plural, name, sub), change, kind).expect(200)

    def delete(self, plural: str, name: str, **options: Any) -> Any:
        """Delete an object that must be there."""
        return self.call("DELETE", self.path(plural, name), options or None).expect(200)

    def apply(self, plural: str, config: Any, manager: str, **query: Any) -> Answer:
        """Apply `config` server-side."""
        path = self.path(plural, config["metadata"]["name"])
        return self.call("PATCH", path, config, APPLY, fieldManager=manager, **query)

    @contextmanager
    def watch(self, plural: str, timeout: int = 10, **query: Any) -> Iterator[Iterator[Any]]:
        """Yield an iterator over the events of a watch on its own connection."""
        connection = self._connect()
        target = urlencode({"watch": "true", "timeoutSeconds": timeout, **query})
        connection.request("GET", f"{self.path(plural)}?{target}", headers=self._headers({}))
        response = connection.getresponse()
        assert response.status == 200, response.read()
        try:
            yield events(response)
        finally:
            connection.close()


def events(response: HTTPResponse) -> Iterator[Any]:
    """Yield the lines of a watch as objects."""
    while line := response.readline():
        yield json.loads(line)


ROOTS = {
    "deployments": "/apis/apps/v1",
    "jobs": "/apis/batch/v1",
    "leases": "/apis/coordination.k8s.io/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
    "priorityclasses": "/apis/scheduling.k8s.io/v1",
    "runtimeclasses": "/apis/node.k8s.io/v1",
    "selfsubjectaccessreviews": "/apis/authorization.k8s.io/v1",
    "mutatingadmissionpolicies": "/apis/admissionregistration.k8s.io/v1",
    "mutatingadmissionpolicybindings": "/apis/admissionregistration.k8s.io/v1",
    "validatingadmissionpolicies": "/apis/admissionregistration.k8s.io/v1",
    "validatingadmissionpolicybindings": "/apis/admissionregistration.k8s.io/v1",
}
CLUSTERED = (
    "namespaces", "nodes", "priorityclasses", "runtimeclasses", "selfsubjectaccessreviews",
    "validatingadmissionpolicies", "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
)  # fmt: skip


def eventually(probe: Callable[[], Any], within: float = 60.0) -> Any:
    """Return the first true answer of `probe`; fail with the last one after `within` seconds."""
    end = time.monotonic() + within
    while True:
        found = probe()
        if found:
            return found
        assert time.monotonic() < end, f"still {found!r}"
        time.sleep(0.02)


def enforce_quota(api: Api, name: str, hard: dict[str, str]) -> None:
    """A ResourceQuota, from when on it is enforced: a controller has to count what is there before."""
    api.create("resourcequotas", {"metadata": {"name": name}, "spec": {"hard": hard}})
    eventually(
        lambda: (
            api.get("resourcequotas", name).get("status", {}).get("used", {}).keys() == hard.keys()
        )
    )


def config_map(name: str, **data: str) -> dict[str, Any]:
    """Return the simplest object there is."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    """Return a pod that no node will ever run, unless `spec` says otherwise."""
    container = {"name": "main", "image": "busybox", "command": ["sleep", "3600"]}
    given = {"containers": [container], "nodeSelector": {"weir.dev/absent": "yes"}, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": given}


def job(name: str, seconds: int = 3600, **spec: Any) -> dict[str, Any]:
    """Return a Job whose pods run for `seconds`, on a real node and on a pretended one."""
    container = {"name": "main", "image": "busybox", "command": ["sleep", str(seconds)]}
    template = {
        "metadata": {"annotations": {"weir.dev/run-seconds": str(seconds)}},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        },
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def deployment(name: str) -> dict[str, Any]:
    """Return a Deployment without replicas."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod(name)["spec"]}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec,
    }  # fmt: skip


def lease(name: str, holder: str) -> dict[str, Any]:
    """Return a lease."""
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15}
    return {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
        "spec": spec,
    }  # fmt: skip


def condition(body: Any, kind: str) -> str:
    """Return the status of a condition, "" if it is not there."""
    found = [c for c in body.get("status", {}).get("conditions") or () if c["type"] == kind]
    return str(found[0]["status"]) if found else ""


def causes(status: Any) -> dict[str, str]:
    """Return field -> reason of a refusal."""
    return {c.get("field", ""): c.get("reason", "") for c in status["details"].get("causes", ())}
