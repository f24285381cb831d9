"""How many pods of each role an object asks for, and how that number is set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
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


def pods_in(counted: Sequence[Role], sizes: Mapping[str, int], admission: Admission) -> int:
    """Pods that an admission lets in: its members; of a gang whose members it counts in parts those of roles
    of one size, which are full at ``sizes``, and as many of the one that plans size as take the other parts.
    """
    if not are_unlike(counted, admission):
        return admission.members
    role = sized_role(counted)
    others = {r.name: sizes[r.name] for r in counted if r is not role}
    if role is None:
        return sum(others.values())
    gpus = {r.name: member_gpus([r], admission) for r in counted}
    rest = sum(gpus[name] * pods for name, pods in others.items())
    total = admission.members * gcd(*gpus.values())
    return sum(others.values()) + max(0, total - rest) // gpus[role.name]


def sized_role(counted: Sequence[Role]) -> Role | None:
    """The one role of which plans say how many pods it has. Of several that could be sized none is, unless
    the bounds of the others leave no choice.
    """
    movable = [role for role in counted if role.resize is not None]
    if len(movable) > 1:
        movable = [role for role in movable if role.lowest != role.highest]
    return movable[0] if len(movable) == 1 else None


Span = tuple[int, int]
"""The least and the most pods of a role, or members of a gang."""


def spans(counted: Sequence[Role], sizes: Mapping[str, int], said: Mapping[str, Any]) -> list[Span]:
    """Of each role; full at ``sizes``, in a gang with the annotations ``said``."""
    found = {role.name: (sizes[role.name], sizes[role.name]) for role in counted}
    role = sized_role(counted)
    if role is not None and role.lowest is not None and role.highest is not None:
        found[role.name] = role.lowest, max(role.lowest, role.highest)
    elif role is not None:
        most, lowest = sizes[role.name], whole(said.get(labels.MIN_MEMBERS))
        rest = sum(sizes.values()) - most
        least = most if lowest is None else min(max(1, lowest) - rest, most)
        found[role.name] = max(0, least), most
    return [found[role.name] for role in counted]


def between(spans: Sequence[Span], weights: Sequence[int] | None = None) -> Span:
    """The least and the most members of a gang whose pods count for so many."""
    each = weights or [1] * len(spans)
    least = sum(low * weight for (low, _), weight in zip(spans, each, strict=True))
    return least, sum(high * weight for (_, high), weight in zip(spans, each, strict=True))


def parts_of(pods: int, spans: Sequence[Span], weights: Sequence[int]) -> int:
    """Parts of so many ``pods`` of a gang of unlike members: of the role that plans size the pods beyond
    those that all roles have at least.
    """
    least, _ = between(spans)
    parts, _ = between(spans, weights)
    each = next((w for (low, high), w in zip(spans, weights, strict=True) if low != high), 0)
    return parts + (pods - least) * each


def set_size(counted: Sequence[Role], members: int) -> None:
    """Give the one role that can be sized what is missing of, or too much for, ``members``."""
    role, change = sized_role(counted), members - sum(role.count for role in counted)
    if role is not None and role.resize is not None and change:
        role.resize(role.count + change)


def take_back(counted: Sequence[Role], sizes: Mapping[str, int]) -> None:
    """Take back what was raised past ``sizes``, where plans do not size the gang."""
    if sized_role(counted) is not None:
        return
    for role in counted:
        restore = role.restore or role.resize
        if restore is not None and role.count > sizes.get(role.name, role.count):
            restore(sizes[role.name])
