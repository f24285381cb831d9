"""Pods and pod templates."""

from __future__ import annotations

from collections.abc import Iterator

from workshop.testbed.server.kinds.errors import (
    Cause,
    forbidden_field,
    invalid_value,
    required,
    unsupported,
)
from workshop.testbed.server.kinds.quantities import milli
from workshop.testbed.server.kinds.resources import Json

from .names import LABEL_HINT, is_dns_label, key_fault, labels_faults

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_QUANTITY_HINT = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_UPDATE_HINT = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)"
)


def pod_faults(body: Json) -> list[Cause]:
    """Return what is wrong with a pod."""
    spec = body.get("spec") or {}
    found = pod_spec_faults(spec, "spec")
    if spec.get("restartPolicy") not in _RESTART_POLICIES:
        found.append(
            unsupported("spec.restartPolicy", spec.get("restartPolicy"), _RESTART_POLICIES)
        )
    return found


def pod_spec_faults(spec: Json, field: str) -> list[Cause]:
    """Return what is wrong with a pod's spec at `field`, other than its restart policy."""
    containers = spec.get("containers")
    if not containers:
        return [required(f"{field}.containers")]
    found = list(_containers_faults(containers, f"{field}.containers"))
    found += _containers_faults(spec.get("initContainers") or [], f"{field}.initContainers")
    found += labels_faults(spec.get("nodeSelector"), f"{field}.nodeSelector")
    found += _toleration_faults(spec.get("tolerations") or [], f"{field}.tolerations")
    found += _affinity_faults(spec.get("affinity") or {}, f"{field}.affinity.nodeAffinity")
    for name in ("activeDeadlineSeconds", "terminationGracePeriodSeconds"):
        if (spec.get(name) or 0) < 0:
            hint = "must be greater than or equal to 0"
            found.append(invalid_value(f"{field}.{name}", spec[name], hint))
    return found


def _containers_faults(containers: list[Json], field: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, container in enumerate(containers):
        here = f"{field}[{index}]"
        name = container.get("name")
        if not name:
            yield required(f"{here}.name")
        elif not is_dns_label(name):
            yield invalid_value(f"{here}.name", name, LABEL_HINT)
        elif name in seen:
            yield Cause(f"{here}.name", "FieldValueDuplicate", f'Duplicate value: "{name}"')
        seen.add(name or "")
        if not container.get("image"):
            yield required(f"{here}.image")
        yield from _resources_faults(container.get("resources") or {}, f"{here}.resources")


def _resources_faults(resources: Json, field: str) -> Iterator[Cause]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for part, values in (("limits", limits), ("requests", requests)):
        for name, quantity in values.items():
            yield from _quantity_faults(name, quantity, f"{field}.{part}")
    for name, request in requests.items():
        if extended(name) and name not in limits:
            yield required(f"{field}.limits", "Limit must be set for non overcommitable resources")
        elif name in limits and _readable(request) and _readable(limits[name]):
            yield from _limit_faults(name, request, limits[name], f"{field}.requests")


def _limit_faults(name: str, request: str, limit: str, field: str) -> Iterator[Cause]:
    if extended(name) and milli(request) != milli(limit):
        yield invalid_value(field, request, f"must be equal to {name} limit of {limit}")
    elif milli(request) > milli(limit):
        yield invalid_value(
            field, request, f"must be less than or equal to {name} limit of {limit}"
        )


def _quantity_faults(name: str, quantity: str, field: str) -> Iterator[Cause]:
    here = f"{field}[{name}]"
    if fault := key_fault(name):
        yield invalid_value(here, name, fault)
    elif not _readable(quantity):
        yield invalid_value(here, quantity, _QUANTITY_HINT)
    elif milli(quantity) < 0:
        yield invalid_value(here, quantity, "must be greater than or equal to 0")
    elif extended(name) and milli(quantity) % 1000:
        yield invalid_value(here, quantity, "must be an integer")


def _readable(quantity: str) -> bool:
    try:
        milli(quantity)
    except (ValueError, TypeError):
        return False
    return True


def extended(name: str) -> bool:
    """Return whether `name` is a device-like resource, which cannot be overcommitted."""
    return "/" in name and "kubernetes.io/" not in name


def _toleration_faults(tolerations: list[Json], field: str) -> Iterator[Cause]:
    for index, toleration in enumerate(tolerations):
        here = f"{field}[{index}]"
        operator = toleration.get("operator") or "Equal"
        if operator not in ("Equal", "Exists", "Lt", "Gt"):
            yield unsupported(f"{here}.operator", operator, ("Equal", "Exists"))
        if not toleration.get("key") and operator != "Exists":
            hint = 'operator must be Exists when `key` is empty, which means "match all values"'
            yield invalid_value(f"{here}.operator", operator, hint)
        effect = toleration.get("effect")
        if effect and effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            yield unsupported(f"{here}.effect", effect, ("NoSchedule", "NoExecute"))


_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def _affinity_faults(affinity: Json, field: str) -> Iterator[Cause]:
    rule = (affinity.get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if rule is None:
        return
    here = f"{field}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    if not rule.get("nodeSelectorTerms"):
        yield required(here, "must have at least one node selector term")
    for index, term in enumerate(rule.get("nodeSelectorTerms") or ()):
        for place, expression in enumerate(term.get("matchExpressions") or ()):
            yield from _expression_faults(expression, f"{here}[{index}].matchExpressions[{place}]")


def _expression_faults(expression: Json, field: str) -> Iterator[Cause]:
    operator, values = expression.get("operator"), expression.get("values")
    if not expression.get("key"):
        yield required(f"{field}.key")
    if operator not in _OPERATORS:
        yield invalid_value(f"{field}.operator", operator, "not a valid selector operator")
    elif operator in ("In", "NotIn") and not values:
        yield required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist") and values:
        hint = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield forbidden_field(f"{field}.values", hint)


def pod_update_faults(new: Json, old: Json) -> list[Cause]:
    """Return what may not change in a pod's spec."""
    ours, theirs = new["spec"], old["spec"]
    if ours is theirs or ours == theirs:
        return []
    gates, old_gates = _gates(ours), _gates(theirs)
    found = []
    if not gates <= old_gates:
        hint = "only deletion is allowed, but found new scheduling gate"
        found.append(forbidden_field("spec.schedulingGates", f"{hint} '{min(gates - old_gates)}'"))
    old_tolerations = theirs.get("tolerations") or []
    is_same = (ours.get("tolerations") or [])[: len(old_tolerations)] == old_tolerations
    if not is_same or _frozen(ours, bool(old_gates)) != _frozen(theirs, bool(old_gates)):
        found.append(forbidden_field("spec", _UPDATE_HINT))
    return found


def _gates(spec: Json) -> set[str]:
    return {gate.get("name", "") for gate in spec.get("schedulingGates") or ()}


def _frozen(spec: Json, gated: bool) -> Json:
    """Return the part of a spec that must stay as it is."""
    free = {"tolerations", "schedulingGates", "activeDeadlineSeconds"}
    if gated:
        free |= {"nodeSelector", "affinity"}
    rest = {key: value for key, value in spec.items() if key not in free}
    for part in ("containers", "initContainers"):
        if part in rest:
            rest[part] = [
                {k: v for k, v in container.items() if k != "image"} for container in rest[part]
            ]
    return rest
