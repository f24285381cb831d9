"""What the objects of each namespace count for, by the names that ResourceQuotas know it under.

Kept up with every write, so that a create is checked against all before it, however many there are.
A pod counts until it has ended or is gone; one that is stuck on a lost node counts on.
"""

from __future__ import annotations

from collections.abc import Iterable

from workshop.testbed.server.kinds.pod_amounts import Amounts, amounts_of
from workshop.testbed.server.kinds.resources import PODS, Json, Resource

from .store import Event, Record, Store

_OBJECTS = "count/"
NATIVE = ("cpu", "memory", "ephemeral-storage")
"""Resources that may be overcommitted: quotas bound their limits too, and requests by two names."""


class Charges:
    """The sums of all namespaces. Read under the store's lock."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._usage: dict[str, Amounts] = {}

    def start(self) -> None:
        """Count what is there, then whatever changes."""
        with self._store.lock:
            for record in self._store.listing(PODS):
                self._add(record, 1)
            self._store.watch(PODS, self._notice)

    def usage(self, namespace: str, name: str) -> int:
        """Return how much of `name` the namespace holds, in thousandths."""
        if name.startswith(_OBJECTS):
            kinds = (r for r in self._store.resources() if r.namespaced and _counted(r) == name)
            return sum(1000 * self._store.count(kind, namespace) for kind in kinds)
        return self._usage.get(namespace, {}).get(name, 0)

    def _notice(self, event: Event) -> None:
        before = event.previous
        if before is not None and event.type != "DELETED" and _is_alike(before, event.record):
            return
        if before is not None:
            self._add(before, -1)
        if event.type != "DELETED":
            self._add(event.record, 1)

    def _add(self, pod: Record, times: int) -> None:
        sums = self._usage.setdefault(pod.namespace, {})
        for name, amount in charge_of(PODS, pod.body).items():
            sums[name] = sums.get(name, 0) + times * amount


def _is_alike(before: Record, after: Record) -> bool:
    same = before.body["spec"] is after.body["spec"]
    return same and _is_ended(before.body) == _is_ended(after.body)


def _is_ended(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _counted(resource: Resource) -> str:
    return _OBJECTS + resource.qualified


def charge_of(resource: Resource, body: Json) -> Amounts:
    """Return what an object counts for; of a pod that has ended nothing but the object."""
    charge = {_counted(resource): 1000}
    if resource is PODS and not _is_ended(body):
        requests, limits = (amounts_of(body["spec"], part) for part in ("requests", "limits"))
        charge |= {"pods": 1000} | named(requests, limits)
    return charge


def named(requests: Amounts, limits: Amounts) -> Amounts:
    """Return amounts under the names of quotas. Devices cannot be overcommitted: requests say it all."""
    return {
        **{name: amount for name, amount in requests.items() if name in NATIVE},
        **{f"requests.{name}": amount for name, amount in requests.items()},
        **{f"limits.{name}": limits[name] for name in _among(limits)},
    }


def _among(amounts: Amounts) -> Iterable[str]:
    return (name for name in NATIVE if name in amounts)
