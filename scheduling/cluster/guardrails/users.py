"""Whose work it is: who made the request says so, not what somebody typed.

A MutatingAdmissionPolicy writes the caller's name on what people create. Where the API server has no such
policies (before Kubernetes 1.36), the name may be left out; either way a ValidatingAdmissionPolicy takes
no other, and lets nobody change it afterwards. An account that may update ``marks.weir.dev`` acts for Weir
and may name somebody else. What controllers make keeps what its template says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduling.cluster.adapters.cel import PolicyKind, is_noted
from scheduling.cluster.guardrails import callers
from scheduling.cluster.guardrails.admission import API, INSIDE, before, bound, rule
from scheduling.cluster.guardrails.kinds import CARRIERS, KINDS
from scheduling.cluster.vocabulary import labels

Json = dict[str, Any]

NAME = "weir-user"
CRON_JOBS = next(kind for kind in CARRIERS if kind.name == "CronJob")
GROUPS: tuple[tuple[str, tuple[PolicyKind, ...]], ...] = (
    (NAME, KINDS),
    (f"{NAME}-{CRON_JOBS.resource}", (CRON_JOBS,)),
)
"""Kinds that keep the annotation in the same place, and the name of the policies for them."""


def policies(namespaces: Sequence[str]) -> list[Json]:
    """The policies that write the name, then those that guard it; ``namespaces`` are the managed ones."""
    writing = [part for group in GROUPS for part in _writing(*group, namespaces)]
    return [*writing, *(part for group in GROUPS for part in _guarding(*group, namespaces))]


def _writing(name: str, kinds: Sequence[PolicyKind], namespaces: Sequence[str]) -> list[Json]:
    meta = kinds[0].meta
    typed = f"{is_noted(meta, labels.USER)} && {callers.holds(callers.MARKS)}"
    spec = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [_created(kind) for kind in kinds]},
        "matchConditions": [
            *_of_people(namespaces),
            {"name": "not-for-another", "expression": f"!({typed})"},
        ],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": _patch(meta)}}],
    }
    binding = {"policyName": name, "matchResources": INSIDE}
    return [
        {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec_}
        for kind, spec_ in (
            ("MutatingAdmissionPolicy", spec),
            ("MutatingAdmissionPolicyBinding", binding),
        )
    ]


def _created(kind: PolicyKind) -> Json:
    return {**rule(kind, "CREATE"), "resources": [kind.resource]}


def _patch(meta: str) -> str:
    """Adds the annotation, and before it whatever is to hold it."""
    path = "/" + meta.removeprefix("object.").replace(".", "/")
    hollow = [(meta, path), (f"{meta}.annotations", f"{path}/annotations")]
    steps = [f"(has({field}) ? [] : [{_add(at, '{}')}])" for field, at in hollow]
    own = steps if meta != "object.metadata" else steps[1:]
    note = labels.USER.replace("/", "~1")
    return " + ".join([*own, f"[{_add(f'{path}/annotations/{note}', callers.PERSON)}]"])


def _add(path: str, value: str) -> str:
    return f'JSONPatch{{op: "add", path: "{path}", value: {value}}}'


def _guarding(name: str, kinds: Sequence[PolicyKind], namespaces: Sequence[str]) -> list[Json]:
    meta = kinds[0].meta
    said = f"({is_noted(meta, labels.USER)} ? {meta}.annotations['{labels.USER}'] : '')"
    was = f"(request.operation == 'UPDATE' ? {before(said)} : '')"
    # What had no name, because it is older than this rule, may get that of whoever asks.
    fine = f"{said} == {was} || ({was} == '' && {said} == {callers.PERSON})"
    remedy = f"Set the annotation {labels.USER} to "
    spec = {
        "matchConstraints": {"resourceRules": [rule(kind, "CREATE", "UPDATE") for kind in kinds]},
        "matchConditions": _of_people(namespaces),
        "validations": [
            {
                "expression": f"{fine} || {callers.holds(callers.MARKS)}",
                "messageExpression": "'Whose work it is stays as it was said when it was made. "
                f"{remedy}' + ({was} == '' ? {callers.PERSON} : {was}) + '.'",
                "message": f"Nobody makes work in another's name. {remedy}your own name.",
            }
        ],
    }
    return bound(name, spec, INSIDE)


def _of_people(namespaces: Sequence[str]) -> list[Json]:
    own = f"!({callers.IS_OWNED} && {callers.is_controller(namespaces)}) && !{callers.IS_NODE}"
    return [{"name": "of-its-own", "expression": own}]
