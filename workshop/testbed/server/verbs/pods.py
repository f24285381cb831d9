"""The subresources of pods: binding to a node, eviction under a disruption budget."""

from __future__ import annotations

from workshop.testbed.server.kinds.errors import ApiError, bad_request, conflict, too_many_requests
from workshop.testbed.server.kinds.resources import BUDGETS, PODS, Json
from workshop.testbed.server.kinds.selectors import parse_selector_object
from workshop.testbed.server.store.context import Caller, World, record_audit
from workshop.testbed.server.store.store import Record

from ..admission.policies import check_policies
from .delete import delete, parse_options
from .update import write, write_metadata


def set_condition(conditions: list[Json], condition: Json, now: str) -> list[Json]:
    """Return `conditions` with `condition` in it; its transition time moves with its status."""
    old = next((c for c in conditions if c["type"] == condition["type"]), None)
    if old is not None and old["status"] == condition["status"]:
        now = old.get("lastTransitionTime", now)
    new = {"lastProbeTime": None, **condition, "lastTransitionTime": now}
    if old == new:
        return conditions
    return [*(c for c in conditions if c is not old), new]


def disrupted(pod: Record, reason: str, message: str, now: str) -> Json:
    """Return the status of a pod that ends for reasons outside of it."""
    status = pod.body.get("status", {})
    target = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
    return {**status, "conditions": set_condition(status.get("conditions") or [], target, now)}


def bind(world: World, caller: Caller, pod: Record, binding: Json) -> None:
    """Put `pod` on the node that `binding` names, whose annotations it takes over.

    Raises ApiError: 400 without a target, 409 if the pod is bound or on its way out, 422 by a policy.
    """
    target = binding.get("target") or {}
    node = target.get("name")
    if not node:
        raise bad_request("binding: target.name is required: the name of a node")
    present = pod.body["spec"].get("nodeName")
    if present:
        why = f'pod {pod.name} is already assigned to node "{present}"'
        raise conflict(PODS, pod.name, why)
    if pod.body["metadata"].get("deletionTimestamp"):
        raise conflict(
            PODS, pod.name, f"pod {pod.name} is being deleted, cannot be assigned to a host"
        )
    if pod.body["spec"].get("schedulingGates"):
        raise conflict(PODS, pod.name, f"pod {pod.name} has non-empty .spec.schedulingGates")
    metadata = {
        **(binding.get("metadata") or {}), "name": pod.name, "namespace": pod.namespace
    }  # fmt: skip
    body = {**binding, "metadata": metadata}
    check_policies(world, caller, PODS, body, None, subresource="binding")
    if caller.dry_run:
        return
    if notes := metadata.get("annotations"):
        known = pod.body["metadata"].get("annotations") or {}
        pod = write_metadata(world, pod, annotations={**known, **notes})
    assign(world, pod, node)
    record_audit(world, caller, "bind", pod.key)


def assign(world: World, pod: Record, node: str) -> Record:
    """Write the node into `pod`, and that it is scheduled."""
    status = pod.body.get("status", {})
    now = world.clock.stamp()
    scheduled = {"type": "PodScheduled", "status": "True"}
    conditions = set_condition(status.get("conditions") or [], scheduled, now)
    return write(
        world,
        pod,
        spec={**pod.body["spec"], "nodeName": node},
        status={**status, "conditions": conditions},
    )


def evict(world: World, caller: Caller, pod: Record, eviction: Json) -> Record:
    """Delete `pod` if the disruption budgets that cover it allow that.

    Raises ApiError: 429 while a budget forbids it, 500 if several cover the pod.
    """
    options = parse_options(eviction.get("deleteOptions") or {}, {})
    status = pod.body.get("status", {})
    free = status.get("phase") in ("Pending", "Succeeded", "Failed")
    if not free and not pod.body["metadata"].get("deletionTimestamp"):
        _charge(world, caller, pod)
    if pod.body["spec"].get("nodeName") and not caller.dry_run:
        why = "Eviction API: evicting"
        status = disrupted(pod, "EvictionByEvictionAPI", why, world.clock.stamp())
        pod = write(world, pod, status=status)
    return delete(world, caller, pod, options)


def _charge(world: World, caller: Caller, pod: Record) -> None:
    labels = pod.body["metadata"].get("labels") or {}
    covering = [
        budget
        for budget in world.store.listing(BUDGETS, pod.namespace)
        if parse_selector_object(budget.body["spec"].get("selector"))(labels)
    ]
    if len(covering) > 1:
        message = "This pod has more than one PodDisruptionBudget, which the eviction subresource "
        raise ApiError(500, "InternalError", message + "does not support.")
    for budget in covering:
        status = _after_disruption(world, budget, pod)
        if not caller.dry_run:
            write(world, budget, status=status)


def _after_disruption(world: World, budget: Record, pod: Record) -> Json:
    status = budget.body.get("status") or {}
    allowed = status.get("disruptionsAllowed", 0)
    stale = status.get("observedGeneration", 0) < budget.body["metadata"]["generation"]
    if stale or allowed <= 0:
        cause = (
            "is still being processed by the server."
            if stale
            else f"needs {status.get('desiredHealthy', 0)} healthy pods and has "
            f"{status.get('currentHealthy', 0)} currently"
        )
        message = f"The disruption budget {budget.name} {cause}"
        raise too_many_requests(
            "Cannot evict pod as it would violate the pod's disruption budget.",
            10,
            {"causes": [{"reason": "DisruptionBudget", "message": message}]},
        )
    disrupted = {**(status.get("disruptedPods") or {}), pod.name: world.clock.stamp()}
    return {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
