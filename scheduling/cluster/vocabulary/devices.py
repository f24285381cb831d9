"""Devices by dynamic resource allocation (resource.k8s.io/v1): what nodes offer and what claims ask for.

A device class is one more resource by name: its ``extendedResourceName``, else the name that Kubernetes
itself derives, ``deviceclass.resource.kubernetes.io/NAME``. Pods may ask by the derived name always, and it
counts as the other. A GPU class whose resource name is that one counts devices and claims of the class as it
counts any extended resource.

Counted are devices that can be allocated at the same time: partitions of one GPU draw on its counters
(KEP-4815), and a device that several classes select is one device.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

from scheduling.cluster.vocabulary import vendors
from scheduling.cluster.vocabulary.quantities import quantity
from scheduling.cluster.vocabulary.vendors import DEVICE_CLASS

Json = dict[str, Any]
Claims = Mapping[str, Mapping[str, int]]
"""Name of a claim template, or the derived name of a device class that has another -> thousandths of each
resource that one claim of it takes."""

UNCOUNTED = ""
"""Stands for a resource among those of a claim that takes devices without saying how many."""
PREFIX = DEVICE_CLASS
RESOURCES = ("deviceclasses", "resourceslices", "resourceclaimtemplates")

log = logging.getLogger(__name__)

_COMPARED = re.compile(
    r"^device\.(?:(driver)|attributes\[['\"]([^'\"]+)['\"]\]\.(\w+))"
    r" == (?:['\"]([^'\"]*)['\"]|(true|false|-?\d+))$"
)


def list_path(resource: str, namespace: str = "") -> str:
    within = f"namespaces/{namespace}/" if namespace else ""
    return f"/apis/resource.k8s.io/v1/{within}{resource}"


def resource_of(device_class: Json) -> str:
    """The resource name that stands for devices of ``device_class``."""
    own = device_class["spec"].get("extendedResourceName")
    return str(own or PREFIX + device_class["metadata"]["name"])


NOTHING = Decimal(0)
Counter = tuple[str, ...]
"""Driver, pool, counter set and name of what partitions of one piece of hardware share."""


@dataclass(frozen=True, slots=True)
class Device:
    """``resources`` of the classes it is of, and what it draws on counters while it is allocated."""

    resources: frozenset[str]
    draws: Mapping[Counter, Decimal]


@dataclass(frozen=True)
class Offer:
    """The devices of one node, and how much there is of each counter."""

    devices: list[Device] = field(default_factory=list)
    counters: dict[Counter, Decimal] = field(default_factory=dict)

    def share(self, resources: Iterable[str]) -> dict[str, int]:
        """Thousandths of each of ``resources`` that can be allocated all at once, in this order: what two of
        them draw on goes to the first."""
        found = dict.fromkeys(resources, 0)
        left, free = dict(self.counters), self._least_first
        for name in found if free else ():
            still_free = []
            for device in free:
                if name in device.resources and _draw(left, device):
                    found[name] += 1000
                else:
                    still_free.append(device)
            free = still_free
        return found

    @cached_property
    def alone(self) -> dict[str, int]:
        """Thousandths of each resource that can be allocated while nobody takes another."""
        names = dict.fromkeys(name for d in self.devices for name in sorted(d.resources))
        return {name: self.share([name])[name] for name in names}

    @cached_property
    def _least_first(self) -> list[Device]:
        """A workload that draws least leaves most to others."""
        return sorted(self.devices, key=self._weight)

    def _weight(self, device: Device) -> Decimal:
        """The largest of the shares that it draws of a counter."""
        shares = (
            amount / self.counters[counter]
            for counter, amount in device.draws.items()
            if self.counters[counter]
        )
        return max(shares, default=NOTHING)


def _draw(left: dict[Counter, Decimal], device: Device) -> bool:
    """Take what ``device`` draws from what is ``left``, unless that is too little."""
    if any(left[counter] < amount for counter, amount in device.draws.items()):
        return False
    for counter, amount in device.draws.items():
        left[counter] -= amount
    return True


NO_OFFER = Offer()


@dataclass(frozen=True, slots=True)
class Devices:
    """What a cluster's devices come to, in thousandths."""

    by_node: Mapping[str, Offer] = field(default_factory=dict)
    by_namespace: Mapping[str, Claims] = field(default_factory=dict)
    derived: Claims = field(default_factory=dict)
    """What asking for one by the name that Kubernetes derives takes, where the class has another."""
    gpus: frozenset[str] = frozenset()
    """Resources that devices of GPU drivers are of."""

    def offered(self, node: str, resources: Sequence[str] | None = None) -> Mapping[str, int]:
        """What ``node`` offers of each of ``resources`` beside those before it; else of each alone."""
        offer = self.by_node.get(node, NO_OFFER)
        return offer.alone if resources is None else offer.share(resources)

    def claims(self, namespace: str) -> Claims:
        return self.by_namespace.get(namespace, self.derived)


def count(classes: Sequence[Json], slices: Sequence[Json], templates: Sequence[Json]) -> Devices:
    """Devices and claims of a cluster that serves the API; nothing of one that does not."""
    resources = {c["metadata"]["name"]: resource_of(c) for c in classes}
    valid = _valid(slices)
    counters = {name: amount for each in valid for name, amount in _counters(each)}
    by_node: dict[str, Offer] = {}
    gpus: set[str] = set()
    for each in valid:
        for node, device in _free_devices(each):
            driver = each["spec"]["driver"]
            of = frozenset(resource_of(c) for c in classes if _matches(c, driver, device))
            if of:
                offer, draws = by_node.setdefault(node, Offer()), _draws(each, device)
                gpus.update(of if vendors.is_driver(driver) else ())
                offer.devices.append(Device(of, draws))
                offer.counters.update((name, counters.get(name, NOTHING)) for name in draws)
    derived = {PREFIX + c: {r: 1000} for c, r in resources.items() if r != PREFIX + c}
    by_namespace: dict[str, dict[str, Mapping[str, int]]] = {}
    for template in templates:
        meta = template["metadata"]
        wants = _requests(template["spec"]["spec"], resources)
        by_namespace.setdefault(meta["namespace"], {**derived})[meta["name"]] = wants
    return Devices(by_node, by_namespace, derived, frozenset(gpus))


def _requests(claim: Json, resources: Mapping[str, str]) -> dict[str, int]:
    """Thousandths by resource; of alternatives the first that the cluster has a class for."""
    total: dict[str, int] = {}
    for request in (claim.get("devices") or {}).get("requests") or []:
        choices = [request["exactly"]] if "exactly" in request else request.get("firstAvailable")
        known = [c for c in choices or [] if c.get("deviceClassName") in resources]
        if known and not known[0].get("adminAccess"):
            name = resources[known[0]["deviceClassName"]]
            if known[0].get("allocationMode") == "All":
                total[UNCOUNTED] = 1000
            total[name] = total.get(name, 0) + 1000 * int(known[0].get("count") or 1)
    return total


def _valid(slices: Sequence[Json]) -> list[Json]:
    """``slices`` of the newest generation of their pool; a driver deletes the older ones in its time."""
    newest: dict[Counter, int] = {}
    for each in slices:
        pool = _pool(each)
        newest[pool] = max(newest.get(pool, 0), _generation(each))
    return [each for each in slices if _generation(each) == newest[_pool(each)]]


def _generation(resource_slice: Json) -> int:
    return int((resource_slice["spec"].get("pool") or {}).get("generation") or 0)


def _pool(resource_slice: Json) -> Counter:
    spec = resource_slice["spec"]
    return str(spec["driver"]), str((spec.get("pool") or {}).get("name", ""))


def _counters(resource_slice: Json) -> Iterator[tuple[Counter, Decimal]]:
    for counter_set in resource_slice["spec"].get("sharedCounters") or []:
        for name, amount in counter_set["counters"].items():
            yield (*_pool(resource_slice), counter_set["name"], name), quantity(amount["value"])


def _draws(resource_slice: Json, device: Json) -> dict[Counter, Decimal]:
    return {
        (*_pool(resource_slice), drawn["counterSet"], name): quantity(amount["value"])
        for drawn in device.get("consumesCounters") or []
        for name, amount in drawn["counters"].items()
    }


def _free_devices(resource_slice: Json) -> Iterator[tuple[str, Json]]:
    """Devices that claims may take, each with its node; those that no one node has are left out."""
    spec = resource_slice["spec"]
    for device in spec.get("devices") or []:
        node = device.get("nodeName") or spec.get("nodeName")
        if node and _is_free(device):
            yield str(node), device


def _is_free(device: Json) -> bool:
    """No taint keeps claims away from it."""
    return not any(
        t.get("effect") in ("NoSchedule", "NoExecute") for t in device.get("taints") or []
    )


def _matches(device_class: Json, driver: str, device: Json) -> bool:
    """Whether ``device`` is of the class, as far as its selectors are comparisons joined by &&."""
    for selector in device_class["spec"].get("selectors") or []:
        for clause in str((selector.get("cel") or {}).get("expression", "")).split("&&"):
            if not _holds(clause.strip(), driver, device, device_class["metadata"]["name"]):
                return False
    return True


def _holds(clause: str, driver: str, device: Json, class_name: str) -> bool:
    compared = _COMPARED.match(clause)
    if compared is None:
        log.warning("device class %s: cannot read %r, so it has no devices", class_name, clause)
        return False
    is_driver, domain, name, text, plain = compared.groups()
    if is_driver:
        return driver == text
    attributes = device.get("attributes") or {}
    # An attribute without a domain belongs to its driver's.
    found = attributes.get(f"{domain}/{name}") or (
        attributes.get(name) if domain == driver else None
    )
    value = next(iter((found or {}).values()), None)
    return value is not None and str(value).lower() == (plain if text is None else text.lower())
