"""What RuntimeClasses (node.k8s.io/v1) add to pods: what they take besides what their containers ask for
(KEP-688), and which nodes they may run on (KEP-585).

The API server writes both into each pod that is made; templates only name the class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

Json = dict[str, Any]

GROUP = "node.k8s.io"
RESOURCE = "runtimeclasses"
LIST_PATH = f"/apis/{GROUP}/v1/{RESOURCE}"


@dataclass(frozen=True, slots=True)
class Runtime:
    """``overhead`` are quantities that each pod takes, as they are written; ``selector`` are labels that its
    node has, ``tolerations`` are of taints that it may have."""

    overhead: Json = field(default_factory=dict)
    selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Json, ...] = ()


Runtimes = Mapping[str, Runtime]
"""By the name of the runtime class."""
NO_RUNTIMES: Runtimes = MappingProxyType({})
PLAIN = Runtime()


def read(classes: Iterable[Json]) -> dict[str, Runtime]:
    """Those ``classes`` that add something."""
    found = {
        c["metadata"]["name"]: Runtime(
            (c.get("overhead") or {}).get("podFixed") or {},
            (c.get("scheduling") or {}).get("nodeSelector") or {},
            tuple((c.get("scheduling") or {}).get("tolerations") or ()),
        )
        for c in classes
    }
    return {name: runtime for name, runtime in found.items() if runtime != PLAIN}


def of(pod: Mapping[str, Any], runtimes: Runtimes) -> Runtime:
    """What the class that a pod spec names adds to it."""
    return runtimes.get(pod.get("runtimeClassName") or "", PLAIN)
