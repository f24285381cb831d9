"""What a process spends: memory and CPU of itself and of what it started, as the kernel counts them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
MIB = 1 << 20
PARENT = 1
CPU = slice(11, 15)
"""In user and system mode, of itself and of children that have ended and were waited for. Places in ``stat``
behind the name, which may hold blanks and brackets of its own."""


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """``memory`` is bytes that stay in memory; ``cpu_s`` counts from the start of each process, with children
    that have ended."""

    memory: int
    cpu_s: float


def spent(pid: int, proc: Path = PROC) -> ProcessUse | None:
    """Of ``pid`` and all below it; of memory that several processes share each counts its part. None where no
    kernel tells."""
    family = list(_family(pid, proc))
    if not family:
        return None
    memory = sum(_memory(one, proc) for one in family)
    return ProcessUse(memory, sum(_cpu_s(one, proc) for one in family))


class Meter:
    """Tells what was spent since it was asked last; not at all the first time."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._last: tuple[float, float] | None = None

    def read(self, now: float | None = None) -> dict[str, float | int | None]:
        """{memory_mib, cpu}: ``cpu`` is cores that were busy, on average; ``now`` is seconds of any clock
        that does not jump."""
        now = time.monotonic() if now is None else now
        found = spent(os.getpid(), self._proc)
        if found is None:
            return {"memory_mib": None, "cpu": None}
        cpu = self._since(found.cpu_s, now)
        self._last = (found.cpu_s, now)
        return {"memory_mib": round(found.memory / MIB), "cpu": cpu}

    def _since(self, cpu_s: float, now: float) -> float | None:
        if self._last is None or now <= self._last[1]:
            return None
        # a child that ends just now takes its seconds along until it was waited for
        return round(max(0.0, cpu_s - self._last[0]) / (now - self._last[1]), 3)


def _family(pid: int, proc: Path) -> Iterator[int]:
    """``pid`` first. A process that ends meanwhile is left out."""
    below: dict[int, list[int]] = {}
    known = set()
    for entry in proc.glob("[0-9]*"):
        if fields := _stat(int(entry.name), proc):
            known.add(int(entry.name))
            below.setdefault(int(fields[PARENT]), []).append(int(entry.name))
    waiting = [pid] if pid in known else []
    while waiting:
        one = waiting.pop()
        yield one
        waiting += below.get(one, ())


def _stat(pid: int, proc: Path) -> list[str]:
    try:
        return (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _cpu_s(pid: int, proc: Path) -> float:
    return sum(map(int, _stat(pid, proc)[CPU])) * TICK_S


def _memory(pid: int, proc: Path) -> int:
    """Its proportional set."""
    try:
        lines = (proc / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)


def spent_by_name(pid: int, proc: Path = PROC) -> dict[str, ProcessUse]:
    """Of ``pid`` and all below it, by the name that each gave itself; equal names are added up."""
    found: dict[str, ProcessUse] = {}
    for one in _family(pid, proc):
        name = _name(one, proc)
        so_far = found.get(name, ProcessUse(0, 0.0))
        found[name] = ProcessUse(
            so_far.memory + _memory(one, proc), so_far.cpu_s + _cpu_s(one, proc)
        )
    return found


def _name(pid: int, proc: Path) -> str:
    try:
        return (proc / str(pid) / "comm").read_text().strip()
    except OSError:
        return ""
