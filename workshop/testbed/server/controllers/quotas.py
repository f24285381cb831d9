"""The status of ResourceQuotas: what is allowed, what is taken."""

from __future__ import annotations

from collections.abc import Iterable

from workshop.testbed.server.kinds.resources import RESOURCE_QUOTAS
from workshop.testbed.server.store.context import World
from workshop.testbed.server.store.store import Event, Key

from ..admission.quotas import is_scoped, usage
from ..verbs.update import write
from .runtime import After


class QuotaController:
    """Writes the sums that creates are checked against where people can read them."""

    def __init__(self, world: World) -> None:
        self._world = world

    def keys(self, event: Event) -> Iterable[Key]:
        """Return the quota that changed, or those of the namespace in which something did."""
        record = event.record
        if record.resource is RESOURCE_QUOTAS:
            return (record.key,)
        store = self._world.store
        if not record.namespace or not store.count(RESOURCE_QUOTAS, record.namespace):
            return ()
        return [quota.key for quota in store.listing(RESOURCE_QUOTAS, record.namespace)]

    def reconcile(self, key: Key, after: After) -> None:
        """Write what the quota allows and what is taken of it."""
        quota = self._world.store.find(key)
        if quota is None or is_scoped(quota):
            return
        hard = quota.body["spec"].get("hard") or {}
        write(self._world, quota, status={"hard": hard, "used": usage(self._world, quota)})
