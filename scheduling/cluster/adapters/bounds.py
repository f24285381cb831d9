"""Where the author of pods, their runtime class, what they ask for beside GPUs, their volumes and the pods
beside which they run let them run, as one text: alike for those alike.
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
    return intern(_text(said)) if said - {"{}"} else ""


def _text(roles: Iterable[str]) -> str:
    return f"[{', '.join(sorted(roles))}]"


def _said(own: Json) -> Json:
    tolerations = [t for t in own.get("tolerations") or [] if not _is_own(t)]
    parts = {
        "selector": own["selector"],
        "terms": own["terms"],
        "tolerations": tolerations,
        **{name: own.get(name) for name in ("beside", "volumes", "near", "apart")},
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
def plain(bounds: str) -> str:
    """``bounds`` as they are without barred nodes."""
    roles = read(bounds)
    if not any("barred" in role for role in roles):
        return bounds
    return _text(
        json.dumps({k: v for k, v in r.items() if k != "barred"}, sort_keys=True) for r in roles
    )


@lru_cache(maxsize=4096)
def read(bounds: str) -> list[Json]:
    """``selector``, ``terms``, ``tolerations``, what a pod asks for ``beside``, its ``volumes``, what it
    has to be ``near`` and ``apart`` from, and ``barred`` nodes of each role, as far as there are any."""
    return list(json.loads(bounds)) if bounds else [{}]


WORDS = {
    "selector": "node selector or runtime class",
    "terms": "node affinity",
    "tolerations": "tolerations",
    "beside": "devices beside GPUs",
    "volumes": "volumes",
    "near": "pod affinity",
    "apart": "pod anti-affinity",
    "barred": "failed starts",
}


@lru_cache(maxsize=4096)
def in_words(bounds: str, *, is_tainted: bool) -> str:
    """What of it keeps pods from nodes; where some nodes are for those alone that tolerate their taints, that
    as well."""
    said = {name for role in read(bounds) for name, part in role.items() if part}
    phrases = [words for name, words in WORDS.items() if name in said and name != "tolerations"]
    phrases += [WORDS["tolerations"]] if is_tainted or not phrases else []
    return " and ".join([", ".join(phrases[:-1]), phrases[-1]] if len(phrases) > 1 else phrases)
