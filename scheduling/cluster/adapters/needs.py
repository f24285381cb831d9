"""What a pod asks of its node besides GPUs, CPUs and memory, and by what else it is bound to some nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduling.cluster.adapters import bounds, neighbours, volumes
from scheduling.cluster.adapters import pods as pods_of
from scheduling.cluster.vocabulary.quantities import is_of_bytes

Json = dict[str, Any]
Amounts = tuple[tuple[str, int], ...]
"""(what a snapshot calls it, how much a member takes), by name."""

NOTHING: Amounts = ()
BYTES = "MiB of {}"
PORT = "host port "


@dataclass(frozen=True, slots=True)
class Member:
    """One pod, or those of one template: its spec, what is said of its metadata, where its author wants it
    (``steering.own_of``), and all it asks for."""

    spec: Json
    meta: Mapping[str, Any]
    own: Json
    asks: Mapping[str, int]


def fields(members: Sequence[Member], owner: Mapping[str, Any], names: Sequence[str]) -> Json:
    """Fields of ``Sighting`` by what its ``members`` need of nodes beside GPUs; ``owner`` is the metadata of
    their object, ``names`` are the resources of GPU classes."""
    said = [_bound_by(member, owner, names) for member in members]
    beside = [amounts(member.spec, each) for member, each in zip(members, said, strict=True)]
    first = members[0].asks
    return {
        "cpus": int(first.get("cpu", 0)),
        "memory_mib": int(first.get("memory", 0)),
        "bounds": bounds.written(
            {**member.own, **each} for member, each in zip(members, said, strict=True)
        ),
        "beside": of_all(beside),
        "together": neighbours.together(said[0]),
    }


def _bound_by(member: Member, owner: Mapping[str, Any], names: Sequence[str]) -> Json:
    """What of it bounds say: what it takes beside GPUs, its volumes, whom it runs near and apart from."""
    name, namespace = str(owner.get("name") or ""), str(owner.get("namespace") or "")
    return {
        "beside": pods_of.beside(member.asks, names),
        "volumes": volumes.of(member.spec, namespace),
        **neighbours.of(member.spec, member.meta, name, namespace),
    }


def taken(member: Member, names: Sequence[str]) -> dict[str, int]:
    """What one member takes of its node beside GPUs, CPUs and memory, but for places apart from others."""
    return amounts(member.spec, {"beside": pods_of.beside(member.asks, names)})


def amounts(pod: Json, said: Json) -> dict[str, int]:
    """What one pod takes of its node, by the names of snapshots; ``said`` is what bounds say of it."""
    return {
        **{name_of(name): amount_of(name, each) for name, each in said["beside"].items()},
        **dict.fromkeys(ports(pod), 1),
        **neighbours.places_apart(said),
    }


def of_all(members: Iterable[Mapping[str, int]]) -> Amounts:
    """What each of ``members`` takes, of every kind one, as the engine plans them alike: what all of them do,
    and of that the least. So nobody waits for what only one of its roles needs."""
    first, *others = members
    least = {name: min([each, *(o.get(name, 0) for o in others)]) for name, each in first.items()}
    return tuple(sorted((name, each) for name, each in least.items() if each))


def of_any(members: Iterable[Mapping[str, int]]) -> Amounts:
    """The most that any of ``members`` takes, of every kind."""
    most: dict[str, int] = {}
    for member in members:
        most |= {name: max(each, most.get(name, 0)) for name, each in member.items()}
    return tuple(sorted((name, each) for name, each in most.items() if each))


def ports(pod: Mapping[str, Any]) -> list[str]:
    """Ports of its host that a pod takes. With the network of its host those are all that its containers
    name. Two addresses of one host are not told apart."""
    hosts = bool(pod.get("hostNetwork"))
    found = [
        (port.get("hostPort") or (port.get("containerPort") if hosts else None), port)
        for container in [*(pod.get("containers") or []), *_restarted(pod)]
        for port in container.get("ports") or []
    ]
    return sorted({f"{PORT}{n}/{p.get('protocol') or 'TCP'}" for n, p in found if n})


def name_of(resource: str) -> str:
    """What a snapshot calls a resource: bytes are counted in MiB."""
    return BYTES.format(resource) if is_of_bytes(resource) else resource


def is_once(name: str) -> bool:
    """Whether a node has it once: a port, or a place apart from others."""
    return name.startswith((PORT, neighbours.PLACE))


def amount_of(resource: str, milli: int) -> int:
    """Of what is asked for, in MiB or thousandths, the whole amount."""
    return milli if is_of_bytes(resource) else -(-milli // 1000)


def _restarted(pod: Mapping[str, Any]) -> list[Json]:
    first = pod.get("initContainers") or []
    return [c for c in first if c.get("restartPolicy") == "Always"]
