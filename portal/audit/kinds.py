"""What is written into the audit log: each kind's words, its group, and the capability that allows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from portal.accounts.capabilities import Capability


@dataclass(frozen=True, slots=True)
class EntryKind:
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
KINDS: Mapping[str, EntryKind] = {
    "quota.saved": EntryKind("Quota changed", "quotas", Capability.EDIT_QUOTAS),
    "quota.reverted": EntryKind("Quota change reverted", "quotas", Capability.EDIT_QUOTAS),
    "queue.created": EntryKind("Queue added", "quotas", Capability.EDIT_QUOTAS),
    "queue.changed": EntryKind("Queue changed", "quotas", Capability.EDIT_QUOTAS),
    "queue.deleted": EntryKind("Queue deleted", "quotas", Capability.EDIT_QUOTAS),
    "request.submit": EntryKind("Request submitted", "quotas", Capability.ASK),
    "request.withdraw": EntryKind("Request withdrawn", "quotas", Capability.ASK),
    "request.renew": EntryKind("Renewal asked for", "quotas", Capability.ASK),
    "request.comment": EntryKind("Request commented", "quotas", Capability.SEE),
    "request.forward": EntryKind("Request forwarded", "quotas", Capability.APPROVE),
    "request.approve": EntryKind("Request approved", "quotas", Capability.APPROVE),
    "request.ask_changes": EntryKind("Changes asked for", "quotas", Capability.APPROVE),
    "request.reject": EntryKind("Request rejected", "quotas", Capability.APPROVE),
    "request.revoke": EntryKind("Request revoked", "quotas", Capability.APPROVE),
    "request.begin": EntryKind("Request began", "quotas"),
    "request.fail": EntryKind("Request could not begin", "quotas"),
    "request.near_end": EntryKind("Request ends soon", "quotas"),
    "request.expire": EntryKind("Request ended", "quotas"),
    "request.rule_set": EntryKind("Approval rule set", "quotas", Capability.EDIT_QUOTAS),
    "loan.offer_to_all": EntryKind("Quota offered to all", "quotas", Capability.EDIT_QUOTAS),
    "loan.offer_withdrawn": EntryKind("Offer to all withdrawn", "quotas", Capability.EDIT_QUOTAS),
    "loan.offer": EntryKind("Loan offered", "quotas", Capability.EDIT_QUOTAS),
    "loan.ask": EntryKind("Loan asked for", "quotas", Capability.EDIT_QUOTAS),
    "loan.consent": EntryKind("Loan consented to", "quotas", Capability.EDIT_QUOTAS),
    "loan.decline": EntryKind("Loan declined", "quotas", Capability.EDIT_QUOTAS),
    "loan.withdraw": EntryKind("Loan withdrawn", "quotas", Capability.EDIT_QUOTAS),
    "loan.recall": EntryKind("Loan recalled", "quotas", Capability.EDIT_QUOTAS),
    "loan.undo": EntryKind("Recall undone", "quotas", Capability.EDIT_QUOTAS),
    "loan.give_back": EntryKind("Loan given back", "quotas", Capability.EDIT_QUOTAS),
    "loan.near_end": EntryKind("Loan ends soon", "quotas"),
    "loan.end": EntryKind("Loan ended", "quotas"),
    "person.added": EntryKind("Person added", "people", Capability.MEMBERS),
    "person.changed": EntryKind("Person changed", "people", Capability.MEMBERS),
    "person.deactivated": EntryKind("Person deactivated", "people", Capability.ADMINISTER),
    "person.activated": EntryKind("Person activated", "people", Capability.ADMINISTER),
    "member.added": EntryKind("Persona given", "people", Capability.MEMBERS),
    "member.changed": EntryKind("Persona changed", "people", Capability.MEMBERS),
    "member.removed": EntryKind("Persona taken", "people", Capability.MEMBERS),
    "directory.group_set": EntryKind("Group of the directory changed", "people"),
    "directory.group_deleted": EntryKind("Group of the directory deleted", "people"),
    "team.created": EntryKind("Team added", "people", Capability.ADMINISTER),
    "team.changed": EntryKind("Team changed", "people", Capability.ADMINISTER),
    "team.deleted": EntryKind("Team deleted", "people", Capability.ADMINISTER),
    "persona.created": EntryKind("Persona added", "people", Capability.ADMINISTER),
    "persona.changed": EntryKind("Persona edited", "people", Capability.ADMINISTER),
    "persona.deleted": EntryKind("Persona deleted", "people", Capability.ADMINISTER),
    "work.submitted": EntryKind("Work submitted", "work", Capability.SUBMIT),
    "work.adopted": EntryKind("Work adopted into a queue", "work", Capability.OPERATE),
    "work.cancelled": EntryKind("Work cancelled", "work", Capability.ACT),
    "alert.rule_set": EntryKind("Alert rule set", "engine", Capability.EDIT_QUOTAS),
    "alert.rule_deleted": EntryKind("Alert rule deleted", "engine", Capability.EDIT_QUOTAS),
    "alert.acknowledged": EntryKind("Alert acknowledged", "engine", Capability.EDIT_QUOTAS),
    "alert.escalated": EntryKind("Alert escalated", "engine", Capability.EDIT_QUOTAS),
    "alert.tested": EntryKind("Alert delivery tested", "engine", Capability.EDIT_QUOTAS),
    "budget.set": EntryKind("Budget set", "quotas", Capability.EDIT_QUOTAS),
    "budget.dropped": EntryKind("Budget dropped", "quotas", Capability.EDIT_QUOTAS),
    "work.culled": EntryKind("Idle work culled", "work", Capability.ACT),
    "work.kept_idle": EntryKind("Idle GPUs kept", "work", Capability.ACT),
    "work.owner_told": EntryKind("Owner told that less would do", "work", Capability.ACT),
    "work.held": EntryKind("Work held", "work", Capability.ACT),
    "work.released": EntryKind("Work released", "work", Capability.ACT),
    "work.changed": EntryKind("Waiting work changed", "work", Capability.ACT),
    "work.priority_set": EntryKind("Priority of work changed", "work", Capability.ACT),
    "cluster.added": EntryKind("Cluster connected", "engine", Capability.ADMINISTER),
    "cluster.metrics_set": EntryKind("GPU metrics set", "engine", Capability.ADMINISTER),
    "cluster.display_set": EntryKind("Currency and time zone", "engine", Capability.OPERATE),
    "cluster.mode_set": EntryKind("Mode set", "engine", Capability.OPERATE),
    "consolidation.ordered": EntryKind("Consolidation ordered", "engine", Capability.OPERATE),
    "consolidation.cancelled": EntryKind("Consolidation cancelled", "engine", Capability.OPERATE),
    "consolidation.ended": EntryKind("Consolidation ended", "engine", Capability.OPERATE),
    "lab.asked": EntryKind("Experiment begun", "engine", Capability.OPERATE),
    "lab.cancelled": EntryKind("Experiment cancelled", "engine", Capability.OPERATE),
    "lab.promoted": EntryKind("Variant promoted", "engine", Capability.ADMINISTER),
    "adapting.switched": EntryKind("Adaptation switched", "engine", Capability.ADMINISTER),
    "adapting.pinned": EntryKind("Parameter pinned or let go", "engine", Capability.ADMINISTER),
    "adapting.stepped": EntryKind("Parameter adapted", "engine"),
    "adapting.kept": EntryKind("Adapted value kept", "engine"),
    "adapting.taken_back": EntryKind("Adapted value taken back", "engine"),
    "policy.set": EntryKind("Policy changed", "engine", Capability.ADMINISTER),
    "gpu_class.saved": EntryKind("GPU class changed", "engine", Capability.ADMINISTER),
    "gpu_class.reserved": EntryKind("Nodes reserved", "engine", Capability.ADMINISTER),
    "priority_class.saved": EntryKind("Priority class changed", "engine", Capability.ADMINISTER),
    "letter.retried": EntryKind("Dead letter tried again", "engine", Capability.OPERATE),
    "letter.dropped": EntryKind("Dead letter dropped", "engine", Capability.OPERATE),
    "webhook.added": EntryKind("Webhook added", "sign_in"),
    "webhook.removed": EntryKind("Webhook removed", "sign_in"),
    "sign_in.succeeded": EntryKind("Signed in", "sign_in"),
    "sign_in.failed": EntryKind("Sign-in failed", "sign_in"),
    "sign_in.locked": EntryKind("Sign-in locked", "sign_in"),
    "sign_in.invited": EntryKind("First admin signed in", "sign_in"),
    "sign_out.done": EntryKind("Signed out", "sign_in"),
    "password.changed": EntryKind("Password changed", "sign_in"),
    "token.issued": EntryKind("Token made", "sign_in"),
    "token.revoked": EntryKind("Token revoked", "sign_in"),
    "session.others_ended": EntryKind("Other sessions ended", "sign_in"),
    "session.expired": EntryKind("Session expired", "sign_in"),
    "request.refused": EntryKind("Refused", "people"),
}


SECURITY = frozenset({
    "directory", "factor", "group_rule", "member", "membership", "oidc", "password", "person", "persona",
    "saml", "service_account", "session", "sign_in", "sign_out", "token", "webhook",
})  # fmt: skip
"""What a kind's name begins with that tells who may come in, and as what."""


def is_security(name: str, *, refused: bool) -> bool:
    """Whether it is of the stream of security events: it, or anything that was turned down."""
    return refused or name.partition(".")[0] in SECURITY


def kind_of(name: str) -> EntryKind:
    """Of a name that is not listed, its own words."""
    known = KINDS.get(name)
    return known or EntryKind(name.replace(".", " ").replace("_", " ").capitalize(), "engine")
