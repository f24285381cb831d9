"""What an import found: GPU classes and queues in words of the API, and what Weir has no counterpart for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NO_GPUS = "GPUs are shared; the namespace's limits bound the rest"
"""In place of quotas of CPU and memory."""
LONGEST = 63
"""Of a queue's name: it is a label in the cluster."""


@dataclass(frozen=True, slots=True)
class Gap:
    """``what`` of those ``at``, and what takes its place or that nothing does."""

    what: str
    instead: str
    at: list[str]


@dataclass(slots=True)
class Findings:
    classes: list[dict[str, Any]] = field(default_factory=list)
    queues: list[dict[str, Any]] = field(default_factory=list)
    topology_levels: str = ""
    """As the cluster's policy has them; "" where the file names none."""
    _left: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def leave(self, at: str, what: str, instead: str) -> None:
        """Once for each ``at``; those of the same words become one line."""
        places = self._left.setdefault((what, instead), [])
        if at not in places:
            places.append(at)

    @property
    def left(self) -> list[Gap]:
        return [Gap(what, instead, at) for (what, instead), at in sorted(self._left.items())]

    def document(self) -> dict[str, Any]:
        left = [{"what": row.what, "instead": row.instead, "at": row.at} for row in self.left]
        return {
            "gpu_classes": self.classes,
            "queues": self.queues,
            "topology_levels": self.topology_levels,
            "left": left,
        }


class Names:
    """Names of queues that a cluster takes as labels, each once."""

    def __init__(self, found: Findings) -> None:
        self._found, self._taken = found, dict[str, str]()

    def give(self, name: str, at: str) -> str:
        """``name``, or what comes nearest; a change is said."""
        wanted = (
            re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")[:LONGEST].strip("-") or "queue"
        )
        given, number = wanted, 1
        while given in self._taken:
            number += 1
            given = f"{wanted[: LONGEST - 1 - len(str(number))]}-{number}"
        self._taken[given] = at
        if given != name:
            self._found.leave(at, "its name", f"the queue is called {given}")
        return given


def without_empty(queue: Mapping[str, Any]) -> dict[str, Any]:
    """A queue as the file of a tree has it: nothing that says nothing."""
    return {key: value for key, value in queue.items() if value not in ("", {}, [], None)}


def plain(value: float) -> float:
    """8.0 is written 8."""
    return int(value) if value == int(value) else round(value, 3)
