"""Which GPU classes pods may run on, by what they ask for and where their author lets them run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from scheduling.cluster.adapters import affinity
from scheduling.cluster.adapters.base import ClassSpec
from scheduling.cluster.vocabulary import vendors

Json = dict[str, Any]

WHOLE = 1000
"""Milli-GPU of one."""
NO_CLASS = (
    "It asks for {resource}, of which the cluster has no GPU class. Ask for one that it has, or have an"
    " operator add a class."
)
NOWHERE = (
    "Its node selector, node affinity, runtime class or weir.dev/gpu-classes leave none of the GPU classes"
    " that have what its pods ask for. Allow one of them."
)
NOT_WHOLE = (
    "Each of its pods asks for {gpus:g} GPUs, and Kubernetes gives pods whole ones only. Ask for a whole"
    " number."
)
SEVERAL = (
    "Each of its pods asks for GPUs of several resources ({resources}), and Weir plans those of one. Ask for"
    " one of them."
)
APART = (
    "Its pods ask for GPUs of different classes, and Weir plans a workload on one. Let all of them run on the"
    " same class, or make it several workloads."
)


def fitting_classes(
    asks: Mapping[str, Any], own: Json, classes: Sequence[ClassSpec], preferred: str, *, swaps: bool
) -> tuple[str, ...]:
    """Classes a pod that ``asks`` for resources may run on, in order.

    ``own`` is where its author wants it: classes whose labels its node ``selector`` or all of its
    required ``terms`` contradict are none. ``preferred`` is the annotation's list: its known classes with
    a resource the pods ask for (any class where the kind ``swaps`` one for another), its unknown names as
    they stand (the engine says so). Without it: every class with a resource the pods ask for.
    """
    fits = {c.name for c in classes if asks.get(c.resource_name)}
    open_to = {c.name: c for c in classes if _allows(own, c.node_labels)}
    named = preferred.replace("\0", "").split(",")
    names = [name.strip() for name in named if name.strip()]
    if not names:
        return tuple(name for name in open_to if name in fits)
    known = {c.name for c in classes}
    allowed = open_to.keys() if swaps and fits else open_to.keys() & fits
    return tuple(name for name in names if name in allowed or name not in known)


def in_all(fitting: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Classes that fit every role, in the order of the first."""
    return tuple(name for name in fitting[0] if all(name in other for other in fitting[1:]))


def gpu_resources(asks: Mapping[str, int], names: Sequence[str]) -> list[str]:
    """What of it is GPUs: the resources ``names`` of classes, and those of none that are known to be GPUs.
    Devices of no class beside GPUs of one are what comes with these, such as network cards."""
    requests = sorted(n for n, some in asks.items() if some and (n in names or vendors.is_gpu(n)))
    known = [n for n in requests if n in names or not n.startswith(vendors.DEVICE_CLASS)]
    return known or requests


def fault(
    gpus: Set[int],
    requests: Sequence[Mapping[str, int]],
    fitting: Sequence[tuple[str, ...]],
    names: Sequence[str],
) -> str:
    """Why work cannot be planned on any class, with the remedy; empty when it can.

    Of each role of its members: how many milli-``gpus``, all it ``asked`` for, the classes ``fitting``.
    ``names`` are the resources of the classes. Without GPUs it needs no class, unless what it asks for
    is a GPU that belongs to none.
    """
    if parts := [amount for amount in gpus if amount % WHOLE]:
        return NOT_WHOLE.format(gpus=parts[0] / WHOLE)
    resources = [gpu_resources(asks, names) for asks in requests]
    if several := next((found for found in resources if len(found) > 1), None):
        return SEVERAL.format(resources=", ".join(several))
    if not any(gpus):
        return next((NO_CLASS.format(resource=name) for found in resources for name in found), "")
    if in_all(fitting):
        return ""
    return APART if all(fitting) else NOWHERE


def _allows(own: Json, node_labels: Mapping[str, str]) -> bool:
    if any(own["selector"].get(key, value) != value for key, value in node_labels.items()):
        return False
    terms = own["terms"]
    return not terms or any(_is_open(term, node_labels) for term in terms)


def _is_open(term: Json, node_labels: Mapping[str, str]) -> bool:
    """Whether nodes with these labels can match the term; of others it says what it will."""
    return all(
        affinity.holds(expression, node_labels)
        for expression in term.get("matchExpressions") or []
        if expression.get("key") in node_labels
    )
