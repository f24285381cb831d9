"""The permissions that Weir lists are those that its requests use, over a whole life of work."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings

from scheduling.cluster.adapters import ADAPTERS
from scheduling.cluster.connection.client import NOBODY, Client
from scheduling.cluster.guardrails import rights as access
from scheduling.cluster.vocabulary import runtimes
from scheduling.models import Cluster, ClusterMode, PriorityClass, Queue, Quota
from scheduling.services.clusters.guardrails import guard
from scheduling.services.queues.service_classes import ServiceClass, ServiceClasses
from scheduling.services.tables.row_cache import RowCache
from scheduling.services.worker import cluster_turns as workers
from tests.scheduling.kube import World, eventually
from workshop.testbed.server.http.routing import parse_path
from workshop.testbed.server.kinds.resources import Resource

Grant = tuple[str, str, str]
"""(API group, resource, verb)"""


@pytest.fixture
def grants(monkeypatch: pytest.MonkeyPatch) -> set[Grant]:
    """What the API server's RBAC would have been asked for Weir's own requests."""
    used: set[Grant] = set()
    request, stream = Client.request, Client.stream

    def requested(self: Client, method: str, path: str, **more: Any) -> Any:
        if self.own and not more.get("as_person", NOBODY).name:
            used.update(asked(method, path, more.get("content_type", "")))
        return request(self, method, path, **more)

    def streamed(self: Client, path: str, query: Any, **more: Any) -> Any:
        used.update(asked("WATCH", path, ""))
        return stream(self, path, query, **more)

    monkeypatch.setattr(Client, "own", True, raising=False)
    monkeypatch.setattr(Client, "request", requested)
    monkeypatch.setattr(Client, "stream", streamed)
    return used


def asked(method: str, path: str, content_type: str) -> set[Grant]:
    target = parse_path(path, lambda group, version, plural: Resource(group, version, plural, ""))
    reads = "get" if target.name else "list"
    verbs = {
        "GET": {reads}, "WATCH": {"watch"}, "POST": {"create"}, "PUT": {"update"},
        "PATCH": {"patch", "create"} if "apply" in content_type else {"patch"},
        "DELETE": {"delete"},
    }[method]  # fmt: skip
    return {(target.resource.group, target.resource.plural, verb) for verb in verbs}


def anybody(cluster: Cluster, unchanged: RowCache) -> ServiceClasses:
    """A team in research whose work is nobody's in particular."""
    mine = ServiceClass(user="", path="research", team="Lab", persona="any")
    return ServiceClasses(classes=(mine,), team_paths=frozenset({"research"}))


def test_needs_are_exactly_what_the_code_asks_for(
    world: World, grants: set[Grant], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A life with everything in it: admission, eviction, an object edited in between, drift, an end."""
    world.kube.own = False
    Queue.objects.update(namespace="")
    Queue.objects.filter(name="research").update(namespace="default", access_group="lab")
    monkeypatch.setattr(settings, "WEIR_SERVICE_CLASSES", f"{__name__}.anybody")
    Quota.objects.filter(queue__name="research").update(borrowing_limit_gpus=0)
    world.job("w1", gpus=8)
    world.cycle()
    worker = workers._turns[world.cluster.pk]
    worker.link.lease._held_until = 0.0
    Queue.objects.filter(name="research").update(stop="drain")
    conflicted = worker.link.client.replace

    def write_late(path: str, body: Any) -> Any:
        if "/jobs/" not in path:
            return conflicted(path, body)
        worker.link.client.replace = conflicted
        world.kube.patch(path, {"metadata": {"labels": {"late": "yes"}}})
        return conflicted(path, body)

    worker.link.client.replace = write_late
    world.cycle()
    guard(world.cluster, worker.link)
    Queue.objects.update(namespace="", access_group="")
    PriorityClass.objects.all().delete()
    guard(world.cluster, worker.link)

    # No definitions of other kinds are installed here: they are looked for, and no more.
    absent = {
        (*access.resource_of(a.list_path), verb)
        for a in ADAPTERS
        if a.kind not in ("Job", "Deployment", "PodGroup")
        for verb in ("watch", "get", "update")
    }
    absent |= {(runtimes.TRAINER_GROUP, name, "watch") for name in runtimes.TRAINING}
    # The check-up asks for it, where operators of such kinds are.
    absent |= {("rbac.authorization.k8s.io", "clusterrolebindings", "get")}
    absent |= {("apps", "deployments", verb) for verb in ("get", "update")}
    absent |= {("", "pods", verb) for verb in ("get", "patch", "delete")}
    needs = [*access.observing(), *access.enforcing(), *access.working()]
    listed = {(n.group, n.resource, verb) for n in needs for verb in n.verbs} - absent
    # Rights that the API server and a policy look for, and a question that everybody may ask.
    held = {("rbac.authorization.k8s.io", "clusterroles", "bind"), ("weir.dev", "marks", "update")}
    question = ("authorization.k8s.io", "selfsubjectaccessreviews", "create")
    assert grants - {question} | held == listed


def test_observing_asks_for_nothing_else(world: World, grants: set[Grant]) -> None:
    world.kube.own = False
    Cluster.objects.update(mode=ClusterMode.OBSERVE)
    Queue.objects.filter(name="research").update(namespace="lab", access_group="lab")
    world.job("w1", gpus=8)
    world.cycle()
    worker = workers._turns[world.cluster.pk]
    eventually(lambda: any(verb == "watch" for _, _, verb in grants))
    guard(Cluster.objects.get(), worker.link)

    assert grants <= {(n.group, n.resource, verb) for n in access.observing() for verb in n.verbs}
