"""A workload as the snapshot states it: what it asks for, where it sits, what has become of it so far.

Frozen data like all of ``model``, which says the units and is where its names are read from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from statistics import NormalDist

from scheduling.engine.enums import Phase

MILLI = 1000
"""Milli-GPU in one GPU."""


def keeps_seats(leaves: bool, gpus: int, is_claimed: bool) -> bool:
    """Whether work that ``leaves`` for a claim that has lapsed has a claim to its own seats from then on: of
    whole GPUs, ``gpus`` milli-GPU a member, on nodes of which nobody else ``is_claimed`` seats. Kernels,
    simulated lives and the ledger ask it, each with what it knows.
    """
    return leaves and gpus >= MILLI and not is_claimed


@dataclass(frozen=True, slots=True)
class Members:
    """Size of a gang: ``min`` members or nothing, at most ``max``; equal numbers are rigid."""

    min: int = 1
    max: int = 1


@dataclass(frozen=True, slots=True)
class Role:
    """Members of a gang that are alike; ``gpus``, ``cpus``, ``memory_mib`` and ``beside`` are of one. Of an
    elastic gang one role has up to ``extra`` more than ``members``.
    """

    name: str
    members: int
    gpus: int
    cpus: int = 0
    memory_mib: int = 0
    beside: Mapping[str, int] = field(default_factory=dict)
    placement: Mapping[str, int] = field(default_factory=dict)
    """Its members by node, where the gang runs or has a claim."""
    extra: int = 0
    leaving: Mapping[str, int] = field(default_factory=dict)
    """Those by node that it gave up, or moved away from, whose pods still hold GPUs there."""


@dataclass(frozen=True, slots=True)
class Segment:
    """So many ``members`` at a time sit inside one domain of the level that is required, or preferred."""

    members: int
    required: str | None = None
    preferred: str | None = None


@dataclass(frozen=True, slots=True)
class Topology:
    """Levels of the snapshot, or ``node``, for all members; with both, the preferred one lies inside the
    required. A segment lies inside either.
    """

    required: str | None = None
    preferred: str | None = None
    segment: Segment | None = None


@dataclass(frozen=True, slots=True)
class PredictedRunTime:
    """Quantiles of the whole run time, in seconds from the start of the run."""

    p50: float
    p90: float

    def within(self, quantile: float) -> float:
        """Seconds within which so large a part of such runs is over; exactly ``p90`` at 0.9.

        Log-normal through both (Johnson, Kotz, Balakrishnan, Continuous Univariate Distributions 1, 1994,
        chapter 14): with z of the standard normal, ln t = ln p50 + z(quantile) / z(0.9) (ln p90 - ln p50),
        which is written here from ``p90`` on. A median of 0 says nothing of the shape: ``p90`` then.
        """
        if self.p50 <= 0:
            return self.p90
        return self.p90 * (self.p90 / self.p50) ** (_z(quantile) / _z(0.9) - 1)


@cache
def _z(quantile: float) -> float:
    return NormalDist().inv_cdf(quantile)


@dataclass(frozen=True, slots=True)
class Workload:
    """One unit of admission. ``gpus``, ``cpus`` (milli) and ``memory_mib`` are per member.

    ``gpu_class`` is the class it runs on (running only). ``members_running`` may be below
    ``members.min`` (a stale gang); ``stale_since`` says since when. ``misrouted`` names the queue label
    that matched no queue; ``held`` is the user's own hold.
    """

    name: str
    queue: str
    priority_class: str
    submitted: datetime
    gpus: int = MILLI
    cpus: int = 0
    memory_mib: int = 0
    beside: Mapping[str, int] = field(default_factory=dict)
    """What else a member takes of its node: amounts by the names that nodes state."""
    user: str = ""
    members: Members = Members()
    roles: tuple[Role, ...] = ()
    """Of a gang of unlike members. It is counted in parts: ``gpus`` is the most that divides those of each
    role, ``members`` is how many of them the gang has, ``placement`` is parts by node (``roles.of_parts``).
    """
    gpu_classes: tuple[str, ...] = ()
    topology: Topology = Topology()
    elastic: bool = False
    predicted: PredictedRunTime | None = None
    held: bool = False
    phase: Phase = Phase.PENDING
    started: datetime | None = None
    checkpointed: datetime | None = None
    restart_cost_s: int = 0
    stale_since: datetime | None = None
    leaving: bool = False
    """Evicted already: its pods still hold GPUs, which nobody else gets before they are gone."""
    gpu_class: str | None = None
    placement: Mapping[str, int] = field(default_factory=dict)
    devices: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    awaits_victims: bool = False
    """Pending: it has a claim to room that comes free, so it is seated before all else. Its ``gpu_class``,
    ``placement`` and ``devices`` are the seats that it claims. Leaving: whoever it left for does not claim
    them any more. It keeps its own, and starts on them once its pods are gone, unless somebody takes them who
    could take them from it if it ran.
    """
    victims: tuple[str, ...] = ()
    """Names of those who leave for its claim, of workloads of the snapshot; who is over is left out."""
    claimed_since: datetime | None = None
    """When its claim was made."""
    room_due: datetime | None = None
    """When the room of its claim was free, or should have been: the last of its victims was gone then, or the
    longest grace of their pods was over; None while nobody knows.
    """
    taken_gpus: int = 0
    """Milli-GPU that were evicted for it since it waits, its present claim and lapsed ones together."""
    evictions: int = 0
    """How often it was evicted in the 24 hours before ``now``."""
    last_evicted: datetime | None = None
    last_evicted_for: str | None = None
    """Name of the workload that the last eviction made room for."""
    leaving_members: Mapping[str, int] = field(default_factory=dict)
    """Members by node that it gave up, or moved away from, whose pods still hold GPUs there."""
    leaving_devices: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    node_set: str | None = None
    """Name of the nodes that it may use; without one, all of its classes that are not dedicated."""
    rank_s: float | None = None
    """Gittins index of its run time at the time it has had: least expected seconds to an end."""
    virtual_start: datetime | None = None
    """When it would have started on the nominal quota of its queue alone."""
    saved_s: float = 0.0
    """Seconds of work that checkpoints of earlier runs hold."""
