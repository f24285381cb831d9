"""Accounts that may write the mark of an admission: those that hold the right to update ``marks.weir.dev``.

That resource is not served by anybody. It is a name for a right, which enforce.yaml gives to Weir, cluster
administrators have with all others, and teams lack: a person who may patch a Job could else set its
mark and unsuspend it, past every limit. Anybody may take marks away, which lets nobody in; those that an
object is created with say nothing, because they do not name it (``adapters.originals``).

Annotations of Kubernetes' own kinds change with their status as well, and a binding writes its own to the
pod. The status of a custom resource takes nothing else with it.
"""

from __future__ import annotations

from typing import Any

from scheduling.cluster.guardrails import callers
from scheduling.cluster.guardrails.admission import bound, rule
from scheduling.cluster.guardrails.kinds import KINDS
from scheduling.cluster.vocabulary import labels

Json = dict[str, Any]

NAME = "weir-marks"
PROTECTED = (*labels.MARK, labels.ORIGINAL, labels.GROUP_UID, labels.MOVES_TO)

_STANDS = (
    "oldObject != null && has(oldObject.metadata.annotations) && m in oldObject.metadata.annotations && "
    "oldObject.metadata.annotations[m] == object.metadata.annotations[m]"
)
_ANNOTATED = (
    "has(object.metadata.annotations) && (oldObject == null || "
    "!has(oldObject.metadata.annotations) || "
    "object.metadata.annotations != oldObject.metadata.annotations)"
)
"""Most writes leave annotations alone, and to compare them all costs half as much as to look at each mark."""


def policy() -> list[Json]:
    """A ValidatingAdmissionPolicy for all kinds that are queued, in every namespace, and its binding."""
    rules = [rule(kind, "UPDATE") for kind in KINDS]
    bindings = {"operations": ["CREATE"], "resources": ["bindings", "pods/binding"]}
    rules.append({"apiGroups": [""], "apiVersions": ["v1"], **bindings})
    listed = ", ".join(f"'{note}'" for note in PROTECTED)
    check = f"[{listed}].all(m, !(m in object.metadata.annotations) || ({_STANDS}))"
    message = f"Only Weir writes the annotations {', '.join(PROTECTED)}. Leave them as they stand."
    spec = {
        "matchConstraints": {"resourceRules": rules},
        "matchConditions": [{"name": "annotated", "expression": _ANNOTATED}],
        "validations": [
            {"expression": f"{check} || {callers.holds(callers.MARKS)}", "message": message}
        ],
    }
    return bound(NAME, spec)
