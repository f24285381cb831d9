"""Admission policies: bound to resources and namespaces, written in CEL.

Parameters are found by name in the namespace of the request, or nowhere. Audit annotations and warnings
are not there: a ValidatingAdmissionPolicyBinding counts when its actions hold `Deny`. Of the patches of a
MutatingAdmissionPolicy those of type `JSONPatch` are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from workshop.testbed.server.kinds.errors import ApiError
from workshop.testbed.server.kinds.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    BY_PATH,
    MUTATING_POLICIES,
    MUTATING_POLICY_BINDINGS,
    NAMESPACES,
    Json,
    Resource,
)
from workshop.testbed.server.kinds.selectors import parse_selector_object
from workshop.testbed.server.store.context import Caller, World

from ..patches.merge import json_patch
from .authorizer import Authorizer
from .cel import CelError, evaluate

_NO_PARAMS = (
    "failed to configure binding: no params found for policy binding with `Deny` "
    "parameterNotFoundAction"
)


class _Scope(Mapping[str, Any]):
    """The variables of one request; a policy's own are evaluated when first asked for."""

    def __init__(self, given: Json, own: list[Json]) -> None:
        self._given = given
        self._own = {variable["name"]: variable["expression"] for variable in own}
        self._known: Json = {}

    def __getitem__(self, name: str) -> Any:
        return _Variables(self) if name == "variables" else self._given[name]

    def __iter__(self) -> Iterator[str]:
        yield from (*self._given, "variables")

    def __len__(self) -> int:
        return len(self._given) + 1

    def variable(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = evaluate(self._own[name], self)
        return self._known[name]


class _Variables:
    """What `variables.` selects from."""

    def __init__(self, scope: _Scope) -> None:
        self._scope = scope

    def __getitem__(self, name: str) -> Any:
        return self._scope.variable(name)


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """One request: `new` is to stand there after it and `old` stands there now, each None for nothing."""

    caller: Caller
    resource: Resource
    new: Json | None
    old: Json | None
    subresource: str = ""
    options: Json | None = None

    @property
    def operation(self) -> str:
        if self.new is None:
            return "DELETE"
        return "CREATE" if self.old is None else "UPDATE"

    @property
    def metadata(self) -> Json:
        """Return that of the object which the request is about."""
        shown: Json = ((self.old if self.new is None else self.new) or {})["metadata"]
        return shown

    @property
    def name(self) -> str:
        """Return the resource, or `RESOURCE/SUBRESOURCE`."""
        plural = self.resource.plural
        return f"{plural}/{self.subresource}" if self.subresource else plural


def check_policies(
    world: World,
    caller: Caller,
    resource: Resource,
    new: Json | None,
    old: Json | None,
    *,
    subresource: str = "",
    options: Json | None = None,
) -> None:
    """Refuse the request (422) if a bound policy denies it; `options` are those of a deletion."""
    call = AdmissionRequest(caller, resource, new, old, subresource, options)
    for policy, binding in _bound(world, call, ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS):
        if "Deny" not in (binding["spec"].get("validationActions") or ()):
            continue
        message = _verdict(world, call, policy["spec"], binding["spec"])
        if message:
            raise _refusal(call, policy["metadata"]["name"], binding["metadata"]["name"], message)


def mutate_by_policies(world: World, caller: Caller, resource: Resource, new: Json) -> Json:
    """Return `new`, which is to be created, as bound policies want it. Raises ApiError (422)."""
    call = AdmissionRequest(caller, resource, new, None)
    for policy, _ in _bound(world, call, MUTATING_POLICIES, MUTATING_POLICY_BINDINGS):
        spec = policy["spec"]
        scope = _scope(world, call, spec, None)
        try:
            if all(evaluate(c["expression"], scope) for c in spec.get("matchConditions") or ()):
                patches = [evaluate(m["jsonPatch"]["expression"], scope) for m in spec["mutations"]]
                made = json_patch(call.new or {}, [one for patch in patches for one in patch])
                call = replace(call, new=made)
        except CelError as error:
            name = policy["metadata"]["name"]
            raise _refusal(call, name, name, str(error)) from error
    return call.new or new


def _bound(
    world: World, call: AdmissionRequest, policies: Resource, bindings: Resource
) -> Iterator[tuple[Json, Json]]:
    """Policies with the bindings by which they are about what is asked."""
    if not world.store.count(bindings):
        return
    for record in world.store.listing(bindings):
        binding = record.body["spec"]
        policy = world.store.get(policies, "", binding.get("policyName", ""))
        if policy is None:
            continue
        constraints = (policy.body["spec"]["matchConstraints"], binding.get("matchResources") or {})
        if all(_matches(world, constraint, call) for constraint in constraints):
            yield policy.body, record.body


def _verdict(world: World, call: AdmissionRequest, spec: Json, binding: Json) -> str:
    """Return why the policy denies what is asked with the parameters that its binding names, or ""."""
    if not spec.get("paramKind"):
        return _denial(spec, _scope(world, call, spec, None))
    params = _params(world, call, spec["paramKind"], binding["paramRef"])
    if params is not None:
        return _denial(spec, _scope(world, call, spec, params))
    if binding["paramRef"].get("parameterNotFoundAction") == "Allow":
        return ""
    return _NO_PARAMS


def _params(world: World, call: AdmissionRequest, kind: Json, reference: Json) -> Json | None:
    group, _, version = kind["apiVersion"].rpartition("/")
    found = (
        r for (g, v, _), r in BY_PATH.items() if (g, v, r.kind) == (group, version, kind["kind"])
    )
    resource = next(found, None)
    if resource is None:
        return None
    around = call.metadata.get("namespace", "") if resource.namespaced else ""
    record = world.store.get(resource, reference.get("namespace") or around, reference["name"])
    return record.body if record else None


def _request(call: AdmissionRequest) -> Json:
    caller, metadata, kind = call.caller, call.metadata, call.resource
    return {
        "operation": call.operation,
        "resource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
        **({"subResource": call.subresource} if call.subresource else {}),
        "namespace": metadata.get("namespace", ""),
        "name": metadata.get("name", ""),
        "userInfo": {"username": caller.user, "groups": list(caller.groups)},
        "dryRun": caller.dry_run,
        **({"options": call.options} if call.options is not None else {}),
    }


def _scope(world: World, call: AdmissionRequest, spec: Json, params: Json | None) -> _Scope:
    request = _request(call)
    namespace = world.store.get(NAMESPACES, "", request["namespace"])
    given = {
        "object": call.new,
        "oldObject": call.old,
        "request": request,
        "params": params,
        "namespaceObject": namespace.body if namespace else None,
        "authorizer": Authorizer(world, call.caller),
    }
    return _Scope(given, spec.get("variables") or [])


def _matches(world: World, match: Json, call: AdmissionRequest) -> bool:
    def covered(rules: list[Json]) -> bool:
        return any(_covers(rule, call.name, call.resource, call.operation) for rule in rules)

    rules = match.get("resourceRules")
    if rules is not None and not covered(rules):
        return False
    if covered(match.get("excludeResourceRules") or []):
        return False
    own = call.metadata.get("labels") or {}
    namespace = world.store.get(NAMESPACES, "", call.metadata.get("namespace", ""))
    around = (namespace.body["metadata"].get("labels") or {}) if namespace else {}
    return parse_selector_object(match.get("objectSelector") or {})(own) and (
        namespace is None or parse_selector_object(match.get("namespaceSelector") or {})(around)
    )


def _covers(rule: Json, name: str, resource: Resource, operation: str) -> bool:
    """`name` is that of the resource, or `RESOURCE/SUBRESOURCE`, which a plain `*` does not cover."""
    wanted = (
        ("operations", operation),
        ("apiGroups", resource.group),
        ("apiVersions", resource.version),
    )
    plural, slash, sub = name.partition("/")
    names = {name, f"{plural}/*", f"*/{sub}", "*/*"} if slash else {name, "*", "*/*"}
    return all({"*", value} & set(rule.get(key) or ()) for key, value in wanted) and bool(
        names & set(rule.get("resources") or ())
    )


def _denial(spec: Json, scope: _Scope) -> str:
    """Return why the policy denies the request, or "". An expression without a value denies."""
    conditions = spec.get("matchConditions") or ()
    try:
        if not all(evaluate(c["expression"], scope) for c in conditions):
            return ""
        for validation in spec.get("validations") or ():
            if evaluate(validation["expression"], scope) is not True:
                return _message(validation, scope)
    except CelError as error:
        return str(error) if spec.get("failurePolicy") != "Ignore" else ""
    return ""


def _message(validation: Json, scope: _Scope) -> str:
    if source := validation.get("messageExpression"):
        try:
            return str(evaluate(source, scope))
        except CelError:
            pass  # as on a real server, the plain message stands in
    return validation.get("message") or f"failed expression: {validation['expression']}"


def _refusal(call: AdmissionRequest, policy: str, binding: str, why: str) -> ApiError:
    message = f"ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {why}"
    name, resource = call.metadata["name"], call.resource
    details = {
        "name": name,
        "group": resource.group,
        "kind": resource.plural,
        "causes": [{"message": message}],
    }
    text = f'{resource.qualified} "{name}" is forbidden: {message}'
    return ApiError(422, "Invalid", text, details)
