"""ResourceQuotas: no create may take a namespace past what they allow.

The check and the write that follows it happen under the store's lock, so that no two creates pass
together. Quotas with scopes are not evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable

from workshop.testbed.server.kinds.errors import forbidden
from workshop.testbed.server.kinds.pod_amounts import Amounts, quantities_of
from workshop.testbed.server.kinds.quantities import milli, render, render_binary
from workshop.testbed.server.kinds.resources import PODS, RESOURCE_QUOTAS, Json, Resource
from workshop.testbed.server.store.charges import NATIVE, charge_of, named
from workshop.testbed.server.store.context import World
from workshop.testbed.server.store.store import Record

_MUST_BE_SAID = {
    f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in NATIVE[:2]
}
"""cpu and memory: where a quota bounds them, each container has to say what it wants."""


def check_quotas(world: World, resource: Resource, body: Json) -> None:
    """Refuse the new `body` (403) if a quota of its namespace leaves no room for it."""
    namespace = body["metadata"].get("namespace", "")
    if not namespace or not world.store.count(RESOURCE_QUOTAS, namespace):
        return
    amounts = charge_of(resource, body)
    for quota in world.store.listing(RESOURCE_QUOTAS, namespace):
        if not is_scoped(quota):
            _check(world, quota, resource, body, amounts)


def is_scoped(quota: Record) -> bool:
    """Return whether `quota` bounds only some of the pods."""
    spec = quota.body["spec"]
    return bool(spec.get("scopes") or spec.get("scopeSelector"))


def usage(world: World, quota: Record) -> Json:
    """Return how much of what `quota` bounds is taken, as its status says it."""
    return {
        name: _shown(name, world.charges.usage(quota.namespace, name))
        for name in quota.body["spec"].get("hard") or {}
    }


def _check(world: World, quota: Record, resource: Resource, body: Json, amounts: Amounts) -> None:
    hard, name = quota.body["spec"].get("hard") or {}, body["metadata"]["name"]
    if resource is PODS and (unsaid := _unsaid(body["spec"], hard)):
        why = f"failed quota: {quota.name}: must specify {unsaid}"
        raise forbidden(resource, name, why)
    usage = {
        key: world.charges.usage(quota.namespace, key) for key in sorted(hard) if amounts.get(key)
    }
    over = [key for key, amount in usage.items() if amount + amounts[key] > milli(hard[key])]
    if over:
        why = (
            f"exceeded quota: {quota.name}, requested: {_list(over, amounts)}, "
            f"used: {_list(over, usage)}, limited: {','.join(f'{key}={hard[key]}' for key in over)}"
        )
        raise forbidden(resource, name, why)


def _unsaid(spec: Json, hard: Json) -> str:
    """Return which bounded amounts which containers leave open, or ""."""
    missing: dict[str, list[str]] = {}
    for container in [*spec["containers"], *(spec.get("initContainers") or ())]:
        requests, limits = (
            {name: milli(q) for name, q in quantities_of(container, part).items()}
            for part in ("requests", "limits")
        )
        for name in _MUST_BE_SAID & hard.keys() - named(requests, limits).keys():
            missing.setdefault(name, []).append(container["name"])
    return "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def _list(names: Iterable[str], amounts: Amounts) -> str:
    return ",".join(f"{name}={_shown(name, amounts[name])}" for name in names)


def _shown(name: str, amount: int) -> str:
    sized = name.rpartition(".")[2] in NATIVE[1:]
    return render_binary(amount) if sized else render(amount)
