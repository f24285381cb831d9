"""How many pods of each role an object asks for, and how that number is set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scheduling.cluster.adapters import pods as pods_of
from scheduling.cluster.adapters.base import Admission, Shape
from scheduling.cluster.vocabulary.devices import Claims
from scheduling.cluster.vocabulary.quantities import natural

if TYPE_CHECKING:
    from scheduling.cluster.adapters.roles import Role


MOST_ROLES = 8
"""Roles of one shape that are named."""


def count_of(value: Any, default: int = 1) -> int:
    """How many a field says, or by ``default``. Raises ValueError for what is no number of pods."""
    count = natural(value)
    return default if count is None else count


def counted_of(roles: Sequence[Role], names: Sequence[str], claims: Claims) -> list[Role]:
    """The roles whose pods are members: those with GPUs, or all where none has any."""
    if not roles:
        raise ValueError("It has no pod template.")
    return [r for r in roles if pods_of.gpus(r.pod, names, claims)] or list(roles)


def member_gpus(counted: Sequence[Role], admission: Admission) -> int:
    names = (admission.gpu_class.resource_name, *admission.resource_names)
    return max(pods_of.gpus(role.pod, names, admission.claims) for role in counted)


def shapes_of(members: Iterable[tuple[str, int, int]], *, as_largest: bool) -> tuple[Shape, ...]:
    """Of ``members`` as (role, pods, milli-GPU), where they are unlike and planned ``as_largest``; the
    smallest first."""
    found: dict[int, Shape] = {}
    for role, pods, gpus in members:
        alike = found.get(gpus, Shape((), 0, gpus))
        name = str(role).replace("\0", "")[:63]
        is_named = name and name not in alike.roles and len(alike.roles) < MOST_ROLES
        roles = (*alike.roles, name) if is_named else alike.roles
        found[gpus] = Shape(roles, alike.pods + pods, gpus)
    is_unlike = as_largest and len(found) > 1
    return tuple(found[gpus] for gpus in sorted(found)) if is_unlike else ()


def set_size(counted: Sequence[Role], members: int) -> None:
    """Give the one role that can be sized what is missing of, or too much for, ``members``."""
    movable = [role for role in counted if role.resize is not None]
    change = members - sum(role.count for role in counted)
    if len(movable) == 1 and movable[0].resize is not None and change:
        movable[0].resize(movable[0].count + change)


def take_back(counted: Sequence[Role], sizes: Mapping[str, int]) -> None:
    """Take back what was raised past ``sizes``, where plans do not size the gang."""
    if sum(role.resize is not None for role in counted) == 1:
        return
    for role in counted:
        restore = role.restore or role.resize
        if restore is not None and role.count > sizes.get(role.name, role.count):
            restore(sizes[role.name])
