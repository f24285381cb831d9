"""How many pods of each role an object asks for, and how that number is set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scheduling.cluster.adapters import pods as pods_of
from scheduling.cluster.adapters.base import Admission
from scheduling.cluster.adapters.role import Role
from scheduling.cluster.vocabulary import labels
from scheduling.cluster.vocabulary.devices import Claims
from scheduling.cluster.vocabulary.quantities import natural, whole


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


def are_unlike(counted: Sequence[Role], admission: Admission) -> bool:
    """Whether they ask for several numbers of GPUs, and so are counted in parts."""
    return len({member_gpus([role], admission) for role in counted}) > 1


def pods_in(counted: Sequence[Role], admission: Admission) -> int:
    """Pods that an admission lets in: its members, or all of a gang whose members it counts in parts."""
    if are_unlike(counted, admission):
        return sum(role.count for role in counted)
    return admission.members


def between(
    counted: Sequence[Role], sizes: Mapping[str, int], said: Mapping[str, Any]
) -> tuple[int, int]:
    """(min, max) members of a gang whose roles are full at ``sizes``, by its annotations ``said``."""
    highest = sum(sizes.values())
    movable = [role for role in counted if role.resize is not None]
    if len(movable) != 1:
        return highest, highest
    role = movable[0]
    rest = highest - sizes[role.name]
    if role.lowest is not None and role.highest is not None:
        return rest + role.lowest, rest + max(role.lowest, role.highest)
    lowest = whole(said.get(labels.MIN_MEMBERS))
    return min(max(1, highest if lowest is None else lowest), highest), highest


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
