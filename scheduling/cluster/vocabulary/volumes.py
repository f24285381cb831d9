"""On which nodes volumes can be used: where bound ones are, and where those still to be made may be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Terms = tuple[Json, ...]
"""Node selector terms, of which any has to match."""

LIST_PATHS = {
    "persistentvolumes": "/api/v1/persistentvolumes",
    "persistentvolumeclaims": "/api/v1/persistentvolumeclaims",
    "storageclasses": "/apis/storage.k8s.io/v1/storageclasses",
}
ZONES = (
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
)  # fmt: skip
"""Labels of a volume that bind it to nodes with the same."""
DEFAULT = "storageclass.kubernetes.io/is-default-class"


@dataclass(frozen=True, slots=True)
class Volumes:
    """What binds to nodes, nothing else is in it."""

    by_claim: Mapping[str, tuple[Terms, ...]] = field(default_factory=dict)
    """namespace/name -> choices of terms, all of which have to match."""
    by_class: Mapping[str, tuple[Terms, ...]] = field(default_factory=dict)

    def of(self, said: Json) -> list[Terms]:
        """What all of the volumes that bounds name ask of a node."""
        found = [self.by_claim.get(name, ()) for name in said.get("claims") or []]
        found += [self.by_class.get(name, ()) for name in said.get("classes") or []]
        return [terms for choices in found for terms in choices]


NO_VOLUMES = Volumes()


def read(volumes: Iterable[Json], claims: Iterable[Json], classes: Iterable[Json]) -> Volumes:
    """Of trimmed objects."""
    bound = {v["metadata"]["name"]: _of_volume(v) for v in volumes}
    by_class = {c["metadata"]["name"]: found for c in classes if (found := _of_class(c))}
    default = next((c["metadata"]["name"] for c in classes if c.get("default")), "")
    by_class |= {"": by_class[default]} if default in by_class else {}
    by_claim = {
        f"{claim['metadata']['namespace']}/{claim['metadata']['name']}": found
        for claim in claims
        if (found := bound.get(claim["volume"], ()) or _unbound(claim, by_class))
    }
    return Volumes(by_claim, by_class)


def _unbound(claim: Json, by_class: Mapping[str, tuple[Terms, ...]]) -> tuple[Terms, ...]:
    return () if claim["volume"] else by_class.get(claim["class"], ())


def _of_volume(volume: Json) -> tuple[Terms, ...]:
    zones = tuple(
        ({"matchExpressions": [{"key": key, "operator": "In", "values": value.split("__")}]},)
        for key, value in volume["zones"].items()
    )
    return (tuple(volume["terms"]), *zones) if volume["terms"] else zones


def _of_class(one: Json) -> tuple[Terms, ...]:
    terms = tuple(
        {"matchExpressions": [{**e, "operator": "In"} for e in term["matchLabelExpressions"]]}
        for term in one["topologies"]
        if term.get("matchLabelExpressions")
    )
    return (terms,) if terms else ()


def trim_volume(volume: Json) -> Json:
    spec, said = volume.get("spec") or {}, volume["metadata"].get("labels") or {}
    required = (spec.get("nodeAffinity") or {}).get("required") or {}
    return {
        "metadata": _meta(volume),
        "terms": required.get("nodeSelectorTerms") or [],
        "zones": {key: said[key] for key in ZONES if key in said},
    }


def trim_claim(claim: Json) -> Json:
    spec = claim.get("spec") or {}
    return {
        "metadata": _meta(claim),
        "volume": spec.get("volumeName") or "",
        "class": spec.get("storageClassName") or "",
    }


def trim_class(one: Json) -> Json:
    """Where a volume is made at once, wherever that is, its own affinity says so then."""
    waits = one.get("volumeBindingMode") == "WaitForFirstConsumer"
    notes = one["metadata"].get("annotations") or {}
    return {
        "metadata": _meta(one),
        "topologies": (one.get("allowedTopologies") or []) if waits else [],
        "default": notes.get(DEFAULT) == "true",
    }


def _meta(obj: Json) -> Json:
    keys = ("name", "namespace", "uid", "resourceVersion")
    return {key: obj["metadata"][key] for key in keys if key in obj["metadata"]}


TRIMS = {
    "persistentvolumes": trim_volume,
    "persistentvolumeclaims": trim_claim,
    "storageclasses": trim_class,
}
