"""Doors beside the objects themselves: their scale, and how long what is deleted may stay.

``…/scale`` shows a number and no pods. Of Deployments a policy may read each one as a parameter, so that
only GPU work is held; a kind that the API server may not serve cannot be one, so others grow by their own
fields, where their policies see what they ask for. Autoscalers ask by the same door and are held too.
"""

from __future__ import annotations

from typing import Any

from scheduling.cluster.adapters.cel import PolicyKind, gpu_variables
from scheduling.cluster.guardrails import callers
from scheduling.cluster.guardrails.admission import INSIDE, MOST_GRACE_S, Terms, asks_gpus, bound
from scheduling.cluster.guardrails.kinds import KINDS

Json = dict[str, Any]

SCALE, GRACE, LEAVING = "weir-scale", "weir-grace", "weir-leaving"
MOST_LEAVING_S = 1
"""`kubectl delete --now`. A controller makes the next pod at once, and the one before holds its GPUs until it
is gone: whoever deletes in a loop would hold as many as there are pods on their way out."""
_REPLICAS = "(has({0}.spec.replicas) ? {0}.spec.replicas : 0)"
_GROWS = f"{_REPLICAS.format('object')} > {_REPLICAS.format('oldObject')}"
_ASKED = "has(request.options) && has(request.options.gracePeriodSeconds)"
_ASKED_S = "int(request.options.gracePeriodSeconds)"
_DEPLOYMENT, _POD = (
    next(kind for kind in KINDS if kind.name == name) for name in ("Deployment", "Pod")
)
_CUSTOM = tuple(kind for kind in KINDS if "." in kind.group)
"""Some of them serve a scale, as operators' releases go."""


def policies(terms: Terms) -> list[Json]:
    return [*_deployments(terms), *_custom(), *_grace(terms), *_leaving(terms)]


def _by_others(*kinds: PolicyKind) -> Json:
    return {
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [kind.group],
                    "apiVersions": [kind.version],
                    "operations": ["UPDATE"],
                    "resources": [f"{kind.resource}/scale"],
                }
                for kind in kinds
            ]
        },
        "matchConditions": [
            {"name": "grows", "expression": _GROWS},
            {"name": "by-others", "expression": f"!{callers.holds(callers.MARKS)}"},
        ],
    }


def _deployments(terms: Terms) -> list[Json]:
    reads = {
        **gpu_variables(terms.gpu_resources),
        "podSpecs": _DEPLOYMENT.pod_specs.replace("object.", "params."),
        "asksGpus": asks_gpus(_DEPLOYMENT).replace("object.", "params."),
    }
    spec = {
        "paramKind": {"apiVersion": "apps/v1", "kind": "Deployment"},
        **_by_others(_DEPLOYMENT),
        "variables": [{"name": name, "expression": text} for name, text in reads.items()],
        "validations": [
            {
                "expression": "params.metadata.name != request.name || !variables.asksGpus",
                "message": "Only Weir scales GPU work up. Submit more work beside it.",
            }
        ],
    }
    every = {"selector": {}, "parameterNotFoundAction": "Allow"}
    return bound(f"{SCALE}-{_DEPLOYMENT.resource}", spec, INSIDE, paramRef=every)


def _custom() -> list[Json]:
    remedy = "Of one without GPUs change its own fields."
    spec = {
        **_by_others(*_CUSTOM),
        "validations": [
            {"expression": "false", "message": f"Only Weir scales GPU work up. {remedy}"}
        ],
    }
    return bound(f"{SCALE}-others", spec, INSIDE)


def _grace(terms: Terms) -> list[Json]:
    """A deletion may ask for more than the pod's own grace."""
    long = f"{_ASKED} && {_ASKED_S} > {MOST_GRACE_S}"
    message = f"GPU pods leave within an hour. Ask for {MOST_GRACE_S} seconds at most."
    return _deletions(GRACE, terms, [{"name": "for-long", "expression": long}], message)


def _leaving(terms: Terms) -> list[Json]:
    """People take their work away, or a pod that is made anew at once."""
    soon = f"{_ASKED} && {_ASKED_S} <= {MOST_LEAVING_S}"
    owned = callers.IS_OWNED.replace("object.", "oldObject.")
    by_people = (
        f"!{callers.holds(callers.MARKS)} && !{callers.is_controller(terms.namespaces)} && "
        f"!{callers.IS_NODE} && request.userInfo.username != 'system:kube-scheduler'"
    )
    lives = (
        "!has(oldObject.metadata.deletionTimestamp) && has(oldObject.spec.nodeName) && "
        "oldObject.spec.nodeName != '' && !(has(oldObject.status) && has(oldObject.status.phase) && "
        "oldObject.status.phase in ['Succeeded', 'Failed'])"
    )
    message = (
        "A controller makes another of this GPU pod while it ends. Delete it with --now (a grace period of "
        f"{MOST_LEAVING_S} s), or stop the work that it belongs to."
    )
    conditions = [
        {"name": "slowly", "expression": f"{lives} && !({soon})"},
        {"name": "made-anew", "expression": owned},
        {"name": "by-people", "expression": by_people},
    ]
    return _deletions(LEAVING, terms, conditions, message)


def _deletions(name: str, terms: Terms, conditions: list[Json], message: str) -> list[Json]:
    """A policy that refuses deletions of GPU pods where all of ``conditions`` hold."""
    reads = {
        **gpu_variables(terms.gpu_resources),
        "podSpecs": "[oldObject.spec]",
        "asksGpus": asks_gpus(_POD),
    }
    rule = {
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["pods"],
    }  # fmt: skip
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "there", "expression": "oldObject != null"}, *conditions],
        "variables": [{"name": key, "expression": text} for key, text in reads.items()],
        "validations": [{"expression": "!variables.asksGpus", "message": message}],
    }
    return bound(name, spec, INSIDE)
