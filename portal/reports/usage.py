"""GPU-hours of a class, a queue or all of them: the quantity that the utilization report is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from portal.reports.buckets import Floats
from portal.reports.stats import share

PER_GPU_HOUR = 1000 * 3600
"""Milli-GPU-seconds."""


@dataclass(frozen=True)
class Usage:
    """GPU-hours over a range. Adds up over classes after ``weighed``."""

    installed: float = 0.0
    capacity: float = 0.0
    """What ``allocated`` is measured against: ready GPUs, or the nominal quota of a subtree."""
    allocated: float = 0.0
    measured: float = 0.0
    """The part of ``allocated`` for which somebody measured the use."""
    used: float = 0.0
    pending: float = 0.0
    lost: float = 0.0
    """Work thrown away by evictions, inside ``allocated``."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(a + b for a, b in zip(self.values(), other.values(), strict=True)))

    def weighed(self, weight: float) -> Usage:
        return Usage(*(value * weight for value in self.values()))

    def values(self) -> tuple[float, ...]:
        return tuple(getattr(self, f.name) for f in fields(self))

    @property
    def allocated_share(self) -> float | None:
        return share(self.allocated, self.capacity)

    @property
    def is_measured(self) -> bool:
        return self.measured > 0

    @property
    def used_share(self) -> float | None:
        """Really used of allocated; None where nobody measures."""
        return share(self.used, self.measured)

    @property
    def idle_share(self) -> float | None:
        """Held and idle of allocated."""
        return share(self.idle, self.measured)

    @property
    def idle(self) -> float:
        """Held, but not really used."""
        return max(0.0, self.measured - self.used)

    @property
    def free(self) -> float:
        return max(0.0, self.capacity - self.allocated)

    @property
    def down(self) -> float:
        return max(0.0, self.installed - self.capacity)


@dataclass(frozen=True)
class Line:
    """One class over time: mean GPUs in each step of the series (its own GPUs, not weighed)."""

    installed: Floats
    capacity: Floats
    allocated: Floats
    used: Floats
    """NaN where nobody measured."""


@dataclass(frozen=True)
class Readings:
    """What was read for a scope and a range, by class id; ``queues`` by (queue id, class id)."""

    starts_s: Floats
    step_s: int
    lines: Mapping[int, Line] = field(default_factory=dict)
    classes: Mapping[int, Usage] = field(default_factory=dict)
    queues: Mapping[tuple[int, int], Usage] = field(default_factory=dict)
    until_s: float | None = None
    """How far the samples reach; None without any."""
    source: str = "samples"
