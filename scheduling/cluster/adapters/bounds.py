"""Where the author of pods, their runtime class and what they ask for beside GPUs let them run, as one text:
alike for those alike.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from functools import lru_cache
from sys import intern
from typing import Any

Json = dict[str, Any]

OWN_TAINTS = "node.kubernetes.io/"
"""Kubernetes' own, of nodes in trouble: nothing is planned there, whatever tolerates them."""


def written(owns: Iterable[Json]) -> str:
    """What each of ``owns`` (one a role, as ``steering.own_of`` reads them) says; empty where none says
    anything.

    Members are planned alike, so they may go wherever any of their roles may.
    """
    said = {json.dumps(_said(own), sort_keys=True, default=str) for own in owns}
    return intern(f"[{', '.join(sorted(said))}]") if said - {"{}"} else ""


def _said(own: Json) -> Json:
    tolerations = [t for t in own.get("tolerations") or [] if not _is_own(t)]
    parts = {
        "selector": own["selector"],
        "terms": own["terms"],
        "tolerations": tolerations,
        "beside": own.get("beside"),
    }
    return {name: part for name, part in parts.items() if part}


def _is_own(toleration: Any) -> bool:
    """The API server gives every pod some of these."""
    return isinstance(toleration, dict) and str(toleration.get("key")).startswith(OWN_TAINTS)


def barring(bounds: str, nodes: Collection[str]) -> str:
    """``bounds`` without ``nodes``, which are left out while any other is there."""
    roles = [{**role, "barred": sorted(nodes)} for role in read(bounds)]
    return json.dumps(roles, sort_keys=True)


@lru_cache(maxsize=4096)
def read(bounds: str) -> list[Json]:
    """``selector``, ``terms``, ``tolerations``, what a pod asks for ``beside`` and ``barred`` nodes of each
    role, as far as there are any."""
    return list(json.loads(bounds)) if bounds else [{}]
