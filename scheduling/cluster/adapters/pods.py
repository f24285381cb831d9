"""What pods and pod templates say: what they ask for, and whether they still hold it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from scheduling.cluster.adapters import originals, volumes
from scheduling.cluster.vocabulary import endings, labels
from scheduling.cluster.vocabulary.devices import UNCOUNTED, Claims
from scheduling.cluster.vocabulary.quantities import MOST, instant, is_of_bytes, mib, milli_asked
from scheduling.cluster.vocabulary.runtimes import NO_RUNTIMES, Runtimes
from scheduling.cluster.vocabulary.runtimes import of as runtime_of
from scheduling.cluster.vocabulary.vendors import DEVICE_CLASS, is_gpu

Json = dict[str, Any]

IMAGE_LENGTH = 511
HARM = "$harm"
"""Stands in the status of a trimmed pod for what came over it, an Ending."""
NO_CLAIMS: Claims = {}
SHARED_CLAIM = (
    "It shares a ResourceClaim, which cannot be counted pod by pod. Claim its devices by a"
    " ResourceClaimTemplate."
)

ALL_DEVICES = (
    "Its ResourceClaimTemplate {template} takes all devices that match, which cannot be planned. Set their"
    " count."
)


def requests_of(
    spec: Mapping[str, Any], claims: Claims = NO_CLAIMS, runtimes: Runtimes = NO_RUNTIMES
) -> dict[str, int]:
    """What a pod spec asks for at its most, by resource: thousandths, bytes in MiB; at most MOST of each.

    All containers run at once, and beside them the init containers that are restarted always; each of
    the other init containers runs before, beside those restarted ones that precede it. Devices that
    the pod claims by one of the templates ``claims`` come on top. A request counts, else the limit (the
    server defaults one from the other); of a device, whose two have to be alike, the limit. What the pod
    asks for as a whole takes the place of what its containers do (KEP-2837). The overhead that it
    states, else that of its runtime class among ``runtimes``, is added to either.
    """
    total, first = _total(spec.get("containers")), spec.get("initContainers") or ()
    if first:
        total = _most(_more(total, _total(_restarted(first))), _peak(first))
    total |= _total([dict(spec)])
    if fixed := spec.get("overhead") or runtime_of(spec, runtimes).overhead:
        total = _more(total, _amounts(fixed))
    for claim in spec.get("resourceClaims") or []:
        total = _more(total, claims.get(claim.get("resourceClaimTemplateName", ""), {}))
    for name in [n for n in total if n in claims and n.startswith(DEVICE_CLASS)]:
        count = total.pop(name)
        total = _more(total, {n: each * count // 1000 for n, each in claims[name].items()})
    return {name: min(amount, MOST) for name, amount in total.items()}


def image_of(spec: Json) -> str:
    """The image of the first container that asks for anything that is counted, else of the first."""
    containers = spec.get("containers") or [{}]
    counting = (c for c in containers if any("/" in key for key in _container_requests(c)))
    image = next(counting, containers[0]).get("image")
    return image.replace("\0", "")[:IMAGE_LENGTH] if isinstance(image, str) else ""


def _container_requests(container: Json) -> Json:
    resources = container.get("resources") or {}
    return {**(resources.get("requests") or {}), **(resources.get("limits") or {})}


def beside(amounts: Mapping[str, Any], gpus: Sequence[str] = ()) -> dict[str, int]:
    """Of ``amounts`` by resource those that not every node has, and that a node has to have: other
    devices, such as RDMA, local storage and huge pages. ``gpus`` are names of GPUs beside all that are known.
    """
    return {
        name: amount
        for name, amount in amounts.items()
        if amount
        and name not in gpus
        and ((is_of_bytes(name) and name != "memory") or ("/" in name and not is_gpu(name)))
    }


def _total(containers: Iterable[Json] | None) -> dict[str, int]:
    total: dict[str, int] = {}
    for container in containers or ():
        resources = container.get("resources") or {}
        limits = resources.get("limits") or {}
        devices = {name: amount for name, amount in limits.items() if "/" in name}
        wants = {**limits, **(resources.get("requests") or {}), **devices}
        for name, value in _amounts(wants).items():
            total[name] = total.get(name, 0) + value
    return total


def _amounts(quantities: Json) -> dict[str, int]:
    return {
        name: mib(amount) if is_of_bytes(name) else milli_asked(amount)
        for name, amount in quantities.items()
    }


def _restarted(containers: Iterable[Json]) -> list[Json]:
    return [c for c in containers if c.get("restartPolicy") == "Always"]


def _peak(containers: Sequence[Json]) -> dict[str, int]:
    """The most that init containers ask for one after the other."""
    peak: dict[str, int] = {}
    for place, container in enumerate(containers):
        if container.get("restartPolicy") != "Always":
            peak = _most(peak, _total([*_restarted(containers[:place]), container]))
    return peak


def _more(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {**one, **{name: one.get(name, 0) + amount for name, amount in other.items()}}


def _most(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {**one, **{name: max(one.get(name, 0), amount) for name, amount in other.items()}}


def claims_fault(spec: Mapping[str, Any], claims: Claims) -> str:
    """Why the devices that a pod spec claims cannot be counted, with the remedy; empty when they can."""
    for claim in spec.get("resourceClaims") or []:
        template = claim.get("resourceClaimTemplateName")
        if not template:
            return SHARED_CLAIM
        if template not in claims:
            return f"There is no ResourceClaimTemplate {template} in its namespace. Create it."
        if UNCOUNTED in claims[template]:
            return ALL_DEVICES.format(template=template)
    return ""


def gpus(spec: Mapping[str, Any], names: Sequence[str], claims: Claims = NO_CLAIMS) -> int:
    """Milli-GPU of the first of the resources ``names`` that a pod spec asks for."""
    return gpus_among(requests_of(spec, claims), names)


def gpus_among(asks: Mapping[str, int], names: Sequence[str]) -> int:
    """The same of what a pod asks for."""
    return next((int(asks[name]) for name in names if asks.get(name)), 0)


def phase(pod: Json) -> str:
    return (pod.get("status") or {}).get("phase") or ""


def is_ready(pod: Json) -> bool:
    """It runs, passes its readiness check if it has one, and is not on its way out."""
    if phase(pod) != "Running" or pod["metadata"].get("deletionTimestamp"):
        return False
    conditions = pod["status"].get("conditions") or []
    return not any(c["type"] == "Ready" and c["status"] == "False" for c in conditions)


def is_over(pod: Json) -> bool:
    """Its containers have ended, so it holds nothing."""
    return phase(pod) in ("Succeeded", "Failed")


def holds(pod: Json) -> bool:
    """It is bound to a node and its containers have not ended (terminating ones still hold)."""
    return bool(pod["spec"].get("nodeName")) and not is_over(pod)


def by_node(pods: Sequence[Json], weights: Sequence[int] | None = None) -> dict[str, int]:
    """Pods that hold resources, counted by node, each by its weight."""
    counts: dict[str, int] = {}
    for i, pod in enumerate(pods):
        if holds(pod):
            node = pod["spec"]["nodeName"]
            counts[node] = counts.get(node, 0) + (weights[i] if weights else 1)
    return dict(sorted(counts.items()))


def presence(pods: Sequence[Json], weights: Sequence[int] | None = None) -> Json:
    """Which members are up, where they hold resources and until when, as fields of Sighting; ``weights`` are
    the members that each pod counts for, where that is not one."""
    up = [i for i, pod in enumerate(pods) if is_ready(pod)]
    ready, theirs = [pods[i] for i in up], [weights[i] for i in up] if weights else None
    return {
        "members_up": sum(theirs) if theirs else len(ready),
        "placement": by_node(pods, weights),
        "up": by_node(ready, theirs),
        "gone_by": gone_by(pods),
        "unplaced": unplaced(pods),
    }


def unplaced(pods: Iterable[Json]) -> str:
    """Why kube-scheduler finds no node for one of them; empty if it does for all."""
    for pod in pods:
        if pod["spec"].get("nodeName") or is_over(pod) or pod["metadata"].get("deletionTimestamp"):
            continue
        for condition in pod["status"].get("conditions") or []:
            if _is_unplaced(condition):
                return str(condition.get("message") or "no node is fit")
    return ""


def _is_unplaced(condition: Json) -> bool:
    return (condition["type"], condition.get("reason")) == ("PodScheduled", "Unschedulable")


def gone_by(pods: Iterable[Json]) -> datetime | None:
    """When the grace of the last that holds resources ends; None where none does or one is not going."""
    ends = [instant(pod["metadata"].get("deletionTimestamp")) for pod in pods if holds(pod)]
    known = [end for end in ends if end]
    return max(known) if known and len(known) == len(ends) else None


def last_start(pods: Iterable[Json]) -> datetime | None:
    """When the last of them started that has; a gang runs once all of it does."""
    starts = (instant(pod["status"].get("startTime")) for pod in pods)
    return max((start for start in starts if start), default=None)


def harm(pods: Iterable[Json]) -> endings.Ending | None:
    """What came over trimmed ``pods``, the cause that explains the others; None where all is well."""
    return endings.first((pod.get("status") or {}).get(HARM) for pod in pods)


def trim(pod: Json) -> Json:
    """A pod without what nobody here reads."""
    meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    if labels.queue_of(meta.get("labels")):
        originals.disown(pod)
    harm = endings.of_pod(pod)
    keys = ("name", "namespace", "uid", "resourceVersion", "labels", "annotations")
    return {
        "metadata": {
            **{k: meta[k] for k in keys if k in meta},
            "ownerReferences": [
                {k: o.get(k) for k in ("uid", "controller", "kind", "name")}
                for o in meta.get("ownerReferences") or []
            ],
            "deletionTimestamp": meta.get("deletionTimestamp"),
            "creationTimestamp": meta.get("creationTimestamp"),
        },
        "spec": {
            **(_steering(spec) if labels.queue_of(meta.get("labels")) else {}),
            "nodeName": spec.get("nodeName"),
            "resourceClaims": spec.get("resourceClaims"),
            **{key: spec[key] for key in ("overhead", "resources") if key in spec},
            **({"hostNetwork": True} if spec.get("hostNetwork") else {}),
            "containers": [
                {"resources": c.get("resources") or {}, **_ports(spec, c)}
                for c in spec.get("containers") or []
            ],
            **_before(spec.get("initContainers") or ()),
        },
        "status": {
            "phase": status.get("phase"),
            "startTime": status.get("startTime"),
            "conditions": [
                {key: c[key] for key in CONDITION if key in c}
                if _is_unplaced(c)
                else {"type": c["type"], "status": c["status"]}
                for c in status.get("conditions") or []
                if c["type"] == "Ready" or _is_unplaced(c)
            ],
            **({HARM: harm} if harm else {}),
        },
    }


def _before(containers: Sequence[Json]) -> Json:
    """The init containers of a pod, if it has any."""
    keys = ("resources", "restartPolicy", "ports")
    trimmed = [{key: c[key] for key in keys if key in c} for c in containers]
    return {"initContainers": trimmed} if trimmed else {}


def _ports(spec: Json, container: Json) -> Json:
    """Those of its host alone."""
    stated = container.get("ports") or []
    ports = stated if spec.get("hostNetwork") else [p for p in stated if p.get("hostPort")]
    return {"ports": ports} if ports else {}


CONDITION = ("type", "status", "reason", "message")
STEERING = ("affinity", "nodeSelector", "priorityClassName", "schedulingGates", "tolerations")


def _steering(spec: Json) -> Json:
    """What holds back and places a pod that is queued itself."""
    mounted = volumes.that_bind(spec)
    steering = {key: spec[key] for key in STEERING if key in spec}
    return {**steering, "volumes": mounted} if mounted else steering


def owner_of(pod: Json) -> Json:
    """The reference to the object that made the pod; empty for a pod on its own."""
    owners: list[Json] = pod["metadata"].get("ownerReferences") or []
    return next((o for o in owners if o.get("controller")), owners[0] if owners else {})
