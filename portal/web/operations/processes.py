"""The processes of the installation, as the page of the engine tells of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.display.format import counted, duration
from scheduling.models import Cluster, Process, Role
from scheduling.services.worker.deployment import DEPLOYED
from scheduling.services.worker.lanes import LaneNow
from scheduling.services.worker.processes import LOST_S, ProcessState, missing, standings

STUCK_S = 120.0
"""A worker that is busy, or a machine that is, leaves tasks for a while."""
STARTED_BY = {Role(one.role): " ".join(one.command) for one in DEPLOYED}
"""Role -> the command that runs it."""
WITHOUT = {
    Role.WEB: "nobody reads pages",
    Role.ENGINE: "nothing is planned or written",
    Role.WORKER: "no roll-ups, forecasts, alerts and notices",
    Role.STUDY: "no what-ifs, experiments and studies, and nothing is learned",
    Role.BEAT: "nothing but cycles runs on schedule",
}
DOES = {
    Role.WEB: "pages and API",
    Role.ENGINE: "cycles and guardrails",
    Role.WORKER: "roll-ups, forecasts, alerts, notices",
    Role.STUDY: "what-ifs, experiments, capacity, learning",
    Role.BEAT: "the clock of all but cycles",
}


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """A process; ``does`` in words, ``remedy`` where it fell silent."""

    role: str
    name: str
    alive: bool
    began_at: datetime | None
    seen_at: datetime | None
    does: str
    remedy: str = ""
    cpu: float | None = None
    """Cores that it keeps busy."""
    memory_mib: int | None = None
    roles: int = 1
    """In how many roles the same process is told; what it spends is of all of them."""


@dataclass(frozen=True, slots=True)
class Processes:
    rows: Sequence[ProcessRow]
    faults: Sequence[str]
    """What is wrong for ``cluster``, in words."""
    lag_s: float | None
    """Of the engine worker that leads the cluster; None where none does."""
    objects: int

    @property
    def are_shared(self) -> bool:
        """Whether a process is told in several roles."""
        return any(row.roles > 1 for row in self.rows)


def processes_of(cluster: Cluster, lanes: Sequence[LaneNow], now: datetime) -> Processes:
    """One query."""
    processes = standings(now)
    roles = Counter(one.process.name for one in processes)
    rows = [_row(one, cluster, roles[one.process.name]) for one in processes]
    absent = [_absent(role) for role in missing(processes) if not _has(rows, role)]
    leader = _leader(processes, cluster)
    return Processes(
        rows=sorted(
            [*rows, *absent], key=lambda row: (row.alive, list(Role.labels).index(row.role))
        ),
        faults=[*_silent(processes, now), *_stuck(lanes, processes, now)],
        lag_s=leader["lag_s"] if leader else None,
        objects=leader["objects"] if leader else 0,
    )


def _row(one: ProcessState, cluster: Cluster, roles: int) -> ProcessRow:
    process, role = one.process, Role(one.process.role)
    return ProcessRow(
        role=role.label,
        name=process.name,
        alive=one.alive,
        began_at=process.began_at,
        seen_at=process.seen_at,
        does=_does(process, cluster) if one.alive else WITHOUT[role],
        remedy="" if one.alive else STARTED_BY[role],
        cpu=process.cpu if one.alive else None,
        memory_mib=process.memory_mib if one.alive else None,
        roles=roles,
    )


def _absent(role: Role) -> ProcessRow:
    return ProcessRow(role.label, "", False, None, None, WITHOUT[role], STARTED_BY[role])


def _has(rows: Sequence[ProcessRow], role: Role) -> bool:
    return any(row.role == role.label for row in rows)


def _does(process: Process, cluster: Cluster) -> str:
    turn = process.held.get(cluster.name)
    if process.role != Role.ENGINE or turn is None:
        return DOES[Role(process.role)]
    lag = f"mirror {turn['lag_s']:g} s behind" if turn["lag_s"] else "mirror in touch"
    if turn["leads"]:
        return f"holds the lease, {turn['lease_s']:.0f} s left; {lag}"
    return f"stands by; {lag}"


def _leader(processes: Sequence[ProcessState], cluster: Cluster) -> dict[str, Any] | None:
    """What the engine worker that leads holds of the cluster; of one that looks on where none leads, as
    in observe mode."""
    turns = [
        one.process.held[cluster.name]
        for one in processes
        if one.alive and one.process.role == Role.ENGINE and cluster.name in one.process.held
    ]
    return max(turns, key=lambda one: (one["leads"], -one["lag_s"]), default=None)


def _silent(processes: Sequence[ProcessState], now: datetime) -> Iterator[str]:
    for role in missing(processes):
        last = max(
            (one.process.seen_at for one in processes if one.process.role == role), default=None
        )
        heard = f"for {duration(now - last)}" if last else "yet"
        yield f"no {role.label.lower()} has been heard of {heard}: {WITHOUT[role]}"


def _stuck(
    lanes: Sequence[LaneNow], processes: Sequence[ProcessState], now: datetime
) -> Iterator[str]:
    """Lanes out of which nobody takes anything, though the broker is asked. A study takes minutes: a worker
    that lives takes the next one after it."""
    for lane in lanes:
        if lane.asked_at is None or (now - lane.asked_at).total_seconds() > LOST_S:
            continue
        if lane.waiting is None:
            yield "the broker does not answer"
            return
        workers = [one for one in processes if one.process.role == lane.role]
        is_busy = lane.role == Role.STUDY and any(one.alive for one in workers)
        since = lane.served_at or _there_since(workers)
        if not lane.waiting or is_busy or since is None:
            continue
        if (now - since).total_seconds() > STUCK_S:
            wait = "waits" if lane.waiting == 1 else "wait"
            yield (
                f"{counted(lane.waiting, 'task')} {wait} for {lane.what}, and no worker has taken one for"
                f" {duration(now - since)}"
            )


def _there_since(workers: Sequence[ProcessState]) -> datetime | None:
    """Since when one of them lives; where none does, when the last was heard of."""
    began = [one.process.began_at for one in workers if one.alive]
    return min(began) if began else max((one.process.seen_at for one in workers), default=None)
