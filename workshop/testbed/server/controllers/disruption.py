"""The counts of PodDisruptionBudgets."""

from __future__ import annotations

from collections.abc import Iterable

from workshop.testbed.server.kinds.resources import BUDGETS, PODS, Json
from workshop.testbed.server.kinds.selectors import parse_selector_object
from workshop.testbed.server.store.context import World
from workshop.testbed.server.store.store import Event, Key, Record

from ..verbs.update import write
from .runtime import After
from .tally import is_ended, is_ready


class DisruptionController:
    """Keeps every budget's status in step with its pods."""

    def __init__(self, world: World) -> None:
        self._world = world

    def keys(self, event: Event) -> Iterable[Key]:
        """Return the budget, or the budgets in the namespace of a pod that changed."""
        record = event.record
        if record.resource is BUDGETS:
            return (record.key,)
        if record.resource is not PODS or not self._world.store.count(BUDGETS, record.namespace):
            return ()
        return [budget.key for budget in self._world.store.listing(BUDGETS, record.namespace)]

    def reconcile(self, key: Key, after: After) -> None:
        """Count a budget's pods and write how many may be disrupted."""
        budget = self._world.store.find(key)
        if budget is None or "deletionTimestamp" in budget.body["metadata"]:
            return
        spec = budget.body.get("spec") or {}
        covers = parse_selector_object(spec.get("selector"))
        pods = [
            pod
            for pod in self._world.store.listing(PODS, budget.namespace)
            if not is_ended(pod) and covers(pod.body["metadata"].get("labels") or {})
        ]
        write(self._world, budget, status=_status(budget, spec, pods))


def _status(budget: Record, spec: Json, pods: list[Record]) -> Json:
    live = {pod.name for pod in pods if "deletionTimestamp" not in pod.body["metadata"]}
    old = budget.body.get("status") or {}
    disrupted = {n: t for n, t in (old.get("disruptedPods") or {}).items() if n in live}
    healthy = sum(is_ready(pod) and pod.name in live - disrupted.keys() for pod in pods)
    desired = _desired(spec, len(pods))
    status = {
        **old, "currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": len(pods),
        "disruptionsAllowed": max(0, healthy - desired) if pods else 0,
        "observedGeneration": budget.body["metadata"]["generation"], "disruptedPods": disrupted,
    }  # fmt: skip
    if not disrupted:
        del status["disruptedPods"]
    return status


def _desired(spec: Json, expected: int) -> int:
    if (unavailable := spec.get("maxUnavailable")) is not None:
        return max(0, expected - _scaled(unavailable, expected))
    return _scaled(spec.get("minAvailable", 1), expected)


def _scaled(value: int | str, expected: int) -> int:
    """Return a number, or a percentage of `expected` rounded up."""
    if isinstance(value, str) and value.endswith("%"):
        return -(-int(value[:-1]) * expected // 100)
    return int(value)
