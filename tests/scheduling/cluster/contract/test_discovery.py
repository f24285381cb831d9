"""What clients ask before anything else."""

from __future__ import annotations

import json

import pytest

from .api import Api


def test_groups_are_listed(server: Api) -> None:
    groups = server.call("GET", "/apis").expect(200)["groups"]
    names = {g["name"] for g in groups}
    assert {"batch", "coordination.k8s.io", "policy", "scheduling.k8s.io"} <= names


@pytest.mark.parametrize(
    ("path", "resources"),
    [
        ("/api/v1", {"pods", "pods/status", "pods/binding", "pods/eviction", "nodes", "events"}),
        ("/apis/batch/v1", {"jobs", "jobs/status"}),
        ("/apis/coordination.k8s.io/v1", {"leases"}),
    ],
)
def test_resources_of_a_group_are_listed(server: Api, path: str, resources: set[str]) -> None:
    listed = server.call("GET", path).expect(200)["resources"]
    assert resources <= {entry["name"] for entry in listed}


def test_version_and_health_are_told(server: Api) -> None:
    assert server.call("GET", "/version").expect(200)["gitVersion"].startswith("v1.")
    server.call("GET", "/readyz").expect(200)


def test_openapi_says_that_fields_are_checked_by_the_server(server: Api) -> None:
    body = server.call("GET", "/openapi/v3").expect(200)
    # A real server calls this document plain text.
    paths = (json.loads(body) if isinstance(body, bytes) else body)["paths"]
    assert "apis/batch/v1" in paths
