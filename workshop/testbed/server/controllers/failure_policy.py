"""`podFailurePolicy`: what the end of a pod means for its Job."""

from __future__ import annotations

from workshop.testbed.server.kinds.resources import Json
from workshop.testbed.server.store.store import Record


def action_on(spec: Json, pod: Record) -> str:
    """Return what the first rule that is about this failed pod says, `Count` if there is none."""
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        if _is_about(rule, pod):
            return str(rule["action"])
    return "Count"


def _is_about(rule: Json, pod: Record) -> bool:
    status = pod.body.get("status", {})
    shown = {(c["type"], c["status"]) for c in status.get("conditions") or ()}
    for pattern in rule.get("onPodConditions") or ():
        if (pattern["type"], pattern.get("status", "True")) in shown:
            return True
    codes = rule.get("onExitCodes") or {}
    return any(_has_code(codes, c) for c in status.get("containerStatuses") or () if codes)


def _has_code(codes: Json, container: Json) -> bool:
    """Return whether a container that ended did so with one of (or none of) the codes; 0 never counts."""
    ended = (container.get("state") or {}).get("terminated")
    if not ended or not ended["exitCode"]:
        return False
    if codes.get("containerName") not in (None, container["name"]):
        return False
    return (ended["exitCode"] in codes["values"]) == (codes["operator"] == "In")
