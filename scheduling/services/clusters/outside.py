"""Work that holds or asks for GPUs and names no queue: whose it is, and what would bring it in.

Reads the API server and writes nothing there: a person decides, by typing its line or on the page
(``adopting.py``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from scheduling.cluster.adapters import ADAPTERS
from scheduling.cluster.adapters import pods as pods_of
from scheduling.cluster.connection.client import Client, ForbiddenError, NotFoundError
from scheduling.cluster.vocabulary.labels import QUEUE, USER, queue_of
from scheduling.models import MILLI, Cluster
from scheduling.services.clusters.connection import talking_to
from scheduling.services.clusters.discovery import ENDED

Json = dict[str, Any]
KINDS = {adapter.kind for adapter in ADAPTERS}
MAKES_ITS_OWN = ("ReplicaSet", "CronJob")
"""Kinds that make what holds the GPUs anew from a template, so that a label of one piece is soon gone."""


@dataclass(frozen=True, slots=True)
class Outside:
    """One piece of work, as the object that stands at the top of its owners."""

    uid: str
    kind: str
    namespace: str
    name: str
    gpus: int
    user: str
    """As it says itself; empty where it does not."""
    queue: str
    """Which takes work of its namespace; empty where none does."""

    @property
    def label(self) -> str:
        return f"{QUEUE}={self.queue}"

    @property
    def line(self) -> str:
        """The command that brings it in; empty where a label alone does not."""
        if not self.queue or self.kind not in KINDS | {"Pod"}:
            return ""
        what = f"{self.kind.lower()} {self.name}"
        return f"kubectl -n {self.namespace} label {what} {self.label}"

    @property
    def remedy(self) -> str:
        """Where no label does, what does."""
        if self.line:
            return ""
        if not self.queue:
            return f"No queue has the namespace {self.namespace}: give it one first."
        if self.kind in MAKES_ITS_OWN:
            return f"Label the template that it is made from: {self.label}."
        return f"A {self.kind} cannot wait: make it a Job, a Deployment or a LeaderWorkerSet."


def look(cluster: Cluster) -> list[Outside]:
    """Those that hold most first. Raises ServiceError when the cluster does not answer."""
    with talking_to(cluster) as client:
        pods = client.get("/api/v1/pods").get("items") or []
        work = OwnerTree(list(_objects(client)))
    resources = set(cluster.gpu_classes.values_list("resource_name", flat=True))
    usage: Counter[str] = Counter()
    tops: dict[str, Top] = {}
    for pod in pods:
        asks = pods_of.requests_of(pod["spec"])
        gpus = sum(asks.get(resource, 0) for resource in resources) // MILLI
        top = work.top_of(pod)
        if gpus and not top.is_named and (pod.get("status") or {}).get("phase") not in ENDED:
            usage[top.uid] += gpus
            tops[top.uid] = top
    queues = dict(cluster.queues.exclude(namespace="").values_list("namespace", "name"))
    return [_outside(tops[uid], gpus, queues) for uid, gpus in usage.most_common()]


def _objects(client: Client) -> Iterator[tuple[str, Json]]:
    """What holds work, of the kinds that there are here and that may be read."""
    for adapter in ADAPTERS:
        if adapter.resource == "pods":
            continue
        with suppress(NotFoundError, ForbiddenError):
            for found in client.get(adapter.list_path).get("items") or []:
                yield adapter.kind, found["metadata"]


@dataclass(frozen=True, slots=True)
class Top:
    """The object above all that own a pod; ``is_named`` where one on the way names a queue."""

    kind: str
    meta: Json
    is_named: bool

    @property
    def uid(self) -> str:
        return str(self.meta["uid"])


class OwnerTree:
    def __init__(self, objects: Sequence[tuple[str, Json]]) -> None:
        self._by_uid = {meta["uid"]: (kind, meta) for kind, meta in objects}
        self._by_name = {(kind, m["namespace"], m["name"]): (kind, m) for kind, m in objects}

    def top_of(self, pod: Json) -> Top:
        top = Top("Pod", pod["metadata"], bool(queue_of(pod["metadata"].get("labels"))))
        if above := self._by_word(pod):
            top = self._above(top, *above)
        while owner := next(iter(top.meta.get("ownerReferences") or ()), None):
            unknown = owner["kind"], {**owner, "namespace": top.meta["namespace"]}
            top = self._above(top, *self._by_uid.get(owner["uid"], unknown))
        return top

    def _by_word(self, pod: Json) -> tuple[str, Json] | None:
        """What a pod belongs to by the word of its labels, such as the Deployment above its ReplicaSet."""
        for adapter in ADAPTERS:
            place = adapter.kind, pod["metadata"]["namespace"], adapter.owner_name(pod) or ""
            if place in self._by_name:
                return self._by_name[place]
        return None

    @staticmethod
    def _above(top: Top, kind: str, meta: Json) -> Top:
        return Top(kind, meta, top.is_named or bool(queue_of(meta.get("labels"))))


def _outside(top: Top, gpus: int, queues: Mapping[str, str]) -> Outside:
    space = top.meta["namespace"]
    user = (top.meta.get("annotations") or {}).get(USER, "")
    return Outside(top.uid, top.kind, space, top.meta["name"], gpus, user, queues.get(space, ""))
