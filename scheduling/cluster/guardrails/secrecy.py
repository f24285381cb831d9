"""Which Secrets work may read, in CEL.

The token of a strong account may lie in a Secret of its namespace, which pods read by its name alone. A
policy sees no Secret, so in a namespace that stood before a queue got it, work reads those that the namespace
names; in one that Weir made, what lies there was put there for the team.
"""

from __future__ import annotations

from typing import Any

from scheduling.cluster.adapters.cel import PolicyKind
from scheduling.cluster.vocabulary import labels

_NOTES, _LABELS = "namespaceObject.metadata.annotations", "namespaceObject.metadata.labels"
NAMED = (
    f"has({_NOTES}) && '{labels.SECRETS}' in {_NOTES} "
    f"? {_NOTES}['{labels.SECRETS}'].split(',') : []"
)
"""The variable ``secrets``."""
_STOOD = f"has({_LABELS}) && '{labels.OFFERED}' in {_LABELS}"


def _foreign(reference: str, field: str) -> str:
    return f"has({reference}.{field}) && !({reference}.{field} in variables.secrets)"


_VOLUME = (
    f"(has(v.secret) && {_foreign('v.secret', 'secretName')}) || (has(v.projected) && "
    "has(v.projected.sources) && v.projected.sources.exists(p, has(p.secret) && "
    f"{_foreign('p.secret', 'name')}))"
)
_VARIABLE = (
    f"(has(c.envFrom) && c.envFrom.exists(e, has(e.secretRef) && {_foreign('e.secretRef', 'name')})) || "
    "(has(c.env) && c.env.exists(e, has(e.valueFrom) && has(e.valueFrom.secretKeyRef) && "
    f"{_foreign('e.valueFrom.secretKeyRef', 'name')}))"
)
_READS = " || ".join(
    [
        f"(has(s.volumes) && s.volumes.exists(v, {_VOLUME}))",
        *(
            f"(has(s.{part}) && s.{part}.exists(c, {_VARIABLE}))"
            for part in ("containers", "initContainers")
        ),
    ]
)


def on_secrets(kind: PolicyKind) -> dict[str, Any]:
    # What stood before the namespace was taken goes on being edited.
    fresh = "(request.operation == 'CREATE' || variables.podSpecs != variables.podSpecsBefore)"
    return {
        "expression": f"!({_STOOD}) || !{fresh} || !{kind.any_pod(f'({_READS})')}",
        "message": "Work here reads the Secrets that the annotation "
        f"{labels.SECRETS} of the namespace names, and no other. Leave them out, or ask an admin.",
    }
