"""Nodes that break and come back while a simulation runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outage:
    """Seconds after the origin. Work on ``node`` falls back to its last checkpoint and waits again at once;
    until ``up_s`` the node takes none."""

    node: str
    down_s: int
    up_s: int
