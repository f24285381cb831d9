"""What tells whether two objects ask for the same: thousands of Jobs come of one template."""

from __future__ import annotations

from typing import Any

import orjson

from scheduling.cluster.adapters import notes
from scheduling.cluster.vocabulary import labels

Json = dict[str, Any]

MADE = frozenset(
    f"{prefix}{name}"
    for prefix in ("", "batch.kubernetes.io/")
    for name in ("job-name", "controller-uid")
)
"""Labels by which the controller of Jobs tells the pods of one from those of any other."""


def of(kind: str, obj: Json) -> bytes | None:
    """Equal for objects whose demand is; None where that is not read off here: of other kinds than Jobs, of
    what an admission altered, and of what may speak of its own name in terms of affinity."""
    if kind != "Job":
        return None
    meta, said, spec = obj["metadata"], notes.of(obj), obj["spec"]
    template = spec["template"]
    if labels.ORIGINAL in said or template["spec"].get("affinity"):
        return None
    pods = template.get("metadata") or {}
    named = {key: text for key, text in (pods.get("labels") or {}).items() if key not in MADE}
    own = {key: text for key, text in said.items() if key not in labels.STATUS}
    parts = {
        **spec,
        "selector": None,
        "template": {**template, "metadata": {**pods, "labels": named}},
    }
    return orjson.dumps([meta["namespace"], meta.get("labels"), own, parts])
