"""What a pod takes besides what its containers ask for, by its RuntimeClass (node.k8s.io/v1, KEP-688).

The API server writes it into each pod that is made; templates only name the class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

Json = dict[str, Any]
Overheads = Mapping[str, Json]
"""Name of a runtime class -> the quantities that each pod of it takes, as they are written."""

GROUP = "node.k8s.io"
RESOURCE = "runtimeclasses"
LIST_PATH = f"/apis/{GROUP}/v1/{RESOURCE}"
NO_OVERHEADS: Overheads = MappingProxyType({})


def count(classes: Iterable[Json]) -> dict[str, Json]:
    """The overheads of those ``classes`` that have one."""
    fixed = {c["metadata"]["name"]: (c.get("overhead") or {}).get("podFixed") for c in classes}
    return {name: quantities for name, quantities in fixed.items() if quantities}
