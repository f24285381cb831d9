"""What the ledger remembers of work that was evicted, and of work for which others were.

A claim is made when a plan evicts, shrinks or moves somebody for a workload that cannot start before these
have left. It is a column of that workload's row, written with the plan that makes it and read with the row,
so that neither a restart nor a kill forgets for whom somebody left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from scheduling.cluster.adapters import key_of
from scheduling.engine import Action
from scheduling.engine.workload import keeps_seats
from scheduling.models import Eviction, LapseCause, State, Workload

COUNTED = timedelta(days=1)
"""Evictions of a workload are counted for so long."""
UNDONE = timedelta(minutes=10)
"""An eviction that the cluster has not taken by then (cluster time) is given up, and the claim with it."""


class Victim(NamedTuple):
    """Work that leaves, shrinks or moves (``action``) by its engine name, and when that was decided."""

    name: str
    action: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Claim:
    """Seats that are kept: members by node, devices by node for shares of GPUs."""

    gpu_class: str
    placement: Mapping[str, int]
    devices: Mapping[str, tuple[int, ...]]
    victims: tuple[Victim, ...]
    since: datetime
    room_due: datetime | None = None
    """When the last of the victims was gone; while some leave, when the longest grace of their pods is over;
    None where nobody knows."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the victims."""
        return tuple(victim.name for victim in self.victims)

    def as_json(self) -> dict[str, Any]:
        return {
            "gpu_class": self.gpu_class,
            "placement": dict(self.placement),
            "devices": {node: list(used) for node, used in self.devices.items()},
            "victims": [[v.name, v.action, v.at.isoformat()] for v in self.victims],
            "since": self.since.isoformat(),
            "room_due": self.room_due.isoformat() if self.room_due else None,
        }


@dataclass(frozen=True, slots=True)
class ClaimMemory:
    """``evictions`` are those of the last day."""

    evictions: int = 0
    last_evicted: datetime | None = None
    last_evicted_for: str | None = None
    claim: Claim | None = None
    taken_gpus: int = 0
    """Milli-GPU that were evicted for it since it waits."""
    until: datetime | None = None
    """When one of the evictions counts no more."""


NOTHING = ClaimMemory()


@dataclass(frozen=True, slots=True)
class Lapse:
    """A claim that ended before its workload started."""

    row: Workload
    claim: Claim
    cause: LapseCause


def remembered(row: Workload | None, now: datetime) -> ClaimMemory:
    """What the snapshot of ``now`` states of ``row``."""
    if row is None or not (row.claim or row.last_evicted_at or row.taken_gpus):
        return NOTHING
    times = [at for at in map(datetime.fromisoformat, row.recent_evictions) if at > now - COUNTED]
    return ClaimMemory(
        evictions=len(times),
        last_evicted=row.last_evicted_at,
        last_evicted_for=row.last_evicted_for or None,
        claim=claim_of(row),
        taken_gpus=row.taken_gpus,
        until=min(times) + COUNTED if times else None,
    )


def claim_of(row: Workload) -> Claim | None:
    claim = row.claim
    if claim is None:
        return None
    return Claim(
        gpu_class=claim["gpu_class"],
        placement=claim["placement"],
        devices={node: tuple(used) for node, used in claim["devices"].items()},
        victims=tuple(Victim(n, a, datetime.fromisoformat(at)) for n, a, at in claim["victims"]),
        since=datetime.fromisoformat(claim["since"]),
        room_due=datetime.fromisoformat(claim["room_due"]) if claim["room_due"] else None,
    )


def note_eviction(row: Workload, at: datetime, rival: str) -> None:
    """``row`` was evicted by what was decided ``at``, for the workload ``rival`` if for any; in memory."""
    recent = [t for t in row.recent_evictions if datetime.fromisoformat(t) > at - COUNTED]
    row.recent_evictions = [*recent, at.isoformat()]
    row.last_evicted_at, row.last_evicted_for = at, rival


def keep_seats(lapse: Lapse, rows: Mapping[str, Workload], claimed: Set[str]) -> list[Workload]:
    """Those who still leave for a claim that lapsed and keep their seats, each with a claim to them now;
    ``rows`` by engine name, ``claimed`` are nodes of which others claim seats."""
    rival = key_of(lapse.row.kind, lapse.row.namespace, lapse.row.name)
    left = (rows.get(name) for name in lapse.claim.names)
    spared = [
        row
        for row in left
        if row is not None
        and keeps_seats(_leaves_for(row, rival), row.gpus, not claimed.isdisjoint(row.placement))
    ]
    for row in spared:
        row.claim = Claim(
            gpu_class=row.gpu_class.name if row.gpu_class else "",
            placement=row.placement,
            devices={},
            victims=(),
            since=row.last_evicted_at or lapse.claim.since,
        ).as_json()
    return spared


def _leaves_for(row: Workload, rival: str) -> bool:
    leaves = row.state == State.EVICTED and row.last_evicted_for == rival
    return leaves and row.claim is None and bool(row.placement and row.gpu_class)


def undone(claim: Claim, rows: Mapping[str, Workload]) -> list[tuple[Workload, Victim]]:
    """Whose eviction for ``claim`` is decided and not seen yet; ``rows`` by engine name."""
    found = []
    for victim in claim.victims:
        row = rows.get(victim.name) if victim.action == Action.EVICT else None
        if row is not None and (row.last_evicted_at is None or row.last_evicted_at < victim.at):
            found.append((row, victim))
    return found


def mark_in_vain(lapses: Iterable[Lapse]) -> None:
    """Say of each eviction that made room for a claim that lapsed that it was for nothing, and why; in the
    caller's transaction."""
    for lapse in lapses:
        made = Eviction.objects.filter(
            for_workload_id=lapse.row.pk, at__gte=lapse.claim.since, in_vain=""
        )
        made.update(in_vain=lapse.cause)
