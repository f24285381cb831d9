"""The rules for work in managed namespaces, as admission policies.

GPU work names a queue and starts suspended. No work, with GPUs or without, names a priority class that is
none of Weir's or a node: either would take what others hold. One policy a kind, because each keeps its
pod templates and its switch elsewhere. What a controller makes for something that is judged (``callers``)
follows its turn. So the kinds that would carry GPU pods past the queues are judged as well: those that
cannot wait are refused.

An update, be it of the status, is judged by what it changes: it may neither make GPU work of other work,
nor take the queue from GPU work, nor change that of work which runs, nor say that another object made it.
Whatever else is done to work that stood there before is taken.

What is called as GPUs of any vendor are (``vendors``) counts as them, whether or not a GPU class lists it. A
policy cannot look up the template that a ResourceClaim is made from: whoever claims devices counts as GPU
work. A pod that asks for zero of a resource does not ask for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scheduling.cluster.adapters.cel import IS_GPU, PolicyKind, gpu_variables, is_there, listed
from scheduling.cluster.guardrails import callers, secrecy
from scheduling.cluster.guardrails.kinds import CARRIERS, KINDS
from scheduling.cluster.vocabulary import labels

Json = dict[str, Any]

API = "admissionregistration.k8s.io/v1"
MOST_GRACE_S = 3600
"""For a last checkpoint; what sits on after its turn keeps others from theirs."""
INSIDE = {"namespaceSelector": {"matchLabels": {labels.MANAGED: "true"}}}


@dataclass(frozen=True, slots=True)
class Terms:
    """What the policies know of a cluster: resources of its GPU classes, Weir's priority classes, and managed
    namespaces."""

    gpu_resources: Sequence[str]
    priorities: Sequence[str]
    namespaces: Sequence[str]


_STANDS = (
    "!has(object.metadata.deletionTimestamp) || "
    "(oldObject != null && (object.spec != oldObject.spec || "
    "has(object.metadata.labels) != has(oldObject.metadata.labels) || "
    "(has(object.metadata.labels) && object.metadata.labels != oldObject.metadata.labels)))"
)
"""What is on its way out is left in peace where it stays as it is: somebody takes its finalizers."""
_LABELS, _LABELS_BEFORE = "object.metadata.labels", "oldObject.metadata.labels"
_JUDGED = (
    "!has(request.subResource) || request.subResource != 'status' || "
    f"has({_LABELS}) != has({_LABELS_BEFORE}) || (has({_LABELS}) && {_LABELS} != {_LABELS_BEFORE})"
)
"""Of what is judged a status brings labels alone, and statuses are written all the time."""
_FIXED = "The queue of GPU work that runs cannot be changed. Stop it first, or make it anew."
_OWNER = (
    "Only a controller says which object its GPU work was made for. "
    "Leave metadata.ownerReferences as they stand."
)
_RELEASED = (
    "By its labels a controller knows what it made: those of GPU work stay as they are. "
    "Change the labels of what it was made for."
)
_UNGATED = (
    f"Only Weir takes the scheduling gate {labels.GATE} from a pod, when its turn comes. "
    "Leave spec.schedulingGates as they stand."
)
_LET_GO = (
    "Only Weir lets GPU work of a queue go, when its turn comes. Leave it waiting; what is held is "
    f"released by taking the annotation {labels.HOLD} away."
)
_GROWN = (
    "Only Weir makes GPU work larger that runs. Submit more work beside it, or stop it and let it wait "
    "in its new size."
)
_PLACED = "Where work runs is for Weir and the scheduler to say. Leave nodeName out."
_QUEUES_HERE = (
    "has(namespaceObject.metadata.annotations) && "
    f"'{labels.QUEUES}' in namespaceObject.metadata.annotations "
    f"? ' Queues of this namespace: ' + namespaceObject.metadata.annotations['{labels.QUEUES}'] + '.' : ''"
)

_STRATEGY = "object.spec.strategy"
_SURGE = f"{_STRATEGY}.rollingUpdate.maxSurge"
_GROUP_SURGE = "object.spec.rolloutStrategy.rollingUpdateConfiguration.maxSurge"
_NONE = "in ['0', '0%']"
_ROLLOUTS = {
    "Deployment": (
        "object.spec.template",
        f"has({_STRATEGY}) && ((has({_STRATEGY}.type) && {_STRATEGY}.type == 'Recreate') || "
        f"({is_there(_SURGE, _STRATEGY)} && string({_SURGE}) {_NONE}))",
        "spec.strategy.rollingUpdate.maxSurge: 0, or spec.strategy.type: Recreate",
    ),
    "LeaderWorkerSet": (
        "object.spec.leaderWorkerTemplate",
        f"!({is_there(_GROUP_SURGE, 'object.spec')}) || string({_GROUP_SURGE}) {_NONE}",
        "spec.rolloutStrategy.rollingUpdateConfiguration.maxSurge: 0",
    ),
}
"""Kind -> what its pods are made from, whether a rollout makes none beside the old ones, how to say so."""
_NOTES = "namespaceObject.metadata.annotations"
_ACCOUNTS = f"has({_NOTES}) && '{labels.ACCOUNTS}' in {_NOTES}"


def policies(terms: Terms) -> list[Json]:
    """A ValidatingAdmissionPolicy and its binding for every kind."""
    return [part for kind in (*KINDS, *CARRIERS) for part in _policy(kind, terms)]


def bound(name: str, spec: Json, inside: Json | None = None, **more: Json) -> list[Json]:
    """The ValidatingAdmissionPolicy of that name, and the binding by which it denies (``inside``: where)."""
    binding = {"policyName": name, "validationActions": ["Deny"], **more}
    if inside:
        binding["matchResources"] = inside
    return [
        {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec_}
        for kind, spec_ in (
            ("ValidatingAdmissionPolicy", {"failurePolicy": "Fail", **spec}),
            ("ValidatingAdmissionPolicyBinding", binding),
        )
    ]


def rule(kind: PolicyKind, *operations: str) -> Json:
    """What a policy for ``kind`` is asked about."""
    return {
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "operations": list(operations),
        "resources": kind.written_by,
    }


def _policy(kind: PolicyKind, terms: Terms) -> list[Json]:
    spec = {
        "matchConstraints": {"resourceRules": [rule(kind, "CREATE", "UPDATE")]},
        "variables": [
            {"name": name, "expression": text} for name, text in _variables(kind, terms).items()
        ],
        "matchConditions": [
            {"name": "judged", "expression": _JUDGED},
            {
                "name": "of-its-own",
                "expression": f"!({callers.IS_OWNED} && {callers.is_controller(terms.namespaces)})",
            },
            {"name": "stands", "expression": _STANDS},
        ],
        "validations": [
            *_on_queues(kind),
            *_on_owners(),
            *_on_waiting(kind),
            *_on_growth(kind),
            *_on_rollout(kind),
            *_on_grace(kind),
            _on_priority(kind, terms.priorities),
            _on_nodes(kind),
            _on_accounts(kind),
            secrecy.on_secrets(kind),
        ],
    }
    return bound(f"weir-{kind.resource}", spec, INSIDE)


def _variables(kind: PolicyKind, terms: Terms) -> dict[str, str]:
    asks = asks_gpus(kind)
    return {
        **gpu_variables(terms.gpu_resources),
        "podSpecs": kind.pod_specs,
        "asksGpus": asks,
        "podSpecsBefore": f"request.operation == 'UPDATE' ? ({before(kind.pod_specs)}) : []",
        "askedGpus": f"request.operation == 'UPDATE' && ({before(asks)})",
        "owners": callers.OWNERS,
        "ownersBefore": f"request.operation == 'UPDATE' ? {before(callers.OWNERS)} : []",
        "byController": callers.is_controller(terms.namespaces),
        "accounts": f"{_ACCOUNTS} ? {_NOTES}['{labels.ACCOUNTS}'].split(',') : []",
        "secrets": secrecy.NAMED,
    }


def _on_queues(kind: PolicyKind) -> list[Json]:
    if not kind.waits:
        expression = "!variables.asksGpus || variables.askedGpus"
        return [{"expression": expression, "message": kind.remedy}]
    place = "" if kind.meta == "object.metadata" else f" in {kind.meta.removeprefix('object.')}"
    label = f"Add the label {labels.QUEUE}: QUEUE{place}."
    named = f"'GPU work in namespace ' + request.namespace + ' has to name a queue. {label}'"
    waiting = f"{kind.remedy}: GPU work is created waiting, and Weir starts it when its turn comes."
    names, queue = names_a_queue(kind.meta), queue_of(kind.meta)
    unnamed = f"(variables.askedGpus && !({before(names)}))"
    stays = f"!({names}) || {unnamed} || ({kind.waits}) || ({before(kind.waits)})"
    return [
        {
            "expression": f"!variables.asksGpus || ({names}) || {unnamed}",
            "messageExpression": f"{named} + ({_QUEUES_HERE})",
            "message": f"GPU work has to name a queue. {label}",
        },
        {
            "expression": f"!variables.asksGpus || ({kind.waits}) || variables.askedGpus",
            "message": waiting,
        },
        {
            "expression": f"!variables.askedGpus || {stays} || {queue} == {before(queue)}",
            "message": _FIXED,
        },
    ]


def _on_owners() -> list[Json]:
    """Nobody gets GPU work away from its queue, or out of its controller's sight, by saying whose it is."""
    work = "!(variables.asksGpus || variables.askedGpus) || variables.byController"
    same = (
        f"has({_LABELS}) == has({_LABELS_BEFORE}) && "
        f"(!has({_LABELS}) || {_LABELS} == {_LABELS_BEFORE})"
    )
    theirs = "!variables.askedGpus || size(variables.ownersBefore) == 0 || variables.byController"
    return [
        {"expression": f"{work} || variables.owners == variables.ownersBefore", "message": _OWNER},
        {
            "expression": f"{theirs} || ({same}) || {callers.holds(callers.MARKS)}",
            "message": _RELEASED,
        },
    ]


def _on_waiting(kind: PolicyKind) -> list[Json]:
    """What waits in a queue is let go by Weir. The cycle would stop what others let go, but until then its
    pods hold GPUs that are another's."""
    if not kind.waits:
        return []
    freed = f"({before(names_a_queue(kind.meta))}) && ({before(kind.waits)}) && !({kind.waits})"
    expression = f"!variables.askedGpus || !({freed}) || {callers.holds(callers.MARKS)}"
    return [{"expression": expression, "message": _UNGATED if kind.name == "Pod" else _LET_GO}]


def _on_growth(kind: PolicyKind) -> list[Json]:
    """What runs holds what its turn gave it. The cycle would cut it back, but the pods that came meanwhile
    stay for as long as their grace lasts."""
    if not kind.waits:
        return []
    exempt = f"!variables.askedGpus || ({before(kind.waits)}) || ({kind.waits})"
    expression = (
        f"{exempt} || ({kind.gpus}) <= ({before(kind.gpus)}) || {callers.holds(callers.MARKS)}"
    )
    return [{"expression": expression, "message": _GROWN}]


def _on_rollout(kind: PolicyKind) -> list[Json]:
    """Pods of a new template come beside the old ones, and with every further edit some more."""
    if kind.name not in _ROLLOUTS:
        return []
    template, careful, remedy = _ROLLOUTS[kind.name]
    same = f"!variables.askedGpus || {template} == {before(template)}"
    runs = f"!({before(kind.waits)}) && !({kind.waits})"
    expression = f"{same} || !({runs}) || ({careful}) || {callers.holds(callers.MARKS)}"
    sentence = "GPU work that runs is renewed without more GPUs than it has."
    return [{"expression": expression, "message": f"{sentence} Set {remedy}."}]


def _on_grace(kind: PolicyKind) -> list[Json]:
    """Evicted work computes on until its grace ends."""
    if not kind.waits:
        return []
    field = "terminationGracePeriodSeconds"
    condition = f"has(s.{field}) && s.{field} > {MOST_GRACE_S} && !({_stood(field)})"
    return [
        {
            "expression": f"!variables.asksGpus || !{kind.any_pod(condition)}",
            "message": f"GPU pods leave within an hour. Set {field} to {MOST_GRACE_S} at most.",
        }
    ]


def _on_priority(kind: PolicyKind, priorities: Sequence[str]) -> Json:
    """A template names one of Weir's classes, a new object's the one that its label does; or none."""
    known = f"s.priorityClassName in {listed(priorities)}"
    stood = _stood("priorityClassName")
    meta = f"{kind.meta}.labels"
    label = f"has({kind.meta}) && has({meta}) && '{labels.PRIORITY_CLASS}' in {meta}"
    other = f"{label} && {meta}['{labels.PRIORITY_CLASS}'] != s.priorityClassName"
    wrong = f"!({known}) || (request.operation == 'CREATE' && {other})"
    named = "has(s.priorityClassName) && s.priorityClassName != ''"
    condition = f"{named} && !({stood}) && ({wrong})"
    remedy = f"Leave priorityClassName out, or use one of {', '.join(sorted(priorities)) or 'none'}"
    remedy += f"; the label {labels.PRIORITY_CLASS}, where there is one, says which."
    first = f"variables.podSpecs.filter(s, {condition})[0].priorityClassName"
    return {
        "expression": f"!{kind.any_pod(condition)}",
        "messageExpression": f"'Work here does not run with the priority class ' + {first} + '. {remedy}'",
        "message": f"Work here runs with Weir's priority classes only. {remedy}",
    }


def _on_nodes(kind: PolicyKind) -> Json:
    condition = f"has(s.nodeName) && s.nodeName != '' && !({_stood('nodeName')})"
    return {"expression": f"!{kind.any_pod(condition)} || {callers.IS_NODE}", "message": _PLACED}


def _on_accounts(kind: PolicyKind) -> Json:
    """An account that may make pods may act as any account of the namespace: those that were not made for
    work belong to what else stands there, and may do more than people."""
    condition = " || ".join(
        f"(has(s.{field}) && !(s.{field} in ['', 'default']) && !(s.{field} in variables.accounts) && "
        f"!({_stood(field)}))"
        for field in ("serviceAccountName", "serviceAccount")
    )
    return {
        "expression": f"!{kind.any_pod(condition)}",
        "message": "Work here runs as the service account 'default', or as one that the annotation "
        f"{labels.ACCOUNTS} of the namespace names. Leave serviceAccountName out.",
    }


def _stood(field: str) -> str:
    """Whether a pod's spec said the same before the update."""
    return f"variables.podSpecsBefore.exists(b, has(b.{field}) && b.{field} == s.{field})"


def before(expression: str) -> str:
    """``expression`` on what stood there before an update."""
    return expression.replace("object.", "oldObject.").replace(
        "variables.podSpecs", "variables.podSpecsBefore"
    )


def names_a_queue(meta: str) -> str:
    either = f"{_carries(meta, labels.QUEUE)} || {_carries(meta, labels.KUEUE_QUEUE)}"
    return f"has({meta}) && has({meta}.labels) && ({either})"


def queue_of(meta: str) -> str:
    """The queue that is named, where one is."""
    ours, kueues = (f"{meta}.labels['{name}']" for name in (labels.QUEUE, labels.KUEUE_QUEUE))
    return f"({_carries(meta, labels.QUEUE)} ? {ours} : {kueues})"


def _carries(meta: str, label: str) -> str:
    return f"('{label}' in {meta}.labels && {meta}.labels['{label}'] != '')"


def asks_gpus(kind: PolicyKind) -> str:
    """An extended resource must be in the limits, so of containers those alone are read."""
    containers = " || ".join(
        f"(has(s.{part}) && s.{part}.exists(c, has(c.resources) && {_bounds_gpus('c.resources')}))"
        for part in ("containers", "initContainers")
    )
    claims = "(has(s.resourceClaims) && size(s.resourceClaims) > 0)"
    beside = [f"({is_there(r, 'object.spec')} && {_bounds_gpus(r)})" for r in kind.resources]
    return " || ".join([kind.any_pod(f"({claims} || {containers})"), *beside])


def _bounds_gpus(resources: str) -> str:
    limits = f"{resources}.limits"
    some = f"{IS_GPU} && string({limits}[r]) != '0'"
    return f"has({limits}) && {limits}.exists(r, {some})"
