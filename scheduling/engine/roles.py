"""Gangs of unlike members: how a workload with roles is counted (``model.Workload.roles``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import gcd

from scheduling.engine.model import Members, Role


def ordered(roles: Iterable[Role]) -> list[Role]:
    """Largest first, as they are seated."""
    return sorted(roles, key=lambda one: (-one.gpus, -one.cpus, -one.memory_mib, one.name))


def seated(roles: Iterable[Role], placement: Mapping[str, Mapping[str, int]]) -> tuple[Role, ...]:
    """``roles`` with their members on those nodes, by role."""
    return tuple(replace(one, placement=dict(placement.get(one.name, {}))) for one in roles)


def counted(roles: Sequence[Role]) -> tuple[int, Members, dict[str, int], dict[str, int]]:
    """Milli-GPU of a part of such a gang, how many parts it has, and by node those that sit, and leave."""
    part = gcd(*(one.gpus for one in roles))
    least = sum(one.members * one.gpus for one in roles) // part
    most = least + sum(one.extra * one.gpus for one in roles) // part
    sitting, leaving = Counter[str](), Counter[str]()
    for one in roles:
        for parts, placement in ((sitting, one.placement), (leaving, one.leaving)):
            for node, members in placement.items():
                parts[node] += members * one.gpus // part
    return part, Members(least, most), dict(sitting), dict(leaving)


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
