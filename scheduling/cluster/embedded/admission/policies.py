"""ValidatingAdmissionPolicies: bound to resources and namespaces, written in CEL.

Parameters, audit annotations and warnings are not there: a policy with `paramKind` is not evaluated,
and a binding counts when its actions hold `Deny`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..context import Caller, World
from ..errors import ApiError
from ..resources import ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS, NAMESPACES, Json, Resource
from ..selectors import parse_selector_object
from .authorizer import Authorizer
from .cel import CelError, evaluate


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


def check_policies(
    world: World,
    caller: Caller,
    resource: Resource,
    new: Json,
    old: Json | None,
    *,
    subresource: str = "",
) -> None:
    """Refuse `new` (422) if a bound policy denies it; `old` is what it takes the place of."""
    if not world.store.count(ADMISSION_POLICY_BINDINGS):
        return
    operation = "CREATE" if old is None else "UPDATE"
    name = f"{resource.plural}/{subresource}" if subresource else resource.plural
    for record in world.store.listing(ADMISSION_POLICY_BINDINGS):
        binding = record.body["spec"]
        policy = world.store.get(ADMISSION_POLICIES, "", binding.get("policyName", ""))
        if policy is None or "Deny" not in (binding.get("validationActions") or ()):
            continue
        spec = policy.body["spec"]
        constraints = (spec["matchConstraints"], binding.get("matchResources") or {})
        if spec.get("paramKind") or not all(
            _matches(world, c, name, resource, operation, new) for c in constraints
        ):
            continue
        request = _request(caller, operation, subresource, new)
        message = _denial(spec, _scope(world, request, caller, spec, new, old))
        if message:
            raise _refusal(resource, new, policy.name, record.name, message)


def _request(caller: Caller, operation: str, subresource: str, new: Json) -> Json:
    return {
        "operation": operation,
        **({"subResource": subresource} if subresource else {}),
        "namespace": new["metadata"].get("namespace", ""),
        "name": new["metadata"].get("name", ""),
        "userInfo": {"username": caller.user, "groups": list(caller.groups)},
        "dryRun": caller.dry_run,
    }


def _scope(
    world: World, request: Json, caller: Caller, spec: Json, new: Json, old: Json | None
) -> _Scope:
    namespace = world.store.get(NAMESPACES, "", request["namespace"])
    given = {
        "object": new,
        "oldObject": old,
        "request": request,
        "namespaceObject": namespace.body if namespace else None,
        "authorizer": Authorizer(caller),
    }
    return _Scope(given, spec.get("variables") or [])


def _matches(
    world: World, match: Json, name: str, resource: Resource, operation: str, new: Json
) -> bool:
    def covered(rules: list[Json]) -> bool:
        return any(_covers(rule, name, resource, operation) for rule in rules)

    rules = match.get("resourceRules")
    if rules is not None and not covered(rules):
        return False
    if covered(match.get("excludeResourceRules") or []):
        return False
    own = new["metadata"].get("labels") or {}
    namespace = world.store.get(NAMESPACES, "", new["metadata"].get("namespace", ""))
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


def _refusal(resource: Resource, new: Json, policy: str, binding: str, why: str) -> ApiError:
    message = f"ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {why}"
    name = new["metadata"]["name"]
    details = {
        "name": name,
        "group": resource.group,
        "kind": resource.plural,
        "causes": [{"message": message}],
    }
    text = f'{resource.qualified} "{name}" is forbidden: {message}'
    return ApiError(422, "Invalid", text, details)
