"""What Weir asks of a kind of object that holds work: how to read one, and how to let it go or stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ClassSpec:
    """A GPU class as the cluster knows it."""

    name: str
    resource_name: str
    node_labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Observed:
    """One workload as the cluster shows it now. GPUs and CPUs per member in thousandths.

    ``marked`` is True between an admission by Weir and the suspension that ends it. ``members_up``
    run or are done; ``placement`` counts by node the members whose pods still hold resources,
    ``pods_left`` those and the ones not bound yet.
    """

    uid: str
    kind: str
    namespace: str
    name: str
    generation: int
    """Rises with every edit of what it asks for, not with its status or annotations."""
    queue_label: str
    user: str
    priority_class: str
    gpus: int
    cpus: int
    memory_mib: int
    min_members: int
    max_members: int
    members: int
    """Members it asks pods for now (elastic work may have been sized down)."""
    gpu_classes: tuple[str, ...]
    created: datetime
    topology: Mapping[str, str] = field(default_factory=dict)
    run_time_limit_s: int | None = None
    checkpoint_interval_s: int | None = None
    checkpointed: datetime | None = None
    predicted_s: tuple[float, float] | None = None
    hold: bool = False
    suspended: bool = True
    deleting: bool = False
    marked: bool = False
    gpu_class: str | None = None
    planned: Mapping[str, int] = field(default_factory=dict)
    admitted: datetime | None = None
    evicted_by: int | None = None
    outcome: str = ""
    """``succeeded`` or ``failed`` once finished."""
    finished: datetime | None = None
    started: datetime | None = None
    members_up: int = 0
    members_wanted: int = 0
    """Members that still have work to do: all of them, less what a Job with completions is past."""
    placement: Mapping[str, int] = field(default_factory=dict)
    pods_left: int = 0
    said: tuple[str, ...] = ("", "", "", "")
    """The status as it stands on the object: the values of ``labels.STATUS``."""

    @property
    def key(self) -> str:
        """The engine's name of it."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_up(self) -> bool:
        """All members that have work left run."""
        return 0 < self.members_wanted <= self.members_up

    @property
    def stopped_by_hand(self) -> bool:
        """Suspended by somebody else than Weir, which clears its mark when it suspends."""
        return self.suspended and self.marked

    @property
    def held(self) -> bool:
        return self.hold or self.stopped_by_hand


@dataclass(frozen=True, slots=True)
class Admission:
    """A place for a gang: ``nodes`` maps host names to members."""

    gpu_class: ClassSpec
    members: int
    nodes: Mapping[str, int]
    placement: Mapping[str, int]
    at: datetime


class Adapter(Protocol):
    """One kind of object. Patches are merge patches without ``metadata.resourceVersion``."""

    kind: str
    api_version: str
    list_path: str

    def path(self, namespace: str, name: str) -> str: ...

    def trim(self, obj: Json) -> Json:
        """``obj`` without what nobody here reads; may reuse its parts."""
        ...

    def observe(self, obj: Json, pods: Sequence[Json], classes: Sequence[ClassSpec]) -> Observed:
        """``obj`` and its pods. Raises ValueError when its demand cannot be understood."""
        ...

    def admission(self, obj: Json, admission: Admission) -> Json: ...

    def suspension(self, obj: Json, evicted_by: int | None) -> Json: ...

    def resize(self, obj: Json, admission: Admission) -> Json:
        """Another number of members for one that is admitted."""
        ...
