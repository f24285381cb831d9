"""What an object asks for by its own words, apart from what becomes of it: its status and its pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from scheduling.cluster.adapters import faults
from scheduling.cluster.vocabulary import labels

Json = dict[str, Any]


class RolePods(NamedTuple):
    """Pods of one role, and those among them that an autoscaler of its own may leave out."""

    role: str
    pods: int
    spare: int
    weight: int = 1
    """Parts that each of its pods counts for, where members are unlike."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Follows from spec, labels and annotations of an object, GPU classes, claim templates and runtime
    classes, and from nothing else. Two versions of an object that agree in these ask for the same. It holds
    on to no part of the object."""

    members: Sequence[RolePods]
    between: tuple[int, int]
    """(min, max) members of the gang."""
    is_mixed: bool
    """It has pods with GPUs and pods without: only the former are members."""
    fields: Json
    """Fields of ``Sighting`` that follow, by name."""
    part: int = 0
    """Milli-GPU of the parts that unlike members are counted in, 0 where they are alike."""


def counts(demand: Demand, later: Mapping[str, bool], done: int) -> Json:
    """How many members it has, and how many of them are still wanted.

    ``later``: roles whose pods start after those of others -> whether they may be there by now; ``done``:
    members that are not missed.
    """
    members = min(faults.LARGEST_GANG, sum(part.pods * part.weight for part in demand.members))
    lowest, highest = (min(max(1, bound), faults.LARGEST_GANG) for bound in demand.between)
    return {
        "min_members": lowest,
        "max_members": highest,
        "members": members,
        "members_wanted": max(0, members - done),
        "spare": sum(part.spare * part.weight for part in demand.members),
        "undue": sum(
            part.pods * part.weight for part in demand.members if not later.get(part.role, True)
        ),
        "staged": bool(later),
    }


def priority_class(meta: Json, pods: Iterable[Json]) -> str:
    """The class that the object's label names, else the first that one of its pod specs does."""
    label = (meta.get("labels") or {}).get(labels.PRIORITY_CLASS)
    named = (pod.get("priorityClassName") for pod in pods)
    return label or next((name for name in named if name), "")


def named_by(pods: Iterable[Json]) -> tuple[str, ...]:
    """The priority classes that pod specs name, each once."""
    named = {str(name) for pod in pods if (name := pod.get("priorityClassName"))}
    return tuple(sorted(named)) if named else ()
