"""Guardrails: the objects by which a cluster itself holds people to the policy.

Weir decides without them. They bound what somebody can do past Weir (a quota at the queue's limit, GPU
work that names no queue or starts by itself) and give teams their place (namespace, rights, priority).
"""

from scheduling.cluster.guardrails.caution import prudent
from scheduling.cluster.guardrails.manifests import NamespaceRail, PriorityRail, Rails, manifests
from scheduling.cluster.guardrails.reconcile import Finding, repair, survey

__all__ = [
    "Finding",
    "NamespaceRail",
    "PriorityRail",
    "Rails",
    "manifests",
    "prudent",
    "repair",
    "survey",
]
