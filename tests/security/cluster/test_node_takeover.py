"""A pod that reaches for its node: everything on that node, and all that its kubelet may do, would be its."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scheduling.cluster.connection.client import ApiError
from scheduling.models import Queue
from tests.scheduling.kube import eventually
from tests.scheduling.services.guardrails.lab import Lab, Pass

Refused = Callable[[Any], str]
LEVEL = "pod-security.kubernetes.io/enforce"


def pod(**spec: Any) -> Any:
    container = {"name": "main", "image": "work", **spec.pop("container", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "taker"},
        "spec": {"containers": [container], **spec},
    }


@pytest.fixture
def refused(lab: Lab, guarded: Pass) -> Callable[[Any], str]:
    """What refuses a member's pod once the guardrails are in force; fails where nothing does in time."""
    guarded()

    def attempt(pod: Any) -> str:
        path = f"{lab.home}/pods"
        try:
            lab.kube.request("POST", path, query={"dryRun": "All"}, body=pod)
        except ApiError as refusal:
            return (
                refusal.message if "error looking up service account" not in refusal.message else ""
            )
        return ""

    return lambda pod: str(eventually(lambda: attempt(pod)))


ATTACKS = {
    "privileged container": pod(container={"securityContext": {"privileged": True}}),
    "the node's files": pod(volumes=[{"name": "root", "hostPath": {"path": "/"}}]),
    "the node's network": pod(hostNetwork=True),
    "the node's processes": pod(hostPID=True),
    "the node's memory": pod(hostIPC=True),
    "all capabilities": pod(container={"securityContext": {"capabilities": {"add": ["ALL"]}}}),
    "a port of the node": pod(container={"ports": [{"containerPort": 22, "hostPort": 22}]}),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_pod_that_reaches_for_its_node_is_refused(refused: Refused, attack: str) -> None:
    assert "violates PodSecurity" in refused(ATTACKS[attack])


def test_restricted_team_may_not_even_run_as_root(lab: Lab, refused: Refused) -> None:
    Queue.objects.filter(name="research").update(pod_security="restricted")
    lab.kube.patch(lab.home, {"metadata": {"labels": {LEVEL: "restricted"}}})
    assert "runAsNonRoot" in refused(pod())


def test_level_is_back_with_the_next_pass_whoever_loosened_it(
    lab: Lab, guarded: Pass, refused: Refused
) -> None:
    lab.kube.patch(lab.home, {"metadata": {"labels": {LEVEL: None}}})
    guarded()
    assert "violates PodSecurity" in refused(ATTACKS["privileged container"])
