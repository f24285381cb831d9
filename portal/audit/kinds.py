"""What is written into the audit log: each kind's words, its group, and the capability that allows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from portal.accounts.capabilities import Capability as C


@dataclass(frozen=True, slots=True)
class Kind:
    words: str
    group: str
    capability: C | None = None
    """None: open to everybody for themselves, or to nobody at all."""


GROUPS = {
    "quotas": "Quotas and queues",
    "people": "People and personas",
    "work": "Work",
    "engine": "Clusters, classes, policy",
    "sign_in": "Sign-ins and tokens",
}
KINDS: Mapping[str, Kind] = {
    "quota.saved": Kind("Quota changed", "quotas", C.EDIT_QUOTAS),
    "quota.reverted": Kind("Quota change reverted", "quotas", C.EDIT_QUOTAS),
    "queue.created": Kind("Queue added", "quotas", C.EDIT_QUOTAS),
    "queue.changed": Kind("Queue changed", "quotas", C.EDIT_QUOTAS),
    "queue.deleted": Kind("Queue deleted", "quotas", C.EDIT_QUOTAS),
    "person.added": Kind("Person added", "people", C.MEMBERS),
    "person.changed": Kind("Person changed", "people", C.MEMBERS),
    "person.deactivated": Kind("Person deactivated", "people", C.ADMINISTER),
    "person.activated": Kind("Person activated", "people", C.ADMINISTER),
    "member.added": Kind("Persona given", "people", C.MEMBERS),
    "member.changed": Kind("Persona changed", "people", C.MEMBERS),
    "member.removed": Kind("Persona taken", "people", C.MEMBERS),
    "team.created": Kind("Team added", "people", C.ADMINISTER),
    "team.changed": Kind("Team changed", "people", C.ADMINISTER),
    "team.deleted": Kind("Team deleted", "people", C.ADMINISTER),
    "persona.created": Kind("Persona added", "people", C.ADMINISTER),
    "persona.changed": Kind("Persona edited", "people", C.ADMINISTER),
    "persona.deleted": Kind("Persona deleted", "people", C.ADMINISTER),
    "work.submitted": Kind("Work submitted", "work", C.SUBMIT),
    "work.cancelled": Kind("Work cancelled", "work", C.ACT),
    "work.held": Kind("Work held", "work", C.ACT),
    "work.released": Kind("Work released", "work", C.ACT),
    "work.priority_set": Kind("Priority of work changed", "work", C.ACT),
    "cluster.added": Kind("Cluster connected", "engine", C.ADMINISTER),
    "cluster.mode_set": Kind("Mode set", "engine", C.OPERATE),
    "policy.set": Kind("Policy changed", "engine", C.ADMINISTER),
    "gpu_class.saved": Kind("GPU class changed", "engine", C.ADMINISTER),
    "gpu_class.reserved": Kind("Nodes reserved", "engine", C.ADMINISTER),
    "priority_class.saved": Kind("Priority class changed", "engine", C.ADMINISTER),
    "sign_in.succeeded": Kind("Signed in", "sign_in"),
    "sign_in.failed": Kind("Sign-in failed", "sign_in"),
    "sign_in.locked": Kind("Sign-in locked", "sign_in"),
    "sign_in.invited": Kind("First admin signed in", "sign_in"),
    "sign_out.done": Kind("Signed out", "sign_in"),
    "password.changed": Kind("Password changed", "sign_in"),
    "token.issued": Kind("Token made", "sign_in"),
    "token.revoked": Kind("Token revoked", "sign_in"),
    "session.others_ended": Kind("Other sessions ended", "sign_in"),
    "session.expired": Kind("Session expired", "sign_in"),
    "request.refused": Kind("Refused", "people"),
}


def kind_of(name: str) -> Kind:
    """Of a name that is not listed, its own words."""
    known = KINDS.get(name)
    return known or Kind(name.replace(".", " ").replace("_", " ").capitalize(), "engine")
