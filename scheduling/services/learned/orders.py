"""The orders that a learned one is held against, each as the world that it is lived in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from scheduling.engine import model as m
from scheduling.services.errors import ServiceError
from scheduling.simulation.ahead.period import Period
from scheduling.simulation.learning.search import STARTS

NOW, LEARNED, HAND = "now", "learned", "hand"
"""The order that decides now; the one that is judged; of one that decides, what would without it."""
BY_MERIT: Mapping[str, tuple[str, m.Sharing]] = {
    "promise": ("Promise", m.Sharing.PROMISE),
    "throughput": ("Throughput", m.Sharing.THROUGHPUT),
}
BY_SHARE: Mapping[str, tuple[str, str]] = {
    "shortest": ("Fair share, shortest predicted", "shortest_predicted"),
    "arrival": ("Fair share, arrival order", "arrival"),
}
"""Where the subtrees give out by weight, as all others do, and every queue goes in this order."""
Json = dict[str, Any]


def rule_of(world: m.Snapshot, period: Period) -> m.Sharing:
    """The rule of sharing by merit under which most of the work that counts came.

    Raises ServiceError where no work came under one: weights order nothing there.
    """
    rules = by_merit(world)
    counts = dict.fromkeys(STARTS, 0)
    for job, counted in zip(period.jobs, period.judged, strict=True):
        rule = rules.get(job.workload.queue)
        if counted and rule is not None:
            counts[rule] += 1
    best = max(counts, key=lambda rule: (counts[rule], rule.value))
    if not counts[best]:
        raise ServiceError(
            "nothing_by_merit",
            "No work came to a queue that gives out by promise or by throughput what is above nominal,"
            " and weights order nothing elsewhere.",
            "Let a queue share so, and train once work has come to it.",
        )
    return best


def by_merit(world: m.Snapshot) -> dict[str, m.Sharing]:
    """By queue that is in a subtree which gives out by merit, its rule."""
    known = {queue.name: queue for queue in world.queues}
    found: dict[str, m.Sharing] = {}
    for queue in world.queues:
        line, above = [queue.sharing], queue.parent
        while above is not None:
            line.append(known[above].sharing)
            above = known[above].parent
        stated = [rule for rule in (world.policy.sharing, *reversed(line)) if rule is not None]
        rule = next((rule for rule in stated if rule is not m.Sharing.FAIR_SHARE), None)
        if rule is not None:
            found[queue.name] = rule
    return found


def against(world: m.Snapshot) -> list[Json]:
    """Whom a challenger is held against: who decides, then every hand-written order that differs from it."""
    found = [{"key": NOW, "name": name_of(world)}]
    names = {key: name for key, (name, _) in (*BY_MERIT.items(), *BY_SHARE.items())}
    lived = [world]
    for key, name in names.items():
        other = under(world, key)
        if other not in lived:
            found.append({"key": key, "name": name})
            lived.append(other)
    return found


def name_of(world: m.Snapshot) -> str:
    """Of the order that decides in ``world``."""
    if world.policy.order_weights:
        return "Learned order"
    rules = sorted({rule.value for rule in by_merit(world).values()})
    return " and ".join(rules).capitalize() if rules else "Fair share"


def of_one_that_decides(world: m.Snapshot) -> list[Json]:
    """What would decide without it."""
    return [{"key": HAND, "name": name_of(under(world, HAND))}]


def under(
    world: m.Snapshot,
    key: str,
    weights: Mapping[str, float] | None = None,
    victim_weights: Mapping[str, float] | None = None,
) -> m.Snapshot:
    """``world`` as it is lived under the order ``key``; LEARNED takes ``weights`` and those of who may leave.
    Raises KeyError."""
    if key == NOW:
        return world
    if key == LEARNED:
        return weighed(world, weights or {}, victim_weights or {})
    plain = weighed(world, {}, {})
    if key == HAND:
        return plain
    if key in BY_MERIT:
        return _sharing(plain, BY_MERIT[key][1])
    shared = _sharing(plain, m.Sharing.FAIR_SHARE)
    return replace(shared, policy=replace(shared.policy, order=BY_SHARE[key][1]))


def weighed(
    world: m.Snapshot, weights: Mapping[str, float], victim_weights: Mapping[str, float]
) -> m.Snapshot:
    """``world`` with these weights in force."""
    policy = replace(world.policy, order_weights=dict(weights), victim_weights=dict(victim_weights))
    return replace(world, policy=policy)


def _sharing(world: m.Snapshot, rule: m.Sharing) -> m.Snapshot:
    """Where it gives out by merit, it does so by ``rule``; elsewhere nothing changes."""
    own = world.policy.sharing
    return replace(
        world,
        policy=replace(world.policy, sharing=_ruled(own, rule) or own),
        queues=tuple(replace(q, sharing=_ruled(q.sharing, rule)) for q in world.queues),
    )


def _ruled(stated: m.Sharing | None, rule: m.Sharing) -> m.Sharing | None:
    return rule if stated in STARTS else stated
