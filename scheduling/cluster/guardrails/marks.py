"""Who may write the mark of an admission: whoever holds the right to update ``marks.weir.dev``.

That resource is not served by anybody. It is a name for a right, which enforce.yaml gives to Weir, cluster
administrators have with all others, and teams lack: a person who may patch a Job could else set its
mark and unsuspend it, past every limit. Anybody may take marks away, which lets nobody in; those that an
object is created with say nothing, because they do not name it (``adapters.originals``).

Annotations of Kubernetes' own kinds change with their status as well, and a binding writes its own to the
pod. The status of a custom resource takes nothing else with it.
"""

from __future__ import annotations

from typing import Any

from scheduling.cluster import labels
from scheduling.cluster.guardrails.admission import API, KINDS

Json = dict[str, Any]

NAME = "weir-marks"
GROUP, RESOURCE, VERB = "weir.dev", "marks", "update"
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
_MAY = f"authorizer.group('{GROUP}').resource('{RESOURCE}').check('{VERB}').allowed()"


def policy() -> list[Json]:
    """A ValidatingAdmissionPolicy for all kinds that are queued, in every namespace, and its binding."""
    rules = [_rule(kind.group, kind.version, "UPDATE", kind.written_by) for kind in KINDS]
    rules.append(_rule("", "v1", "CREATE", ["bindings", "pods/binding"]))
    listed = ", ".join(f"'{note}'" for note in PROTECTED)
    kept = f"[{listed}].all(m, !(m in object.metadata.annotations) || ({_STANDS}))"
    message = f"Only Weir writes the annotations {', '.join(PROTECTED)}. Leave them as they stand."
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": rules},
        "matchConditions": [{"name": "annotated", "expression": _ANNOTATED}],
        "validations": [{"expression": f"{kept} || {_MAY}", "message": message}],
    }
    binding = {"policyName": NAME, "validationActions": ["Deny"]}
    return [
        {"apiVersion": API, "kind": kind, "metadata": {"name": NAME}, "spec": spec_}
        for kind, spec_ in (
            ("ValidatingAdmissionPolicy", spec),
            ("ValidatingAdmissionPolicyBinding", binding),
        )
    ]


def _rule(group: str, version: str, operation: str, resources: list[str]) -> Json:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": [operation],
        "resources": resources,
    }
