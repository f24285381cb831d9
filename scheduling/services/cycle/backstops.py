"""Starts that the quota of their namespace has no room for are not made: their pods would be refused, and
GPUs be kept for a gang that cannot begin.

What such a gang was to get, and the room that was to be made for it, is left for the next cycle, in which
it is held as work that the cluster refuses to start; others go before it.

Of more starts than one cycle should write, a portion is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Any

from scheduling.cluster.adapters import Sighting
from scheduling.cluster.adapters import pods as pods_of
from scheduling.cluster.connection.mirror import Mirror
from scheduling.cluster.vocabulary.devices import RESOURCES
from scheduling.engine import Action, Decision, Outline, Reason, Waits
from scheduling.engine.reasons.wording import plural
from scheduling.services.clusters.guardrails import namespace_rails
from scheduling.services.clusters.namespaces import Amounts, Bound, Machine, machines_in
from scheduling.services.queues.faults import figure
from scheduling.services.queues.rows import PolicyRows

Json = dict[str, Any]
Find = Callable[[str], Sighting | None]
"""A workload by the engine's name."""

MAKES_ROOM = (Action.EVICT, Action.SHRINK, Action.MOVE)
FULL = "The quota of namespace {} leaves {} of {}, and its pods ask for {}"
MIB_PER_GIB = 1024


@dataclass(slots=True)
class Machines:
    """The nodes that a mirror holds, read anew when one of them changed."""

    _seen: list[Json] = field(default_factory=list)
    _classes: object = None
    _read: list[Machine] = field(default_factory=list)

    def of(self, mirror: Mirror, rows: PolicyRows) -> list[Machine]:
        names = ("nodes", *RESOURCES)
        seen = [obj for name in names for obj in mirror[name].objects()]
        same = len(seen) == len(self._seen) and all(map(is_, seen, self._seen))
        if not same or self._classes != rows.class_specs:
            self._seen, self._classes = seen, rows.class_specs
            self._read = machines_in(mirror, rows.class_specs)
        return self._read


def within(
    plan: Outline,
    find: Find,
    rows: PolicyRows,
    mirror: Mirror,
    machines: Machines,
    holding: Iterable[Sighting],
) -> tuple[Outline, dict[str, tuple[int, str]]]:
    """``plan`` without what quotas leave no room for, and of that which object (uid) at which generation is
    refused why. ``holding`` are the workloads that hold GPUs or are about to."""
    starts = [d for d in plan.acts if d.action is Action.ADMIT]
    coming = [d.for_workload for d in plan.acts if d.action in MAKES_ROOM and d.for_workload]
    asking = [o for name in (*(d.workload for d in starts), *coming) if (o := find(name))]
    managed = {queue.namespace for queue in rows.queues}
    spaces = {o.namespace for o in asking if o.cpus or o.memory_mib or o.shapes} & managed
    if not spaces:
        return plan, {}
    found = namespace_rails(rows, machines.of(mirror, rows), spaces)
    bounds = {r.name: (r.cpus, r.memory_mib, r.pods) for r in found}
    taken = _requests_by_namespace(spaces, mirror["pods"].objects(), holding)
    late, refused = _judge(plan.acts, find, bounds, taken)
    return put_off(plan, late), refused


def _judge(
    acts: Sequence[Decision],
    find: Find,
    bounds: Mapping[str, tuple[Bound, ...]],
    taken: dict[str, Amounts],
) -> tuple[list[tuple[Decision, Decision | None]], dict[str, tuple[int, str]]]:
    """Acts that are not carried out, those that are starts with the wait in their place, and why."""
    late: list[tuple[Decision, Decision | None]] = []
    refused: dict[str, tuple[int, str]] = {}
    homes = {d.for_workload: o.namespace for d in acts if (o := find(d.workload))}
    for act in acts:
        name = act.workload if act.action is Action.ADMIT else act.for_workload
        observed = find(name) if name and act.action in (Action.ADMIT, *MAKES_ROOM) else None
        if observed is None or observed.namespace not in bounds:
            continue
        is_start = act.action is Action.ADMIT
        if not is_start and homes.get(name) == observed.namespace:
            continue  # A victim leaves its room in the quota as well.
        need = _of(observed, act.members if is_start else observed.min_members)
        space = observed.namespace
        if why := _lack(space, need, bounds[space], taken[space]):
            refused[observed.uid] = observed.generation, why
            late.append((act, _wait(act, why) if is_start else None))
        elif is_start:
            taken[space] = _sum((taken[space], need))
    return late, refused


def _of(observed: Sighting, members: int) -> Amounts:
    if observed.shapes:
        missing = observed.gpus * (observed.max_members - members)
        pods = [(shape, shape.pods_beside(missing)) for shape in observed.shapes]
        return (
            sum(shape.cpus * many for shape, many in pods),
            sum(shape.memory_mib * many for shape, many in pods),
            sum(many for _, many in pods),
        )
    return observed.cpus * members, observed.memory_mib * members, members


def _lack(space: str, need: Amounts, bounds: tuple[Bound, ...], taken: Amounts) -> str:
    """Why ``need`` finds no room, with the numbers; empty when it does."""
    for most, usage, more, said in zip(bounds, taken, need, (_cpus, _memory, _pods), strict=True):
        if most is not None and more and usage + more > most:
            return FULL.format(space, said(max(0, most - usage)), said(most), said(more))
    return ""


def _cpus(milli: int) -> str:
    return f"{figure(milli)} CPUs"


def _memory(mib: int) -> str:
    return f"{mib / MIB_PER_GIB:g} GiB of memory"


def _pods(number: int) -> str:
    return plural(number, "pod")


def _wait(start: Decision, why: str) -> Decision:
    return Decision(
        workload=start.workload,
        action=Action.WAIT,
        reason=Reason.NEVER_FITS,
        sentence=f"{why}.",
        queue=start.queue,
    )


def _requests_by_namespace(
    spaces: set[str], pods: Iterable[Json], holding: Iterable[Sighting]
) -> dict[str, Amounts]:
    """What the pods of each namespace request, and those that are still to come of what was started."""
    taken: dict[str, Amounts] = dict.fromkeys(spaces, (0, 0, 0))
    for pod in pods:
        space = pod["metadata"].get("namespace")
        if space in taken and not pods_of.is_over(pod):
            asks = pods_of.requests_of(pod["spec"])
            taken[space] = _sum((taken[space], (asks.get("cpu", 0), asks.get("memory", 0), 1)))
    for observed in holding:
        missing = observed.members_wanted - max(observed.pods_left, observed.members_up)
        if observed.namespace in taken and missing > 0:
            space = observed.namespace
            taken[space] = _sum((taken[space], _of(observed, missing)))
    return taken


def _sum(amounts: Iterable[Amounts]) -> Amounts:
    return tuple(map(sum, zip(*amounts, strict=True)))


NEXT = "GPUs are free for it. It starts once the starts before it are written."


def portion(plan: Outline, most: int, priority_of: Callable[[str], int]) -> tuple[Outline, bool]:
    """``plan`` with ``most`` of its admissions, and whether those are all. The others wait, at the head of
    the line, to be planned anew.

    All of them have room, and wait for nothing but their write. Half are the first of the plan, so that no
    queue's starts are put off for ever; of the rest those of the highest ``priority_of`` a workload's name.
    What makes room stays whole: whom it is made for claims it in the next plan.
    """
    admitted = [d.workload for d in plan.acts if d.action is Action.ADMIT]
    if len(admitted) <= most:
        return plan, True
    first = admitted[: most - most // 2]
    urgent = sorted(admitted[len(first) :], key=priority_of, reverse=True)[: most // 2]
    late = set(admitted).difference(first, urgent)
    return put_off(plan, [(d, _later(d)) for d in plan.acts if d.workload in late]), False


def served_by(plan: Outline) -> frozenset[str]:
    """Names of those that start by ``plan``, or for whom it makes room."""
    starts = (act.workload for act in plan.acts if act.action is Action.ADMIT)
    return frozenset((*starts, *(act.for_workload for act in plan.acts if act.for_workload)))


def put_off(plan: Outline, late: Sequence[tuple[Decision, Decision | None]]) -> Outline:
    """``plan`` without the acts that are ``late``, and with the waits beside them at the head of the line."""
    if not late:
        return plan
    gone = {id(act) for act, _ in late}
    acts = tuple(act for act in plan.acts if id(act) not in gone)
    waits = [wait for _, wait in late if wait is not None]
    return replace(plan, acts=acts, waits=ahead_of(plan.waits, waits))


def _later(start: Decision) -> Decision:
    """A wait without a place in the line: nobody it waits for has to end."""
    return Decision(
        workload=start.workload,
        action=Action.WAIT,
        reason=Reason.WAITS_FOR_TURN,
        sentence=NEXT,
        queue=start.queue,
    )


def ahead_of(line: Waits, decisions: Sequence[Decision]) -> Waits:
    """``line`` with ``decisions`` before it."""
    ahead = len(decisions)

    def spell(places: Sequence[int]) -> list[Decision]:
        others = iter(line.spell([place - ahead for place in places if place >= ahead]))
        return [decisions[place] if place < ahead else next(others) for place in places]

    return Waits(
        names=[*(d.workload for d in decisions), *line.names],
        reasons=[*(d.reason for d in decisions), *line.reasons],
        positions=[*(0 for _ in decisions), *line.positions],
        spell=spell,
    )
