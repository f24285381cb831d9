"""How much of each resource a pod asks for: its containers together, and what its runtime takes."""

from __future__ import annotations

from .quantities import milli
from .resources import Json

Amounts = dict[str, int]
"""Resource name to thousandths of its unit."""


def amounts_of(spec: Json, part: str) -> Amounts:
    """Return the `requests` or `limits` of a pod: its containers together, or its largest init container,
    and its overhead on top. That limits nothing which the containers leave unlimited."""
    total: Amounts = {}
    for container in spec.get("containers") or ():
        for name, quantity in quantities_of(container, part).items():
            total[name] = total.get(name, 0) + milli(quantity)
    for container in spec.get("initContainers") or ():
        for name, quantity in quantities_of(container, part).items():
            total[name] = max(total.get(name, 0), milli(quantity))
    for name, quantity in (spec.get("overhead") or {}).items():
        if name in total or part == "requests":
            total[name] = total.get(name, 0) + milli(quantity)
    return total


def quantities_of(container: Json, part: str) -> Json:
    """Return the `requests` or `limits` of a container as they are written."""
    found: Json = (container.get("resources") or {}).get(part) or {}
    return found
