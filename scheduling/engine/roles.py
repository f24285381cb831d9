"""Gangs of unlike members: how a workload with roles is counted (``model.Workload.roles``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import gcd

from scheduling.engine.model import Members, Role, Workload


def ordered(roles: Iterable[Role]) -> list[Role]:
    """Largest first, as they are seated."""
    return sorted(roles, key=lambda one: (-one.gpus, -one.cpus, -one.memory_mib, one.name))


def seated(roles: Iterable[Role], placement: Mapping[str, Mapping[str, int]]) -> tuple[Role, ...]:
    """``roles`` with their members on those nodes, by role."""
    return tuple(replace(one, placement=dict(placement.get(one.name, {}))) for one in roles)


def in_parts(work: Workload) -> Workload:
    """``work`` counted in parts, where it has roles."""
    if not work.roles:
        return work
    part = gcd(*(one.gpus for one in work.roles))
    parts = sum(one.members * one.gpus for one in work.roles) // part
    most = parts + sum(one.extra * one.gpus for one in work.roles) // part
    placement, leaving = Counter[str](), Counter[str]()
    for one in work.roles:
        for node, members in one.placement.items():
            placement[node] += members * one.gpus // part
        for node, members in one.leaving.items():
            leaving[node] += members * one.gpus // part
    return replace(
        work,
        gpus=part,
        cpus=0,
        memory_mib=0,
        beside={},
        members=Members(parts, most),
        placement=dict(placement),
        leaving_members=dict(leaving),
    )


def pods_beside(most: int, extra: int, gpus: int, missing: int) -> int:
    """Pods of a role of at most so many, each of so many milli-GPU, in a gang that has ``missing`` milli-GPU
    less than its most: only one of which plans may leave out ``extra`` has fewer.
    """
    return most - (missing // gpus if extra else 0)


Placed = list[tuple[int, str, int]]
"""(place among the roles, node, members)."""


def members_on(
    roles: Iterable[Role], placement: Mapping[str, int], part: int
) -> tuple[Placed, dict[str, int]]:
    """Where the members of each role sit, and what of the ``placement``, by node in parts of ``part``
    milli-GPU, no member is known to hold.

    What ``Role.placement`` does not say follows from the parts on each node, the largest roles first: where
    several ways are right GPUs are counted alike. Of a role that may have more members are as many there as
    the others leave parts for.
    """
    found: Placed = []
    loose, in_order = Counter(placement), ordered(roles)
    is_known = any(one.placement for one in in_order)
    spare = sum(placement.values())
    spare -= sum(one.members * one.gpus // part for one in in_order if not one.extra)
    for k, one in enumerate(in_order):
        parts, left = one.gpus // part, one.members
        if one.extra:
            left = min(one.members + one.extra, max(0, spare) // parts)
        for node in sorted(one.placement if is_known else loose):
            fit = one.placement[node] if is_known else min(left, loose[node] // parts)
            if fit:
                found.append((k, node, fit))
                loose[node] -= fit * parts
                left -= fit
    return found, {node: parts for node, parts in loose.items() if parts > 0}


def by_role(roles: Iterable[Role], placement: Mapping[str, int], part: int) -> dict[str, int]:
    """How many members each of the ``roles`` has there, by name."""
    in_order = ordered(roles)
    found = dict.fromkeys((one.name for one in in_order), 0)
    for k, _, members in members_on(in_order, placement, part)[0]:
        found[in_order[k].name] += members
    return found
