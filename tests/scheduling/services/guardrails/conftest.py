from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from scheduling.cluster.connection.client import Client
from scheduling.models import Cluster, PriorityClass, Queue, Quota
from scheduling.services.clusters.guardrails import GuardrailPass, guard
from scheduling.services.worker import cluster_turns as workers
from tests.scheduling.canary import wait_until_taken_up
from tests.scheduling.control_plane import ON
from tests.scheduling.kube import policy
from tests.scheduling.real_server import empty
from workshop.testbed.control_plane.plane import ControlPlane

from .lab import Lab, Pass


@pytest.fixture
def kubernetes(request: pytest.FixtureRequest, real_control_plane: ControlPlane) -> ControlPlane:
    """Without what the tests before left there. Who makes a pass goes by the policies of the one before,
    as a worker that starts anew does: the pass brings into step what differs."""
    empty(real_control_plane, ruled_in=RULED["namespace"] if is_ruled(request) else "")
    return real_control_plane


RULED = {"namespace": f"lab-{os.getpid()}", "priority": f"train-{os.getpid()}"}
"""Policies name both, so they stay as they are from one test of this process to the next."""


def is_ruled(request: pytest.FixtureRequest) -> bool:
    bare = request.node.get_closest_marker("bare") is not None
    return "guarded" in request.fixturenames and not bare


@pytest.fixture
def lab(db: None, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """On the embedded API server, or in `make test-cluster` on a real one."""
    if ON:
        access = request.getfixturevalue("kubernetes").access
        cluster = policy("enforce", "", "research", "products", nominal_gpus=8)
        cluster.kubeconfig, cluster.context = access.kubeconfig, access.context
        cluster.save()
        names = RULED if is_ruled(request) else {}
        made = Lab(cluster, None, Client.connect(cluster), **names)  # type: ignore[arg-type]
    else:
        world = request.getfixturevalue("world")
        made = Lab(world.cluster, world.server, world.kube)
    Queue.objects.filter(name="research").update(
        namespace=made.namespace, access_group="lab-people"
    )
    Queue.objects.filter(name="products").update(namespace="")
    Quota.objects.filter(queue__name="research").update(borrowing_limit_gpus=4000)
    PriorityClass.objects.update(name=made.priority)
    yield made
    workers.close_all()


@pytest.fixture
def guarded(lab: Lab) -> Pass:
    """One pass, as the worker makes it; the policies of a test's first are in force once it is made."""
    waited: list[bool] = []

    def run() -> GuardrailPass:
        cluster = Cluster.objects.get(pk=lab.cluster.pk)
        done = guard(cluster, workers.held_of(cluster, on_change=lambda: None).link)
        if ON and not waited:
            wait_until_taken_up(lab.kube)
            waited.append(True)
        return done

    return run


@pytest.fixture
def writes(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Weir's own writes, but for the lease's."""
    heard: list[str] = []
    request = Client.request

    def listen(self: Client, method: str, path: str, **more: Any) -> Any:
        if method != "GET" and "leases" not in path and self is not lab.kube:
            heard.append(f"{method} {path}")
        return request(self, method, path, **more)

    monkeypatch.setattr(Client, "request", listen)
    return heard
