"""Guardrails that Weir must not make before it can pass them itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from scheduling.cluster.connection.client import Client
from scheduling.cluster.guardrails import marks, personas
from scheduling.cluster.guardrails.callers import GROUP, MARKS
from scheduling.cluster.guardrails.reconcile import Finding
from scheduling.models import GuardrailState

NAMES = (marks.NAME, personas.NAME)
"""How the names of those begin that only holders of the right pass."""
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
LOCKED_OUT = (
    "It would keep Weir itself from admitting work: Weir may not update marks.weir.dev. Apply"
    " docker/kubernetes/enforce.yaml anew."
)


def prudent(
    client: Client, findings: Iterable[Finding], *, check: Callable[[], None]
) -> list[Finding]:
    """``findings`` with the policy refused where it would be applied and Weir itself could not pass it.

    ``check`` is called before the API server is asked and may raise to stop.
    """
    found = list(findings)
    repairs = [f for f in found if f.name.startswith(NAMES) and _is_to_be_applied(f)]
    if not repairs:
        return found
    check()
    if _may_write(client):
        return found
    refused = {
        id(f): replace(f, standing=GuardrailState.REFUSED, detail=LOCKED_OUT) for f in repairs
    }
    return [refused.get(id(f), f) for f in found]


def _is_to_be_applied(finding: Finding) -> bool:
    return finding.wanted is not None and finding.standing is not GuardrailState.IN_STEP


def _may_write(client: Client) -> bool:
    resource, verb = MARKS
    attributes = {"group": GROUP, "resource": resource, "verb": verb}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    return bool(client.create(REVIEW, review)["status"].get("allowed"))
