"""Doors beside the objects themselves: their scale, and how long what is deleted may stay.

``…/scale`` shows a number and no pods. Of Deployments a policy may read each one as a parameter, so that
only GPU work is held; a kind that the API server may not serve cannot be one, so others grow by their own
fields, where their policies see what they ask for. Autoscalers ask by the same door and are held too.
"""

from __future__ import annotations

from typing import Any

from scheduling.cluster.guardrails import callers
from scheduling.cluster.guardrails.admission import INSIDE, MOST_GRACE_S, Terms, asks_gpus, bound
from scheduling.cluster.guardrails.kinds import KINDS, Kind, gpu_variables

Json = dict[str, Any]

SCALE, GRACE = "weir-scale", "weir-grace"
_REPLICAS = "(has({0}.spec.replicas) ? {0}.spec.replicas : 0)"
_GROWS = f"{_REPLICAS.format('object')} > {_REPLICAS.format('oldObject')}"
_DEPLOYMENT, _POD = (
    next(kind for kind in KINDS if kind.name == name) for name in ("Deployment", "Pod")
)
_CUSTOM = tuple(kind for kind in KINDS if "." in kind.group)
"""Some of them serve a scale, as operators' releases go."""


def policies(terms: Terms) -> list[Json]:
    return [*_deployments(terms), *_custom(), *_grace(terms)]


def _by_others(*kinds: Kind) -> Json:
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
    asked = "has(request.options) && has(request.options.gracePeriodSeconds)"
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
        "matchConditions": [
            {
                "name": "for-long",
                "expression": f"oldObject != null && {asked} && "
                f"int(request.options.gracePeriodSeconds) > {MOST_GRACE_S}",
            }
        ],
        "variables": [{"name": name, "expression": text} for name, text in reads.items()],
        "validations": [
            {
                "expression": "!variables.asksGpus",
                "message": f"GPU pods leave within an hour. Ask for {MOST_GRACE_S} seconds at most.",
            }
        ],
    }
    return bound(GRACE, spec, INSIDE)
