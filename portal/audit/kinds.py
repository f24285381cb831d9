"""What is written into the audit log: each kind's words, its group, and the capability that allows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from portal.accounts.capabilities import Capability


@dataclass(frozen=True, slots=True)
class Kind:
    words: str
    group: str
    capability: Capability | None = None
    """None: open to everybody for themselves, or to nobody at all."""


GROUPS = {
    "quotas": "Quotas and queues",
    "people": "People and personas",
    "work": "Work",
    "engine": "Clusters, classes, policy",
    "sign_in": "Sign-ins and tokens",
}
KINDS: Mapping[str, Kind] = {
    "quota.saved": Kind("Quota changed", "quotas", Capability.EDIT_QUOTAS),
    "quota.reverted": Kind("Quota change reverted", "quotas", Capability.EDIT_QUOTAS),
    "queue.created": Kind("Queue added", "quotas", Capability.EDIT_QUOTAS),
    "queue.changed": Kind("Queue changed", "quotas", Capability.EDIT_QUOTAS),
    "queue.deleted": Kind("Queue deleted", "quotas", Capability.EDIT_QUOTAS),
    "request.submit": Kind("Request submitted", "quotas", Capability.ASK),
    "request.withdraw": Kind("Request withdrawn", "quotas", Capability.ASK),
    "request.renew": Kind("Renewal asked for", "quotas", Capability.ASK),
    "request.comment": Kind("Request commented", "quotas", Capability.SEE),
    "request.forward": Kind("Request forwarded", "quotas", Capability.APPROVE),
    "request.approve": Kind("Request approved", "quotas", Capability.APPROVE),
    "request.ask_changes": Kind("Changes asked for", "quotas", Capability.APPROVE),
    "request.reject": Kind("Request rejected", "quotas", Capability.APPROVE),
    "request.revoke": Kind("Request revoked", "quotas", Capability.APPROVE),
    "request.begin": Kind("Request began", "quotas"),
    "request.fail": Kind("Request could not begin", "quotas"),
    "request.near_end": Kind("Request ends soon", "quotas"),
    "request.expire": Kind("Request ended", "quotas"),
    "request.rule_set": Kind("Approval rule set", "quotas", Capability.EDIT_QUOTAS),
    "loan.offer_to_all": Kind("Quota offered to all", "quotas", Capability.EDIT_QUOTAS),
    "loan.offer_withdrawn": Kind("Offer to all withdrawn", "quotas", Capability.EDIT_QUOTAS),
    "loan.offer": Kind("Loan offered", "quotas", Capability.EDIT_QUOTAS),
    "loan.ask": Kind("Loan asked for", "quotas", Capability.EDIT_QUOTAS),
    "loan.consent": Kind("Loan consented to", "quotas", Capability.EDIT_QUOTAS),
    "loan.decline": Kind("Loan declined", "quotas", Capability.EDIT_QUOTAS),
    "loan.withdraw": Kind("Loan withdrawn", "quotas", Capability.EDIT_QUOTAS),
    "loan.recall": Kind("Loan recalled", "quotas", Capability.EDIT_QUOTAS),
    "loan.undo": Kind("Recall undone", "quotas", Capability.EDIT_QUOTAS),
    "loan.give_back": Kind("Loan given back", "quotas", Capability.EDIT_QUOTAS),
    "loan.near_end": Kind("Loan ends soon", "quotas"),
    "loan.end": Kind("Loan ended", "quotas"),
    "person.added": Kind("Person added", "people", Capability.MEMBERS),
    "person.changed": Kind("Person changed", "people", Capability.MEMBERS),
    "person.deactivated": Kind("Person deactivated", "people", Capability.ADMINISTER),
    "person.activated": Kind("Person activated", "people", Capability.ADMINISTER),
    "member.added": Kind("Persona given", "people", Capability.MEMBERS),
    "member.changed": Kind("Persona changed", "people", Capability.MEMBERS),
    "member.removed": Kind("Persona taken", "people", Capability.MEMBERS),
    "directory.group_set": Kind("Group of the directory changed", "people"),
    "directory.group_deleted": Kind("Group of the directory deleted", "people"),
    "team.created": Kind("Team added", "people", Capability.ADMINISTER),
    "team.changed": Kind("Team changed", "people", Capability.ADMINISTER),
    "team.deleted": Kind("Team deleted", "people", Capability.ADMINISTER),
    "persona.created": Kind("Persona added", "people", Capability.ADMINISTER),
    "persona.changed": Kind("Persona edited", "people", Capability.ADMINISTER),
    "persona.deleted": Kind("Persona deleted", "people", Capability.ADMINISTER),
    "work.submitted": Kind("Work submitted", "work", Capability.SUBMIT),
    "work.adopted": Kind("Work adopted into a queue", "work", Capability.OPERATE),
    "work.cancelled": Kind("Work cancelled", "work", Capability.ACT),
    "alert.rule_set": Kind("Alert rule set", "engine", Capability.EDIT_QUOTAS),
    "alert.rule_deleted": Kind("Alert rule deleted", "engine", Capability.EDIT_QUOTAS),
    "alert.acknowledged": Kind("Alert acknowledged", "engine", Capability.EDIT_QUOTAS),
    "alert.escalated": Kind("Alert escalated", "engine", Capability.EDIT_QUOTAS),
    "alert.tested": Kind("Alert delivery tested", "engine", Capability.EDIT_QUOTAS),
    "budget.set": Kind("Budget set", "quotas", Capability.EDIT_QUOTAS),
    "budget.dropped": Kind("Budget dropped", "quotas", Capability.EDIT_QUOTAS),
    "work.culled": Kind("Idle work culled", "work", Capability.ACT),
    "work.kept_idle": Kind("Idle GPUs kept", "work", Capability.ACT),
    "work.held": Kind("Work held", "work", Capability.ACT),
    "work.released": Kind("Work released", "work", Capability.ACT),
    "work.changed": Kind("Waiting work changed", "work", Capability.ACT),
    "work.priority_set": Kind("Priority of work changed", "work", Capability.ACT),
    "cluster.added": Kind("Cluster connected", "engine", Capability.ADMINISTER),
    "cluster.metrics_set": Kind("GPU metrics set", "engine", Capability.ADMINISTER),
    "cluster.display_set": Kind("Currency and time zone", "engine", Capability.OPERATE),
    "cluster.mode_set": Kind("Mode set", "engine", Capability.OPERATE),
    "consolidation.ordered": Kind("Consolidation ordered", "engine", Capability.OPERATE),
    "consolidation.cancelled": Kind("Consolidation cancelled", "engine", Capability.OPERATE),
    "consolidation.ended": Kind("Consolidation ended", "engine", Capability.OPERATE),
    "lab.asked": Kind("Experiment begun", "engine", Capability.OPERATE),
    "lab.cancelled": Kind("Experiment cancelled", "engine", Capability.OPERATE),
    "lab.promoted": Kind("Variant promoted", "engine", Capability.ADMINISTER),
    "adapting.switched": Kind("Adaptation switched", "engine", Capability.ADMINISTER),
    "adapting.pinned": Kind("Parameter pinned or let go", "engine", Capability.ADMINISTER),
    "adapting.stepped": Kind("Parameter adapted", "engine"),
    "adapting.kept": Kind("Adapted value kept", "engine"),
    "adapting.taken_back": Kind("Adapted value taken back", "engine"),
    "policy.set": Kind("Policy changed", "engine", Capability.ADMINISTER),
    "gpu_class.saved": Kind("GPU class changed", "engine", Capability.ADMINISTER),
    "gpu_class.reserved": Kind("Nodes reserved", "engine", Capability.ADMINISTER),
    "priority_class.saved": Kind("Priority class changed", "engine", Capability.ADMINISTER),
    "letter.retried": Kind("Dead letter tried again", "engine", Capability.OPERATE),
    "letter.dropped": Kind("Dead letter dropped", "engine", Capability.OPERATE),
    "webhook.added": Kind("Webhook added", "sign_in"),
    "webhook.removed": Kind("Webhook removed", "sign_in"),
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


SECURITY = frozenset({
    "directory", "factor", "group_rule", "member", "membership", "oidc", "password", "person", "persona",
    "saml", "service_account", "session", "sign_in", "sign_out", "token", "webhook",
})  # fmt: skip
"""What a kind's name begins with that tells who may come in, and as what."""


def is_security(name: str, *, refused: bool) -> bool:
    """Whether it is of the stream of security events: it, or anything that was turned down."""
    return refused or name.partition(".")[0] in SECURITY


def kind_of(name: str) -> Kind:
    """Of a name that is not listed, its own words."""
    known = KINDS.get(name)
    return known or Kind(name.replace(".", " ").replace("_", " ").capitalize(), "engine")
