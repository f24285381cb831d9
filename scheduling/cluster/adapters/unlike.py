"""Gangs whose members ask for unlike numbers of GPUs, counted in parts as the engine counts them.

A part is the most GPUs that divides those of every member. A pod counts for as many parts as it asks for, so
sums of members, of places and of limits are sums of GPUs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import gcd
from typing import Any

from scheduling.cluster.adapters import needs
from scheduling.cluster.adapters import pods as pods_of
from scheduling.cluster.adapters.base import Admission, Shape
from scheduling.cluster.adapters.sizing import Span
from scheduling.cluster.vocabulary.devices import Claims

Json = dict[str, Any]

MOST_NAMED = 8
"""Roles of one shape that are named."""


def part_of(gpus: Iterable[int]) -> int:
    """Milli-GPU of one part of pods that ask for so many, 0 where all are alike."""
    amounts = set(gpus)
    return gcd(*amounts) if len(amounts) > 1 else 0


def weights(
    pods: Sequence[Json], part: int, names: Sequence[str], claims: Claims
) -> list[int] | None:
    """Parts that each of the ``pods`` counts for; None where all count alike."""
    if not part:
        return None
    return [pods_of.gpus(pod["spec"], names, claims) // part for pod in pods]


def over(pods: Sequence[Json], weights: Sequence[int]) -> int:
    """Parts of those that have done theirs."""
    return sum(w for pod, w in zip(pods, weights, strict=True) if pods_of.phase(pod) == "Succeeded")


def not_over(pods: Sequence[Json], weights: Sequence[int] | None) -> int:
    """Parts, or pods where all count alike, of those that are not over."""
    each = weights or [1] * len(pods)
    return sum(w for pod, w in zip(pods, each, strict=True) if not pods_of.is_over(pod))


def shapes_of(
    counted: Sequence[tuple[str, Span]],
    gpus: Sequence[int],
    members: Sequence[needs.Member],
    names: Sequence[str],
) -> tuple[Shape, ...]:
    """Of roles as (name, least and most pods), the smallest first; of those that ask for as many GPUs the
    most that any needs beside. None where all are alike."""
    found: dict[int, list[tuple[str, Span, needs.Member]]] = {}
    for (name, pods), each, member in zip(counted, gpus, members, strict=True):
        found.setdefault(each, []).append((name, pods, member))
    if len(found) < 2:
        return ()
    return tuple(_shape(each, found[each], names) for each in sorted(found))


def _shape(
    gpus: int, alike: Sequence[tuple[str, Span, needs.Member]], names: Sequence[str]
) -> Shape:
    named = dict.fromkeys(str(name).replace("\0", "")[:63] for name, _, _ in alike if name)
    asks = [member.asks for _, _, member in alike]
    return Shape(
        tuple(named)[:MOST_NAMED],
        sum(most for _, (_, most), _ in alike),
        gpus,
        max(int(each.get("cpu", 0)) for each in asks),
        max(int(each.get("memory", 0)) for each in asks),
        needs.of_any(needs.taken(member, names) for _, _, member in alike),
        sum(most - least for _, (least, most), _ in alike),
    )


def fields(shapes: Sequence[Shape], let_in: int | None) -> Json:
    """Fields of ``Sighting``; ``let_in`` is the milli-GPU of the largest member that an admission let in."""
    if not shapes:
        return {}
    part = part_of(shape.gpus for shape in shapes)
    asks_more = let_in is not None and shapes[-1].gpus > let_in
    return {
        "gpus": part,
        "cpus": 0,
        "memory_mib": 0,
        "beside": (),
        "admitted_gpus": None if let_in is None else part - asks_more,
    }


def of_size(admission: Admission, gpus: int) -> Admission:
    """``admission`` as members of so many milli-GPU are sent by it."""
    nodes = admission.by_size.get(gpus)
    return replace(admission, nodes=nodes) if nodes else admission
