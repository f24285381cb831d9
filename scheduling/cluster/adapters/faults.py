"""Why work cannot be planned as it stands, with the remedy; each function gives an empty text when it can."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Any

from scheduling.cluster.adapters import fitting
from scheduling.cluster.adapters import pods as pods_of
from scheduling.cluster.vocabulary.devices import Claims
from scheduling.engine.model import MOST_ROLES

Json = dict[str, Any]

SHARES = (
    "Its pods ask for {amounts} GPUs, and pods of unlike sizes take whole GPUs. Give each of them whole GPUs,"
    " or none to those that only lead."
)
TOO_UNLIKE = "Its pods ask for {count} unlike numbers of GPUs. Have at most {most}."


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
        if spec.get("resourceClaims") or fitting.gpu_resources(pods_of.requests_of(spec), names):
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


def mixed(amounts: Set[int]) -> str:
    """Of members that ask for those numbers of milli-GPU."""
    if len(amounts) < 2:
        return ""
    if len(amounts) > MOST_ROLES:
        return TOO_UNLIKE.format(count=len(amounts), most=MOST_ROLES)
    return SHARES.format(amounts=_each(amounts)) if any(a % 1000 for a in amounts) else ""


def _each(amounts: Set[int]) -> str:
    return " and ".join(f"{amount / 1000:g}" for amount in sorted(amounts))
