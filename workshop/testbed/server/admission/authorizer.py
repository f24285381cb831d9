"""What policies ask by `authorizer`: may the caller do this in the whole cluster?

Requests themselves are not authorised here, but rights that no server serves are told apart as RBAC would:
administrators have all of them, others those that ClusterRoles give them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from workshop.testbed.server.kinds.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, Json
from workshop.testbed.server.store.context import Caller, World

MASTERS = "system:masters"
_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class Authorizer:
    """`authorizer`, and what its methods return until `allowed()` ends the question."""

    world: World
    caller: Caller
    api_group: str = ""
    plural: str = ""
    verb: str = ""

    def group(self, name: str) -> Authorizer:
        return replace(self, api_group=name)

    def resource(self, name: str) -> Authorizer:
        return replace(self, plural=name)

    def check(self, verb: str) -> Authorizer:
        return replace(self, verb=verb)

    def allowed(self) -> bool:
        if MASTERS in self.caller.groups:
            return True
        bindings = [record.body for record in self.world.store.listing(CLUSTER_ROLE_BINDINGS)]
        return any(self._grants(b["roleRef"]["name"]) for b in bindings if self._is_bound(b))

    def _is_bound(self, binding: Json) -> bool:
        return any(self._is_meant(subject) for subject in binding.get("subjects") or ())

    def _is_meant(self, subject: Json) -> bool:
        if subject["kind"] == "Group":
            return subject["name"] in self.caller.groups
        if subject["kind"] == "ServiceAccount":
            account = f"{_ACCOUNT}{subject.get('namespace', '')}:{subject['name']}"
            return account == self.caller.user
        return bool(subject["name"] == self.caller.user)

    def _grants(self, role: str) -> bool:
        record = self.world.store.get(CLUSTER_ROLES, "", role)
        wanted = (("apiGroups", self.api_group), ("resources", self.plural), ("verbs", self.verb))
        return record is not None and any(
            all({"*", value} & set(rule.get(part) or ()) for part, value in wanted)
            for rule in record.body.get("rules") or ()
            if not rule.get("resourceNames")
        )
