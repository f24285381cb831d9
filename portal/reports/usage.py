"""GPU-hours of a class, a queue or all of them: the quantity that the utilization report is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

import numpy as np

from portal.display.periods import Floats
from portal.display.spread import share

PER_GPU_HOUR = 1000 * 3600
"""Milli-GPU-seconds."""
AS_FULLY = 0.9
"""Of what one range was measured, another has to be to be compared with it."""


@dataclass(frozen=True)
class Usage:
    """GPU-hours over a range, read by ``of``. Adds up over classes after ``weighed``: every field is linear,
    so what is free, down or idle in all is the sum of the parts, though none of them is below zero.
    """

    installed: float = 0.0
    capacity: float = 0.0
    """What ``allocated`` is measured against: ready GPUs, or the nominal quota of a subtree."""
    allocated: float = 0.0
    """What is charged: of the whole range, from the workloads' own steps."""
    known: float = 0.0
    """What was held in the time that ``capacity`` is of: shares of that are made with it and show it."""
    measured: float = 0.0
    """The part of ``known`` for which somebody measured the use."""
    used: float = 0.0
    pending: float = 0.0
    lost: float = 0.0
    """Work thrown away by evictions, inside ``allocated``."""
    free: float = 0.0
    """Of ``capacity``, not held; what is held above it by one class or queue fills no other's."""
    down: float = 0.0
    idle: float = 0.0
    """Held, but not really used."""

    @classmethod
    def of(cls, **read: float) -> Usage:
        """What was ``read`` of one class, or of one queue in it, and what follows."""
        usage = cls(**read)
        return replace(
            usage,
            free=max(0.0, usage.capacity - usage.known),
            down=max(0.0, usage.installed - usage.capacity),
            idle=max(0.0, usage.measured - usage.used),
        )

    def of_known(self, known: float) -> Usage:
        """The same capacity, of which ``known`` was held and nobody measured the use."""
        return Usage.of(installed=self.installed, capacity=self.capacity, known=known)

    def charged(self, allocated: float) -> Usage:
        """The same use of what was held by the workloads' own steps."""
        return replace(self, allocated=allocated)

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(a + b for a, b in zip(self.values(), other.values(), strict=True)))

    def weighed(self, weight: float) -> Usage:
        return Usage(*(value * weight for value in self.values()))

    def values(self) -> tuple[float, ...]:
        return tuple(getattr(self, f.name) for f in fields(self))

    @property
    def allocated_share(self) -> float | None:
        return share(self.known, self.capacity)

    @property
    def available_share(self) -> float | None:
        """Installed GPUs that were ready."""
        return share(self.installed - self.down, self.installed)

    @property
    def is_measured(self) -> bool:
        return self.measured > 0

    @property
    def unmeasured(self) -> float:
        """Held, and nobody knows whether it was used: with what was used and idle it makes ``allocated``."""
        return max(0.0, self.allocated - self.measured)

    @property
    def measured_share(self) -> float | None:
        """Of ``allocated``; the rest is ``unmeasured``."""
        return share(self.allocated - self.unmeasured, self.allocated)

    @property
    def used_share(self) -> float | None:
        """Really used of allocated; None where nobody measures."""
        return share(self.used, self.measured)

    def used_share_beside(self, now: Usage) -> float | None:
        """Really used, where at least about the same part was measured as of ``now``: else the two do not
        compare."""
        mine, its = share(self.measured, self.known), share(now.measured, now.known)
        return self.used_share if mine and its and mine >= AS_FULLY * its else None

    @property
    def idle_share(self) -> float | None:
        """Held and idle of allocated."""
        return share(self.idle, self.measured)


@dataclass(frozen=True)
class ClassOverTime:
    """One class over time: mean GPUs in each step of the series (its own GPUs, not weighed)."""

    installed: Floats
    capacity: Floats
    allocated: Floats
    used: Floats
    """NaN where nobody measured."""


@dataclass(frozen=True)
class Spans:
    """The stretches of time that were read, seconds since 1970; they do not overlap."""

    begins: Floats
    ends: Floats

    @property
    def seconds(self) -> float:
        return float((self.ends - self.begins).sum())

    def binned(self, values: Floats, origin: float, step_s: int, count: int) -> Floats:
        """``values``, one a span, summed by the step that each span begins in."""
        index = ((self.begins - origin) // step_s).astype(np.int64)
        return np.bincount(index, values, count).astype(np.float64)

    def covered(self, origin: float, step_s: int, count: int) -> Floats:
        """Seconds read in each step."""
        return self.binned(self.ends - self.begins, origin, step_s, count)


NO_SPANS = Spans(np.empty(0), np.empty(0))


@dataclass(frozen=True)
class Readings:
    """What was read for a scope and a range, by class id; ``queues`` by (queue id, class id)."""

    starts_s: Floats
    step_s: int
    spans: Spans = NO_SPANS
    lines: Mapping[int, ClassOverTime] = field(default_factory=dict)
    classes: Mapping[int, Usage] = field(default_factory=dict)
    queues: Mapping[tuple[int, int], Usage] = field(default_factory=dict)
    until_s: float | None = None
    """How far the samples reach; None without any."""
    source: str = "samples"

    @property
    def covered_s(self) -> Floats:
        """Seconds read in each step, which the means of the lines are over."""
        count = len(self.starts_s)
        return self.spans.covered(self.starts_s[0], self.step_s, count) if count else np.empty(0)
