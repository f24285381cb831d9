"""What a process spends: memory and CPU of itself and of what it started, as the kernel counts them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import psutil

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """``memory`` is bytes that stay in memory, of what several processes share its part; ``cpu_s`` counts
    from the start of each process, with children that have ended and were waited for."""

    memory: int = 0
    cpu_s: float = 0.0

    def __add__(self, other: ProcessUse) -> ProcessUse:
        return ProcessUse(self.memory + other.memory, self.cpu_s + other.cpu_s)


def spent(pid: int) -> ProcessUse | None:
    """Of ``pid`` and all below it; None where it is gone."""
    found = [one for _, one in each(family(pid))]
    return sum(found, ProcessUse()) if found else None


def spent_by_name(pid: int) -> dict[str, ProcessUse]:
    """Of ``pid`` and all below it, by the name that each gave itself; equal names are added up."""
    found: dict[str, ProcessUse] = {}
    for name, one in each(family(pid)):
        found[name] = found.get(name, ProcessUse()) + one
    return found


def family(pid: int) -> list[psutil.Process]:
    """``pid`` first, then all below it; empty where it is gone."""
    with suppress(psutil.Error):
        first = psutil.Process(pid)
        return [first, *first.children(recursive=True)]
    return []


def each(processes: Iterable[psutil.Process]) -> Iterator[tuple[str, ProcessUse]]:
    """Name and share of each; a process that ends meanwhile is left out."""
    for process in processes:
        with suppress(psutil.Error), process.oneshot():
            memory = process.memory_full_info()
            cpu_s = sum(process.cpu_times()[:4])
            yield process.name(), ProcessUse(getattr(memory, "pss", memory.rss), cpu_s)


def has_grown_by(most: int) -> Callable[[], bool]:
    """Whether this process holds ``most`` bytes more than it does now."""
    own = psutil.Process()
    begin = own.memory_info().rss

    def has_grown() -> bool:
        return bool(own.memory_info().rss - begin > most)

    return has_grown


class Meter:
    """Tells what was spent since it was asked last; not at all the first time."""

    def __init__(self) -> None:
        self._last: tuple[float, float] | None = None

    def read(self, now: float | None = None) -> dict[str, float | int | None]:
        """{memory_mib, cpu}: ``cpu`` is cores that were busy, on average; ``now`` is seconds of any clock
        that does not jump."""
        now = time.monotonic() if now is None else now
        found = spent(os.getpid())
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
