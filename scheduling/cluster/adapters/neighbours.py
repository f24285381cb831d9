"""Beside which other pods a pod has to run, or must not: its required pod affinity and anti-affinity.

As kube-scheduler reads them: kubernetes.io, "Assigning Pods to Nodes". Terms that select namespaces by label,
or by keys of the pod's own labels, depend on what is not known before the pod is there: they are not read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scheduling.cluster.adapters.affinity import holds
from scheduling.cluster.vocabulary import labels as words

Json = dict[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
MADE = (
    "job-name", "batch.kubernetes.io/job-name", "jobset.sigs.k8s.io/jobset-name",
    "training.kubeflow.org/job-name", "ray.io/cluster", "leaderworkerset.sigs.k8s.io/name",
)  # fmt: skip
"""Labels by which controllers name the object on its pods."""
UNREAD = ("matchLabelKeys", "mismatchLabelKeys")
PLACE = "node apart from pods with "
APART = PLACE + "{} in {}"
"""What a member takes of its node whose anti-affinity keeps others of its own kind away; a node has one."""
WORD = '"labels": '
"""Stands in bounds that speak of other pods, and in no others."""


def of(spec: Mapping[str, Any], meta: Mapping[str, Any], name: str, namespace: str) -> Json:
    """``near`` and ``apart``: terms as ``_term`` reads them, each if there are any. ``meta`` is what the
    template says of its pods, ``name`` the object's."""
    affinity = spec.get("affinity") or {}
    own = {**dict.fromkeys(MADE, name), **(meta.get("labels") or {})}
    found = {
        word: [
            term
            for stated in (affinity.get(kind) or {}).get(REQUIRED) or []
            if (term := _term(stated, own, namespace))
        ]
        for word, kind in (("near", "podAffinity"), ("apart", "podAntiAffinity"))
    }
    return {word: terms for word, terms in found.items() if terms}


def places_apart(said: Json) -> dict[str, int]:
    """What each member takes of its node so that no other of its kind goes there."""
    terms = [term for term in said.get("apart") or [] if is_apart_alone(term)]
    return {place_of(term): 1 for term in terms}


def is_apart_alone(term: Json) -> bool:
    """Whether it keeps the pod's own kind off its node."""
    return bool(term["self"] and term["key"] == words.HOSTNAME)


def place_of(term: Json) -> str:
    """What such a place is called: alike for those that keep the same pods away."""
    where = ", ".join(term["namespaces"]) or "any namespace"
    return APART.format(_in_words(term["labels"], term["expressions"]), where)


def together(said: Json) -> tuple[str, ...]:
    """The labels of nodes by which members have to be together that have to run near their own kind."""
    return tuple(sorted({term["key"] for term in said.get("near") or [] if term["self"]}))


def matches(term: Json, namespace: str, labels: Mapping[str, str]) -> bool:
    """Whether a pod of ``namespace`` with ``labels`` is one of those that ``term`` is about."""
    if term["namespaces"] and namespace not in term["namespaces"]:
        return False
    return _selects(term["labels"], term["expressions"], labels)


def _term(stated: Json, own: Mapping[str, str], namespace: str) -> Json | None:
    """The labels and ``expressions`` that it selects pods by, in which ``namespaces`` (none: in all), by
    which node label ``key`` nodes are together, and whether it selects the pod ``self``; None for what is not
    read."""
    selector, anywhere = stated.get("labelSelector"), stated.get("namespaceSelector")
    if selector is None or anywhere or any(stated.get(key) for key in UNREAD):
        return None
    named = sorted(stated.get("namespaces") or [])
    spaces = [] if anywhere == {} else named or [namespace]
    term = {
        "key": str(stated.get("topologyKey")),
        "labels": selector.get("matchLabels") or {},
        "expressions": selector.get("matchExpressions") or [],
        "namespaces": spaces,
    }
    return {**term, "self": matches(term, namespace, own)}


def _selects(wanted: Mapping[str, str], expressions: list[Json], labels: Mapping[str, str]) -> bool:
    same = all(labels.get(key) == value for key, value in wanted.items())
    return same and all(holds(expression, labels) for expression in expressions)


def in_words(terms: list[Json]) -> str:
    return " and ".join(_in_words(term["labels"], term["expressions"]) for term in terms)


def _in_words(wanted: Mapping[str, str], expressions: list[Json]) -> str:
    said = [f"{key}={value}" for key, value in sorted(wanted.items())]
    for each in expressions:
        values = ", ".join(map(str, each.get("values") or []))
        said.append(f"{each.get('key')} {each.get('operator')} {values}".rstrip())
    return ", ".join(said) or "any labels"


def key_of(term: Json) -> str:
    """One text for alike terms."""
    return json.dumps(term, sort_keys=True)
