"""The caller of a request, and the owner of an object, in CEL.

What a controller makes follows the turn of what it was made for, so it is not judged once more. Anybody can
write an owner reference, though: it counts where a controller's own account makes the request, and where
the owner is of a kind that is judged itself. Accounts of Kubernetes' own controllers live in
``kube-system``; those of operators hold the right to create the resource ``owned`` of the group ``weir.dev``,
which nobody serves. Accounts of managed namespaces never count, because people there can act as them.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduling.cluster.guardrails.kinds import CARRIERS, KINDS
from scheduling.cluster.vocabulary import people

GROUP = "weir.dev"
OWNED, MARKS = ("owned", "create"), ("marks", "update")
"""(resource, verb) of the rights that tell operators, and whoever may act for Weir, from others."""


PERSON = (
    f"(request.userInfo.username.startsWith('{people.PREFIX}') && "
    f"'{people.GROUP}' in request.userInfo.groups "
    f"? request.userInfo.username.substring({len(people.PREFIX)}) : request.userInfo.username)"
)
"""The caller, by the name that people go by: the portal acts for them under a prefix of its own, in a group
of its own. A provider that names somebody with that prefix does not make them somebody else."""


def holds(right: tuple[str, str]) -> str:
    """Whether the caller has one of the rights that nobody serves."""
    resource, verb = right
    return f"authorizer.group('{GROUP}').resource('{resource}').check('{verb}').allowed()"


def is_controller(namespaces: Sequence[str]) -> str:
    """Whether a controller's own account asks; ``namespaces`` are the managed ones."""
    caller = "request.userInfo.username"
    managed = ", ".join(f"'system:serviceaccount:{name}:'" for name in sorted(namespaces))
    operator = f"{holds(OWNED)} && ![{managed}].exists(a, {caller}.startsWith(a))"
    return (
        f"({caller} == 'system:kube-controller-manager' || "
        f"{caller}.startsWith('system:serviceaccount:kube-system:') || ({operator}))"
    )


IS_NODE = "('system:nodes' in request.userInfo.groups)"
"""A kubelet asks: pods that its machine's own files describe stand on it from the beginning."""

_JUDGED = "[" + ", ".join(f"'{kind.qualified}'" for kind in (*KINDS, *CARRIERS)) + "]"
_IS_JUDGED = f"(o.apiVersion.split('/')[0] + '/' + o.kind) in {_JUDGED}"

IS_OWNED = (
    "(has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, "
    f"has(o.controller) && o.controller && {_IS_JUDGED}))"
)
"""An object of a judged kind controls it."""
OWNERS = (
    "(has(object.metadata.ownerReferences) ? object.metadata.ownerReferences.filter(o, "
    f"{_IS_JUDGED}).map(o, o.uid + (has(o.controller) && o.controller ? ' controls' : '')) : [])"
)
"""Those of its owners that are of judged kinds."""
