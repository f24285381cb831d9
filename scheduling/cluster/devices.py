"""Devices by dynamic resource allocation (resource.k8s.io/v1): what nodes offer and what claims ask for.

A device class is one more resource by name: its ``extendedResourceName``, else the name that Kubernetes
itself derives, ``deviceclass.resource.kubernetes.io/NAME``. A GPU class whose resource name is that one
counts devices and claims of the class as it counts any extended resource.

Devices are counted one by one; partitions that share counters of one GPU count as if they did not.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Claims = Mapping[str, Mapping[str, int]]
"""Name of a claim template -> thousandths of each resource that one claim of it takes."""

UNCOUNTED = ""
"""Stands for a resource among those of a claim that takes devices without saying how many."""
PREFIX = "deviceclass.resource.kubernetes.io/"
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


@dataclass(frozen=True, slots=True)
class Devices:
    """What a cluster's devices come to, in thousandths."""

    by_node: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Node -> resource -> devices it offers."""
    by_namespace: Mapping[str, Claims] = field(default_factory=dict)

    def offered(self, node: str) -> Mapping[str, int]:
        return self.by_node.get(node, {})

    def claims(self, namespace: str) -> Claims:
        return self.by_namespace.get(namespace, {})


def count(classes: Sequence[Json], slices: Sequence[Json], templates: Sequence[Json]) -> Devices:
    """Devices and claims of a cluster that serves the API; nothing of one that does not."""
    resources = {c["metadata"]["name"]: resource_of(c) for c in classes}
    by_node: dict[str, dict[str, int]] = {}
    for each in slices:
        node = each["spec"].get("nodeName")
        for device in each["spec"].get("devices") or [] if node else []:
            for found in classes:
                if _is_free(device) and _matches(found, each["spec"]["driver"], device):
                    held = by_node.setdefault(node, {})
                    name = resource_of(found)
                    held[name] = held.get(name, 0) + 1000
    by_namespace: dict[str, dict[str, dict[str, int]]] = {}
    for template in templates:
        meta = template["metadata"]
        wants = _wanted(template["spec"]["spec"], resources)
        by_namespace.setdefault(meta["namespace"], {})[meta["name"]] = wants
    return Devices(by_node, by_namespace)


def _wanted(claim: Json, resources: Mapping[str, str]) -> dict[str, int]:
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
