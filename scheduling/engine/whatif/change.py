"""What ``relaxations`` finds, and among what it may look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Change(StrEnum):
    """Which input is relaxed. The order is that of cost: what a person decides alone comes first."""

    TOPOLOGY = "topology"
    SEGMENTS = "segments"
    NODES = "nodes"
    GPU_CLASS = "gpu_class"
    FEWER_CPUS = "fewer_cpus"
    LESS_MEMORY = "less_memory"
    FEWER_MEMBERS = "fewer_members"
    FEWER_GPUS = "fewer_gpus"
    QUEUE = "queue"
    PRIORITY = "priority"
    USER_WORKLOADS = "user_workloads"
    USER_GPUS = "user_gpus"
    QUEUE_WORKLOADS = "queue_workloads"
    LIMIT = "limit"
    GPU_HOURS = "gpu_hours"


@dataclass(frozen=True, slots=True)
class Relaxation:
    """One change that would start the workload.

    ``value`` is what the input would be: a name, a number of members, milli-GPU, CPUs or GiB per member,
    or a limit of ``queue``: workloads at once, milli-GPU or GPU-hours, of each user or in all. ``evicts``
    is how many GPUs (milli) others would have to give up first; 0 starts at once.
    """

    change: Change
    value: str | int
    sentence: str
    gpu_class: str
    evicts: int = 0
    queue: str = ""


@dataclass(frozen=True, slots=True)
class Reach:
    """What the person who asks may choose from: queue names and priority class names."""

    queues: Sequence[str] = ()
    priority_classes: Sequence[str] = ()
