"""Where pods may run: what an admission writes into a pod spec, and what stood there before.

A kind whose templates take an affinity is sent to the planned hosts. One that takes only a node
selector (JobSet's webhook refuses the rest) is sent to the class and, where the plan stays inside
one, to the topology domain or the single host.
"""

from __future__ import annotations

from typing import Any

from scheduling.cluster import labels
from scheduling.cluster.adapters.base import Admission, ClassSpec

Json = dict[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def original_of(pod: Json, kept: Json | None, *, swaps: bool) -> Json:
    """What a person wrote of all that admissions overwrite: kept since the first, else read now.

    ``resources`` are kept only once another resource has taken their place.
    """
    rules = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    found: Json = kept or {
        "terms": (rules.get(REQUIRED) or {}).get("nodeSelectorTerms") or [],
        "preferred": rules.get(PREFERRED) or [],
        "selector": pod.get("nodeSelector") or {},
        "tolerations": pod.get("tolerations") or [],
    }
    # Where a person added a container since, what stands there now counts.
    unlike = "resources" in found and len(found["resources"]) != len(_containers(pod))
    if unlike or (swaps and "resources" not in found):
        return {**found, "resources": [c.get("resources") or {} for c in _containers(pod)]}
    return found


def _containers(pod: Json) -> list[Json]:
    return [*(pod.get("containers") or []), *(pod.get("initContainers") or [])]


def to_hosts(pod: Json, original: Json, admission: Admission, *, fixed: bool) -> None:
    """Send ``pod`` (edited in place) to the class and the planned hosts.

    Pods of a gang that may grow (not ``fixed``) prefer those hosts: where they may run cannot be
    changed any more when more of them are made.
    """
    narrow = [_is(key, value) for key, value in sorted(admission.gpu_class.node_labels.items())]
    preferred = list(original["preferred"])
    if fixed:
        narrow.append(_in(labels.HOSTNAME, sorted(admission.nodes)))
    else:
        narrow += [_is(key, value) for key, value in sorted(admission.domain.items())]
        hosts = {"matchExpressions": [_in(labels.HOSTNAME, sorted(admission.nodes))]}
        preferred.append({"weight": 100, "preference": hosts})
    terms = [
        {**term, "matchExpressions": [*(term.get("matchExpressions") or []), *narrow]}
        for term in original["terms"] or [{}]
    ]
    rules: Json = {REQUIRED: {"nodeSelectorTerms": terms}}
    if preferred:
        rules[PREFERRED] = preferred
    pod["affinity"] = {**(pod.get("affinity") or {}), "nodeAffinity": rules}


def to_class(pod: Json, original: Json, admission: Admission) -> None:
    """Send ``pod`` (edited in place) to the class, and to the one domain or host of the plan."""
    selector = {**original["selector"], **admission.gpu_class.node_labels, **admission.domain}
    if len(admission.nodes) == 1:
        selector[labels.HOSTNAME] = next(iter(admission.nodes))
    pod["nodeSelector"] = selector


def tolerate(pod: Json, original: Json, gpu_class: ClassSpec) -> None:
    """GPU nodes are commonly tainted with their resource's name to keep other pods away."""
    own = {"key": gpu_class.resource_name, "operator": "Exists", "effect": "NoSchedule"}
    kept = original["tolerations"]
    pod["tolerations"] = kept if own in kept else [*kept, own]


def swap_resource(pod: Json, original: Json, admission: Admission) -> None:
    """Ask for as many of the admitted class's resource as the person asked of another class's."""
    wanted = admission.gpu_class.resource_name
    for container, resources in zip(_containers(pod), original["resources"], strict=True):
        container["resources"] = {
            part: _renamed(amounts, admission.resource_names, wanted)
            if part in ("limits", "requests")
            else amounts
            for part, amounts in resources.items()
        }


def _renamed(amounts: Json, names: tuple[str, ...], wanted: str) -> Json:
    return {wanted if name in names else name: amount for name, amount in amounts.items()}


def _is(key: str, value: str) -> Json:
    return _in(key, [value])


def _in(key: str, values: list[str]) -> Json:
    return {"key": key, "operator": "In", "values": values}
