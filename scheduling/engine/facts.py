"""What a decision's sentence and numbers are made of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from scheduling.engine.model import MILLI, Reason


@dataclass(frozen=True, slots=True)
class Facts:
    """What a sentence may quote. ``figures`` are milli-GPU unless a sentence reads them otherwise."""

    reason: Reason
    queue: str
    blame: str
    gpu_class: str
    figures: tuple[float, ...]
    gpus: int = MILLI
    least: int = 1
    members: int = 0
    rival: str = ""
    rival_queue: str = ""
    until: datetime | None = None
    lost_gpu_s: float = 0.0
    wanted: str = ""
    """What the user asked for by name: the queue label, the GPU classes, the topology level."""
    beside: str = ""
    """What a member needs beside its GPUs, as "8 CPUs and 64 GiB of memory"."""
    held_by_user: bool = False
    draining: bool = False
