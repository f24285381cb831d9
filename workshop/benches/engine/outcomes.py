"""What a benchmark takes and finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

Progress = Callable[[str], None]


@dataclass(slots=True)
class Outcome:
    """What one benchmark found. ``measured`` is flat, name -> number."""

    measured: dict[str, float] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    seeds: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
