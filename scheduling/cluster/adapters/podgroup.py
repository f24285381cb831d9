"""Plain pods in a group: held back by a scheduling gate, let go pod by pod, evicted by deletion.

A group is no object of the cluster. It is gathered from pods that carry a queue label and the gate
(or the mark of an admission), share ``weir.dev/pod-group`` and say how many they are; a pod without
that label is a group of one. Every act is carried out on each of its pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from scheduling.cluster.adapters import (
    faults,
    fitting,
    merging,
    needs,
    notes,
    originals,
    steering,
    turns,
    unlike,
)
from scheduling.cluster.adapters import pods as pods_of
from scheduling.cluster.adapters.base import DELETE, Admission, ClassSpec, Sighting
from scheduling.cluster.adapters.cel import DEADLINE, gpus_of, policy_kind
from scheduling.cluster.adapters.demand import Demand, named_by, priority_class
from scheduling.cluster.vocabulary import labels
from scheduling.cluster.vocabulary.devices import Claims
from scheduling.cluster.vocabulary.limit_ranges import Defaults
from scheduling.cluster.vocabulary.quantities import whole
from scheduling.cluster.vocabulary.runtimes import NO_RUNTIMES, Runtimes

Json = dict[str, Any]

UNCOUNTED = (
    "Its group does not say how many pods it has. Set the annotation weir.dev/pod-group-total."
)
CROWDED = (
    "{pods} pods are in its group, which says it has {total}. Set weir.dev/pod-group-total to what it has,"
    " or give other pods another group."
)


GATED = (
    "has(object.spec.schedulingGates) && "
    f"object.spec.schedulingGates.exists(g, g.name == '{labels.GATE}')",
    f"Add the scheduling gate {labels.GATE} to spec.schedulingGates",
)


class PodGroupAdapter:
    kind = "PodGroup"
    api_version = "v1"
    resource = "pods"
    list_path = "/api/v1/pods"
    is_mirrored_whole = False
    pod_label = labels.POD_GROUP
    makes_queued = False
    policy = policy_kind(
        "Pod", resource, api_version, pods="[object.spec]", waits=GATED,
        gpus=gpus_of("object.spec"), limit_s=DEADLINE,
    )  # fmt: skip

    def path(self, namespace: str, name: str = "") -> str:
        base = f"/api/v1/namespaces/{namespace}/pods"
        return f"{base}/{name}" if name else base

    def trim(self, obj: Json) -> Json:
        return pods_of.trim(obj)

    def owner_name(self, pod: Json) -> str | None:
        return None

    def is_suspended(self, obj: Json) -> bool:
        return _is_gated(obj)

    def is_over(self, obj: Json) -> bool:
        """It goes. Pods that ended are stopped with the others: a gang starts whole or not at all."""
        return bool(obj["metadata"].get("deletionTimestamp"))

    def unsettled(self, obj: Json) -> int:
        return 0

    def queued(self, manifest: Json) -> Json:
        gates = manifest["spec"].setdefault("schedulingGates", [])
        if not _is_gated(manifest):
            gates.append({"name": labels.GATE})
        return manifest

    def filled(self, obj: Json, defaults: Defaults) -> Json:
        """The API server wrote them into the pods already."""
        return obj

    def demand_of(
        self,
        obj: Json,
        classes: Sequence[ClassSpec],
        claims: Claims = pods_of.NO_CLAIMS,
        runtimes: Runtimes = NO_RUNTIMES,
    ) -> Demand | None:
        return None

    def observe(
        self,
        obj: Json,
        pods: Sequence[Json],
        classes: Sequence[ClassSpec],
        claims: Claims = pods_of.NO_CLAIMS,
        runtimes: Runtimes = NO_RUNTIMES,
        parts: Sequence[Json] = (),
        demand: Demand | None = None,
    ) -> Sighting:
        """What ``runtimes`` add stands in the pods themselves."""
        said, total = notes.of(obj), _total(pods[0])
        pods = _within(pods, total)
        names = tuple(c.resource_name for c in classes)
        part = unlike.part_of(pods_of.gpus(p["spec"], names, claims) for p in pods)
        each = unlike.weights(pods, part, names, claims)
        size = sum(each) if each else min(total or len(pods), faults.LARGEST_GANG)
        outcome = _outcome(pods, total)
        gated = [p for p in pods if _is_gated(p) and pods_of.phase(p) == "Pending"]
        return Sighting(
            generation=0,
            priority_class=priority_class(obj["metadata"], [pods[0]["spec"]]),
            pod_priority_classes=named_by(pod["spec"] for pod in pods),
            run_time_limit_s=notes.own_limit_s(said),
            admitted_limit_s=originals.of(pods[0]).limit_s,
            min_members=size,
            max_members=size,
            members=sum(each) if each else min(len(pods), total or len(pods)),
            members_wanted=_wanted_of(pods, each) if each else _expected(pods, total),
            suspended=len(gated) == len(pods),
            unfinished=bool(gated),
            deleting=all(p["metadata"].get("deletionTimestamp") for p in pods),
            outcome=outcome,
            ending=None if outcome == "succeeded" else pods_of.harm(pods),
            started=pods_of.last_start(pods),
            lost=_sum(pods, each, lambda p: pods_of.phase(p) == "Failed"),
            pods_left=max(_sum(pods, w, lambda p: _is_left(p, gated)) for w in (each, None)),
            parts=tuple((p["metadata"]["name"], p["metadata"]["uid"]) for p in pods),
            incomplete=_incomplete(pods, total),
            **notes.identity(self.kind, obj),
            **_needs(pods, said, classes, claims),
            **pods_of.presence(pods, each),
            **notes.wishes(said, pods),
            **notes.state(said, classes),
        )

    def admission(self, obj: Json, admission: Admission) -> Json:
        """``obj`` is one of its pods; all carry the group's identity from now on."""

        def admit(new: Json) -> None:
            spec = new["spec"]
            original = originals.of(obj)
            own = steering.own_of(spec, original.roles.get("pod"))
            original.roles["pod"] = own
            original.limit_s = notes.own_limit_s(notes.of(obj))
            if gpus := pods_of.gpus(spec, admission.resource_names, admission.claims):
                theirs = unlike.of_size(admission, gpus)
                steering.to_hosts(spec, own, theirs, fixed=True)
                steering.tolerate(spec, own, admission.gpu_class)
            spec["schedulingGates"] = [
                g for g in spec["schedulingGates"] if g["name"] != labels.GATE
            ]
            new["metadata"]["annotations"] |= notes.mark(original, admission, admission.members)

        return merging.edited(obj, admit)

    def suspension(self, obj: Json, evicted_by: int | None) -> Json:
        """A pod that was let go cannot be gated again: it goes, and whoever made it makes another."""
        return {DELETE: True}

    def restoration(self, obj: Json, resource_names: Sequence[str], claims: Claims) -> Json:
        """Nothing: what was let go does not wait again."""
        return {}

    def resize(self, obj: Json, admission: Admission) -> Json:
        return {}


def gather(pods: Iterable[Json]) -> list[tuple[Json, list[Json]]]:
    """Groups among ``pods``: what stands for the group as an object, and its pods, oldest first."""
    groups: dict[tuple[str, str], list[Json]] = {}
    for pod in pods:
        meta = pod["metadata"]
        said = meta.get("labels") or {}
        marked = labels.GPU_CLASS in notes.of(pod)
        if labels.queue_of(said) and (marked or _is_gated(pod)):
            name = labels.pod_group_of(said) or meta["name"]
            groups.setdefault((meta["namespace"], name), []).append(pod)
    return [_as_object(name, found) for (_, name), found in sorted(groups.items())]


def _as_object(name: str, found: list[Json]) -> tuple[Json, list[Json]]:
    """The group speaks through its oldest pod, of those let go if some were.

    Its uid outlives that pod, once it is admitted.
    """
    pods = sorted(
        found, key=lambda p: (p["metadata"]["creationTimestamp"] or "", p["metadata"]["name"])
    )
    said = next((p for p in pods if not _is_gated(p)), pods[0])["metadata"]
    oldest: str = pods[0]["metadata"]["uid"]
    uid = next((u for p in pods if (u := notes.of(p).get(labels.GROUP_UID))), oldest)
    return {"metadata": {**said, "name": name, "uid": uid}}, pods


def _is_gated(pod: Json) -> bool:
    return any(g.get("name") == labels.GATE for g in pod["spec"].get("schedulingGates") or [])


def _needs(
    pods: Sequence[Json], said: dict[str, str], classes: Sequence[ClassSpec], claims: Claims
) -> Json:
    """What a member asks for and where it may run, as the oldest pod has it, or why none can be planned."""
    names = tuple(c.resource_name for c in classes)
    # Those without GPUs come along unplanned.
    counted = [p for p in pods if pods_of.gpus(p["spec"], names, claims)] or list(pods)
    spec = counted[0]["spec"]
    asks = pods_of.requests_of(spec, claims)
    gpus = [pods_of.gpus(p["spec"], names, claims) for p in counted]
    amounts = set(gpus)
    own = steering.own_of(spec, originals.of(counted[0]).roles.get("pod"))
    members = [
        needs.Member(
            pod["spec"],
            pod["metadata"],
            steering.own_of(pod["spec"], originals.of(pod).roles.get("pod")),
            pods_of.requests_of(pod["spec"], claims),
        )
        for pod in counted
    ]
    mixed = faults.mixed(amounts)
    shapes = unlike.shapes_of([("", (1, 1))] * len(gpus), gpus, members, names)
    fits = fitting.fitting_classes(
        asks, own, classes, said.get(labels.GPU_CLASSES, ""), swaps=False
    )
    return {
        "gpus": max(amounts),
        "gpu_classes": fits,
        "shapes": shapes,
        **needs.fields(members, pods[0]["metadata"], names),
        **unlike.fields(shapes, None),
        "fault": (mixed or _crowded(pods) if _total(pods[0]) else UNCOUNTED)
        or pods_of.claims_fault(spec, claims)
        or fitting.fault(amounts, [asks], [fits], names)
        or turns.fault(said),
    }


def _total(pod: Json) -> int | None:
    """Pods that the group of ``pod`` has when it is complete; None when it does not say."""
    if not labels.pod_group_of(pod["metadata"].get("labels") or {}):
        return 1
    said = notes.of(pod)
    return whole(said.get(labels.POD_GROUP_TOTAL) or said.get(labels.KUEUE_POD_GROUP_TOTAL)) or None


def _within(pods: Sequence[Json], total: int | None) -> Sequence[Json]:
    """``pods`` without those that come on top of a group that is let go: nothing of it is theirs."""
    let_go = [pod for pod in pods if not _is_gated(pod)]
    return let_go if let_go and _alive(pods) > (total or len(pods)) else pods


def _crowded(pods: Sequence[Json]) -> str:
    total, alive = _total(pods[0]), _alive(pods)
    if not total or alive <= total or not all(map(_is_gated, pods)):
        return ""
    return CROWDED.format(pods=alive, total=total)


def _alive(pods: Sequence[Json]) -> int:
    return sum(not pods_of.is_over(pod) for pod in pods)


def _incomplete(pods: Sequence[Json], total: int | None) -> str:
    if total is None or len(pods) >= total:
        return ""
    return f"{len(pods)} of the {total} pods of its group are there; it waits for the rest."


def _sum(pods: Sequence[Json], weights: Sequence[int] | None, are: Callable[[Json], bool]) -> int:
    """Those that are so, each by its weight."""
    each = weights or [1] * len(pods)
    return sum(weight for pod, weight in zip(pods, each, strict=True) if are(pod))


def _is_left(pod: Json, gated: Sequence[Json]) -> bool:
    return not pods_of.is_over(pod) and pod not in gated


def _wanted_of(pods: Sequence[Json], weights: Sequence[int]) -> int:
    return _sum(pods, weights, lambda pod: pods_of.phase(pod) != "Succeeded")


def _expected(pods: Sequence[Json], total: int | None) -> int:
    """One that stands in for another that failed is not missed twice."""
    left = sum(pods_of.phase(pod) != "Succeeded" for pod in pods)
    done = len(pods) - left
    return min(left, max(0, (total or len(pods)) - done))


def _outcome(pods: Sequence[Json], total: int | None) -> str:
    """As many as it has to be have succeeded, others in place of those that failed; or none is left to."""
    phases = [pods_of.phase(pod) for pod in pods]
    if len(pods) < (total or 1) or not all(p in ("Succeeded", "Failed") for p in phases):
        return ""
    return "succeeded" if phases.count("Succeeded") >= (total or len(pods)) else "failed"
