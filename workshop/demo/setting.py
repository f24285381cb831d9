"""What a demo plays after two weeks of it: the example organisation, or a recorded trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Protocol

from scheduling.models import Cluster, ClusterMode, Sharing
from scheduling.services.studies.adapting import trials
from workshop.demo import alert_rules, lending, seed, seed_trace, spending, studies
from workshop.demo.cluster.furnish import SimulatedCluster, furnish
from workshop.demo.cluster.paths import DemoFolder
from workshop.demo.cluster.venue import Venue
from workshop.demo.later import put_off
from workshop.demo.past import live as past
from workshop.demo.past.live import DEMAND, Say
from workshop.demo.work.arrivals import Arrival, TraceStream, open_trace
from workshop.demo.work.feed import next_position

CLUSTER = "fra1"
PAST_DAYS = 14
CYCLE_INTERVAL_S = 2.0


AS_LIVED: Mapping[str, str] = {"sharing": Sharing.FAIR_SHARE.value}
"""The simulator that lives the past plays nobody's own quota along, as the promise asks for."""
CALM: Mapping[str, str | float] = {
    **AS_LIVED,
    "preemption_delay_s": 1200,
    "eviction_cap": 2.0,
    "class_order": "waits",
    "stale_gang_grace_s": 1200,
}
"""The organisation would rather wait twenty minutes than lose somebody's work, and wait for the class where
work ends first. Its pods have as long to come up: a minute of a clock that runs sixty times as fast is one
second of a machine that may be busy."""


class Setting(Protocol):
    def open(self, folder: DemoFolder, speed: float, say: Say) -> SimulatedCluster:
        """The running cluster; the caller stops it."""
        ...

    def fill(
        self, played: SimulatedCluster, folder: DemoFolder, password: str, say: Say
    ) -> Iterator[Arrival]:
        """What arrives next; seeds on the first start only."""
        ...


@dataclass(frozen=True, slots=True)
class OrganisationSetting:
    venue: Venue

    def open(self, folder: DemoFolder, speed: float, say: Say) -> SimulatedCluster:
        now = datetime.now(UTC).replace(microsecond=0)
        cluster = _cluster(CLUSTER, display_time_zone="Europe/Berlin", **CALM)
        return self.venue.open(cluster, folder, speed=speed, start=now, say=say)

    def fill(
        self, played: SimulatedCluster, folder: DemoFolder, password: str, say: Say
    ) -> Iterator[Arrival]:
        cluster = played.cluster
        if not folder.is_seeded:
            say("First start: seeding the example organisation")
            now = cluster.now().replace(microsecond=0)
            since = now - timedelta(days=PAST_DAYS)
            seed.seed_cluster(cluster, since=since - timedelta(days=30))
            seed.seed_people(cluster, password=password)
            furnish(cluster, machines=seed.machines())
            say(f"Living {PAST_DAYS} days of it in the simulator")
            lived = past.live(played, since=since, until=now, say=say, **DEMAND)
            say(f"{lived.workloads:,} workloads lived through; those that had not ended go on")
            put_off(cluster, folder.path, lived.moments, before=since)
            lending.lend(cluster)
            spending.budget(cluster)
            spending.tell_of_idle(cluster)
            alert_rules.watch(cluster)
            studies.promise(cluster)
            trials.switch(cluster=cluster, is_on=True, author=None)
            folder.mark_seeded()
        return past.arrivals(cluster, since=cluster.now(), **DEMAND)


@dataclass(frozen=True, slots=True)
class TraceSetting:
    venue: Venue
    stream: TraceStream

    def open(self, folder: DemoFolder, speed: float, say: Say) -> SimulatedCluster:
        start = self.stream.time_of(self._next(folder))
        cluster = _cluster(self.stream.name)
        return self.venue.open(cluster, folder, speed=speed, start=start, say=say)

    def fill(
        self, played: SimulatedCluster, folder: DemoFolder, password: str, say: Say
    ) -> Iterator[Arrival]:
        stream, cluster = self.stream, played.cluster
        if not folder.is_seeded:
            say(
                f"First start: {len(stream):,} jobs over {stream.nodes} nodes, from {stream.start.date()} on"
            )
            seed_trace.seed_trace(cluster, stream)
            seed_trace.seed_trace_people(cluster, stream, password=password)
            furnish(cluster, machines=seed_trace.trace_machines(stream))
            self._live(played, folder, say)
            folder.mark_seeded()
        return stream.arrivals(cluster, self._next(folder))

    def _live(self, played: SimulatedCluster, folder: DemoFolder, say: Say) -> None:
        stream = self.stream
        days = (stream.start - stream.origin).total_seconds() / 86400
        if not stream.first:
            return
        say(f"Living the {days:.0f} days before it in the simulator")
        recorded = stream.past(seed_trace.GPU_CLASS, seed_trace.PRIORITY_CLASS)
        lived = past.relive(played, recorded, since=stream.origin, until=stream.start, say=say)
        say(f"{lived.workloads:,} workloads lived through; those that had not ended go on")
        put_off(played.cluster, folder.path, lived.moments, before=None)

    def _next(self, folder: DemoFolder) -> int:
        """The job that comes next: at first the first that is played."""
        return max(next_position(folder.position), self.stream.first)


def organisation(venue: Venue) -> OrganisationSetting:
    return OrganisationSetting(venue)


def trace(venue: Venue, path: Path, nodes: int | None, day: date | None) -> TraceSetting:
    """Raises ValueError with a line per fault when the trace cannot be read, or has nothing on ``day``."""
    return TraceSetting(venue, open_trace(path, nodes=nodes, day=day))


def _cluster(name: str, **fields: str | float) -> Cluster:
    defaults = {
        "mode": ClusterMode.ENFORCE,
        "cycle_interval_s": CYCLE_INTERVAL_S,
        **AS_LIVED,
        **fields,
    }
    return Cluster.objects.get_or_create(name=name, defaults=defaults)[0]
