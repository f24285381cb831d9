"""What Weir asks of a kind of object that holds work: how to read one, and how to let it go or stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from scheduling.cluster.adapters.cel import PolicyKind
from scheduling.cluster.adapters.start_faults import NO_FAULT, StartFault
from scheduling.cluster.adapters.turns import NO_TURN, Turn
from scheduling.cluster.vocabulary.devices import Claims
from scheduling.cluster.vocabulary.endings import Ending
from scheduling.cluster.vocabulary.limit_ranges import Defaults
from scheduling.cluster.vocabulary.runtimes import NO_RUNTIMES, Runtimes
from scheduling.engine.roles import pods_beside

if TYPE_CHECKING:
    from scheduling.cluster.adapters.demand import Demand

Json = dict[str, Any]


DELETE = "$delete"
"""Stands in a patch for the deletion of the object."""


def key_of(kind: str, namespace: str, name: str) -> str:
    """The engine's name of an object. Two kinds may share a name; Jobs, most of all, go without theirs."""
    return f"{namespace}/{name}" if kind == "Job" else f"{namespace}/{kind.lower()}/{name}"


@dataclass(frozen=True, slots=True)
class ClassSpec:
    """A GPU class as the cluster knows it."""

    name: str
    resource_name: str
    node_labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Target:
    """Where a workload that is being moved starts again."""

    gpu_class: str
    placement: Mapping[str, int]


class Shape(NamedTuple):
    """Members of a gang that ask for the same number of milli-GPU, and the roles that they have: at most so
    many ``pods``, of which plans may leave out ``extra``.
    """

    roles: tuple[str, ...]
    pods: int
    gpus: int
    cpus: int = 0
    memory_mib: int = 0
    beside: tuple[tuple[str, int], ...] = ()
    extra: int = 0

    def document(self) -> Json:
        gpus = self.gpus / 1000
        whole = int(gpus) if gpus.is_integer() else gpus
        least = {"pods_min": self.pods - self.extra} if self.extra else {}
        return {"roles": list(self.roles), "pods": self.pods, "gpus": whole, **least}

    def pods_beside(self, missing: int) -> int:
        """Its pods in a gang with so many milli-GPU less than its most."""
        return pods_beside(self.pods, self.extra, self.gpus, missing)


@dataclass(frozen=True, slots=True)
class Sighting:
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
    """The least that its kind's own field and its annotation say."""
    own_limit_s: int | None = None
    """What the annotation says: its kind knows nothing of it."""
    admitted_limit_s: int | None = None
    """The limit that its admission let in."""
    bounds: str = ""
    """Where its author and its runtime class let its pods run, as ``bounds`` writes it; empty if anywhere."""
    beside: tuple[tuple[str, int], ...] = ()
    """What else a member takes of its node, as ``needs`` names it."""
    together: tuple[str, ...] = ()
    """Labels of nodes by which its pod affinity keeps its members together."""
    shapes: tuple[Shape, ...] = ()
    """Of members that ask for unlike numbers of GPUs, which are counted in parts (``unlike``); else none."""
    image: str = ""
    """What its members run: the image of the first container that asks for GPUs, else of the first."""
    names_classes: bool = False
    """Its author names the GPU classes that it may run on."""
    pod_priority_classes: tuple[str, ...] = ()
    """What its pod templates name as their priorityClassName."""
    checkpoint_interval_s: int | None = None
    checkpointed: datetime | None = None
    predicted_s: tuple[float, float] | None = None
    hold: bool = False
    ran_out: bool = False
    """Weir holds it, because it ran for its limit."""
    turn: Turn = NO_TURN
    """When its author lets it start."""
    fault: str = ""
    """Why it cannot be planned as it stands, with the remedy; empty for nearly all."""
    incomplete: str = ""
    """What it still lacks before it can be planned, such as pods of its group."""
    suspended: bool = True
    deleting: bool = False
    marked: bool = False
    gpu_class: str | None = None
    planned: Mapping[str, int] = field(default_factory=dict)
    sized: int | None = None
    """Members that its admission or the last resize allowed."""
    admitted: datetime | None = None
    evicted_by: int | None = None
    moves_to: Target | None = None
    altered: bool = False
    """Its templates and size are what an admission made of them."""
    start_failures: int = 0
    retry_at: datetime | None = None
    start_fault: StartFault = NO_FAULT
    """Why its last start failed, and where it is not tried for a while."""
    unplaced: str = ""
    """kube-scheduler's words on a pod of it that it finds no node for; empty where there is none."""
    unmade: str = ""
    """The API server's words where it refuses pods of it since its admission; empty where it does not."""
    run_by: str = ""
    """A controller outside Weir's reach that it says runs it, such as one of another cluster."""
    outcome: str = ""
    """``succeeded`` or ``failed`` once finished."""
    finished: datetime | None = None
    ending: Ending | None = None
    """Why it failed, or what came over a pod of it; None where all is well."""
    started: datetime | None = None
    members_up: int = 0
    members_wanted: int = 0
    """Members that still have work to do: all of them, less what a Job with completions is past."""
    spare: int = 0
    """Those of them that need not be there, because an autoscaler of its own makes them when it likes."""
    undue: int = 0
    """Those of them that cannot be there yet, because what they start after is not that far."""
    lost: int = 0
    """Those of them whose pods have failed and that nobody makes anew."""
    staged: bool = False
    """Some of its members start after others of it."""
    admitted_gpus: int | None = None
    """Milli-GPU a member that its admission let in."""
    placement: Mapping[str, int] = field(default_factory=dict)
    up: Mapping[str, int] = field(default_factory=dict)
    """Those of ``placement`` whose pods are ready."""
    gone_by: datetime | None = None
    """When the grace of the last pod that holds resources ends; None while one of them is not going."""
    pods_left: int = 0
    parts: tuple[tuple[str, str], ...] = ()
    """(name, uid) of the objects that acts are carried out on, where it is not one object itself."""
    unfinished: bool = False
    """Some of them were let go and others not yet."""
    said: tuple[str, ...] = ("", "", "", "")
    """The status as it stands on the object: the values of ``labels.STATUS``."""

    @property
    def key(self) -> str:
        """The engine's name of it."""
        return key_of(self.kind, self.namespace, self.name)

    @property
    def stops_after_s(self) -> int | None:
        """Seconds of a run after which Weir itself has to end it, as nobody else does: its kind does not know
        of the limit, or somebody raised the one that it was admitted with."""
        admitted, now = self.admitted_limit_s if self.marked else None, self.run_time_limit_s
        raised = admitted is not None and (now is None or now > admitted)
        limits = (self.own_limit_s, admitted if raised else None)
        return min((limit for limit in limits if limit is not None), default=None)

    @property
    def is_up(self) -> bool:
        """All members that have work left, and may have begun it, run."""
        expected = self.members_wanted - self.undue
        return 0 < expected <= self.members_up + self.spare

    @property
    def is_short(self) -> bool:
        """Fewer than its least members run, leaving out those that may not have begun."""
        return self._is_below_least(self.members_up)

    @property
    def lacks_pods(self) -> bool:
        """Fewer pods than its least members are there at all, likewise."""
        return self._is_below_least(self.pods_left)

    def _is_below_least(self, members: int) -> bool:
        least = min(self.min_members, self.members_wanted)
        return members + self.spare + self.undue < least

    @property
    def is_moving(self) -> bool:
        """It is to start again where a place of its size is kept for it."""
        members = sum(self.moves_to.placement.values()) if self.moves_to else 0
        return self.min_members <= members <= self.max_members

    @property
    def stopped_by_hand(self) -> bool:
        """Suspended by somebody else than Weir, which clears its mark when it suspends."""
        return self.suspended and self.marked

    @property
    def is_held(self) -> bool:
        return self.hold or self.stopped_by_hand

    @property
    def swollen(self) -> bool:
        """Somebody had its pods ask for more GPUs than they were admitted with."""
        admitted = self.admitted_gpus if self.marked else None
        return admitted is not None and self.gpus > admitted

    @property
    def overgrown(self) -> bool:
        """Somebody raised its size past what it was admitted with."""
        return self.marked and self.sized is not None and self.members > self.sized


@dataclass(frozen=True, slots=True)
class Admission:
    """A place for a gang: ``nodes`` maps host names to members, ``placement`` node names.

    ``domain`` are the labels of the topology domain that all its nodes share, where it has to stay in
    one, ``liked_domain`` where it only prefers to; ``resource_names`` are those of every GPU class, so that
    one can take another's place.
    """

    gpu_class: ClassSpec
    members: int
    nodes: Mapping[str, int]
    placement: Mapping[str, int]
    at: datetime
    by_size: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """Where its members are counted in parts: of each size in milli-GPU, members by host."""
    domain: Mapping[str, str] = field(default_factory=dict)
    liked_domain: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of the nodes of ``placement``, by name."""
    runtimes: Runtimes = field(default_factory=dict)
    resource_names: tuple[str, ...] = ()
    claims: Claims = field(default_factory=dict)
    """Claim templates of its namespace."""
    group_uid: str = ""
    """Identity of a group of plain pods, which its pods keep."""
    is_loose: bool = False
    """Its hosts are preferred, not required: kube-scheduler found planned ones unfit before."""


class Adapter(Protocol):
    """One kind of object. Patches are merge patches without ``metadata.resourceVersion``."""

    kind: str
    api_version: str
    is_mirrored_whole: bool
    """``trim`` leaves all that a client may write, so that an object can be put back."""
    pod_label: str
    """By which its controller names it on its pods; empty where kubectl finds them by their owner."""
    makes_queued: bool
    """It makes objects which could be queued themselves; the others make pods."""
    policy: PolicyKind
    """How admission policies read it; of a group of pods, each of them."""

    @property
    def resource(self) -> str:
        """What the mirror calls the objects that acts are carried out on."""
        ...

    @property
    def list_path(self) -> str: ...

    def path(self, namespace: str, name: str) -> str: ...

    def trim(self, obj: Json) -> Json:
        """``obj`` without what nobody here reads; may reuse its parts."""
        ...

    def owner_name(self, pod: Json) -> str | None:
        """The object of this kind that ``pod`` belongs to, where its owner reference does not say."""
        ...

    def filled(self, obj: Json, defaults: Defaults) -> Json:
        """``obj`` as its pods are made: what they state neither request nor limit for has the ``defaults`` of
        the namespace. A copy, where there are any."""
        ...

    def demand_of(
        self,
        obj: Json,
        classes: Sequence[ClassSpec],
        claims: Claims = MappingProxyType({}),
        runtimes: Runtimes = NO_RUNTIMES,
    ) -> Demand | None:
        """What ``obj`` asks for by its own words; None where its pods alone say that.

        Raises ValueError when its demand cannot be understood.
        """
        ...

    def observe(
        self,
        obj: Json,
        pods: Sequence[Json],
        classes: Sequence[ClassSpec],
        claims: Claims = MappingProxyType({}),
        runtimes: Runtimes = NO_RUNTIMES,
        parts: Sequence[Json] = (),
        demand: Demand | None = None,
    ) -> Sighting:
        """``obj`` and its pods; ``claims`` are the claim templates of its namespace, ``runtimes`` the
        cluster's runtime classes, ``parts`` the objects that it made, ``asked`` what it asks for where that
        is known already.

        Raises ValueError when its demand cannot be understood.
        """
        ...

    def is_suspended(self, obj: Json) -> bool: ...

    def is_over(self, obj: Json) -> bool:
        """It has ended, or is about to be gone."""
        ...

    def unsettled(self, obj: Json) -> int:
        """Pods of a suspended one that may still come or be there, although none is seen."""
        ...

    def queued(self, manifest: Json) -> Json:
        """``manifest`` as it is to be created: waiting."""
        ...

    def admission(self, obj: Json, admission: Admission) -> Json: ...

    def suspension(self, obj: Json, evicted_by: int | None) -> Json: ...

    def restoration(self, obj: Json, resource_names: Sequence[str], claims: Claims) -> Json:
        """A suspended one again as the person wrote it; those names are of every GPU class's resource."""
        ...

    def resize(self, obj: Json, admission: Admission) -> Json:
        """Another number of members for one that is admitted; empty when it has it already. One that cannot
        be made so small is suspended."""
        ...
