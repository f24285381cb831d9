"""Why work cannot be planned as it stands, with the remedy; each function gives an empty text when it can."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Any

from scheduling.cluster.adapters import fitting
from scheduling.cluster.adapters import pods as pods_of
from scheduling.cluster.vocabulary import labels
from scheduling.cluster.vocabulary.devices import Claims

Json = dict[str, Any]

MIXED = (
    "Its pods ask for {amounts} GPUs, and Weir plans members of one size. Give every pod the same"
    " number of GPUs, or none to those that only lead; or annotate it with {key}: {value}, and each is"
    " planned and charged as one of {most}."
)


LARGEST_GANG = 150_000
"""As many pods as Kubernetes is built for (kubernetes.io, "Considerations for large clusters")."""
TOO_MANY = (
    "It asks for {pods:,} pods at once, and no cluster has more than {most:,}. Ask for fewer."
)
NOT_HERE = (
    "It is managed by {controller}, which nothing here starts or stops, so Weir holds no GPUs for it. Make it"
    " anew without managedBy to run it here, or take its queue label off."
)
NO_MEMBER = (
    "A pod of it that is no member asks for GPUs, which nobody plans. Let only members have them."
)
NO_PODS = "It asks for no pods. Ask for at least one."


def managed(controller: str) -> str:
    """Of work that another ``controller`` runs, where one is named."""
    return NOT_HERE.format(controller=controller[:63]) if controller else ""


def helpers(specs: Iterable[Json], names: Sequence[str]) -> str:
    """Of the specs of pods that are no members; ``names`` are the resources of GPU classes."""
    for spec in specs:
        if spec.get("resourceClaims") or fitting.gpu_resources(pods_of.asked(spec), names):
            return NO_MEMBER
    return ""


def claims(specs: Iterable[Json], templates: Claims) -> str:
    """Of the pod specs of members, and the claim templates that there are."""
    return next((fault for spec in specs if (fault := pods_of.claims_fault(spec, templates))), "")


def size(pods: int) -> str:
    """Of a gang of so many."""
    if pods > LARGEST_GANG:
        return TOO_MANY.format(pods=pods, most=LARGEST_GANG)
    return "" if pods else NO_PODS


def mixed(amounts: Set[int], *, as_largest: bool) -> str:
    """Of members that ask for those numbers of milli-GPU."""
    if as_largest or len(amounts) < 2:
        return ""
    each = [f"{amount / 1000:g}" for amount in sorted(amounts)]
    return MIXED.format(
        amounts=" and ".join(each), key=labels.MEMBER_SIZE, value=labels.LARGEST, most=each[-1]
    )
