from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from scheduling.cluster.connection.client import Client
from scheduling.models import Cluster, PriorityClass, Queue, Quota
from scheduling.services.clusters.guardrails import Guarded, guard
from scheduling.services.worker import held as workers
from tests.scheduling.canary import wait_until_taken_up
from tests.scheduling.control_plane import ON
from tests.scheduling.kube import policy

from .lab import Lab, Pass


@pytest.fixture
def lab(db: None, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """On the embedded API server, or in `make test-cluster` on a real one."""
    if ON:
        access = request.getfixturevalue("kubernetes").access
        cluster = policy("enforce", "", "research", "products", nominal_gpus=8)
        cluster.kubeconfig, cluster.context = access.kubeconfig, access.context
        cluster.save()
        made = Lab(cluster, None, Client.connect(cluster))  # type: ignore[arg-type]
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

    def run() -> Guarded:
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
