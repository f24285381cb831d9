"""A week of the example organisation from an empty ledger on: how predictions get better as they learn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from statistics import median
from zoneinfo import ZoneInfo

from scheduling.engine import model as m
from scheduling.models import Cluster, ClusterMode, ForecastOutcome
from scheduling.services.queues import rows as policy
from scheduling.services.starts.accuracy import score
from workshop.demo import seed
from workshop.demo.past import live
from workshop.demo.past.lessons import JudgedRun, PastLessons
from workshop.demo.past.live import DEMAND, Say
from workshop.demo.setting import CALM, CLUSTER
from workshop.scenario import generate
from workshop.simulator.simulator import simulate

BEGIN = datetime(2026, 11, 8, 23, tzinfo=UTC)
"""A Monday, midnight in the zone of the organisation."""


@dataclass(frozen=True, slots=True)
class Day:
    """Runs that ended on it, and starts that were told on it. Errors of runs are powers of two, of starts
    percent of the wait; None where there is nothing to say."""

    day: str
    runs: int
    held_pct: float | None
    error: float | None
    naive_error: float | None
    starts: int
    before_p90_pct: float | None
    in_band_pct: float | None
    start_error_pct: float | None
    naive_start_error_pct: float | None


def lived(days: int, say: Say) -> list[Day]:
    """So many days of it; needs a database of its own, which it fills with the organisation."""
    cluster = Cluster.objects.create(
        name=CLUSTER, mode=ClusterMode.ENFORCE, display_time_zone="Europe/Berlin", **CALM
    )
    seed.seed_cluster(cluster, since=BEGIN - timedelta(days=60))
    until = BEGIN + timedelta(days=days)
    past = PastLessons(cluster, BEGIN)
    template = snapshot(cluster)
    organisation = live.demand_of(cluster, template, **DEMAND)
    demand = live.sensible(cluster, generate(organisation, BEGIN, days, live.SEED))
    say(f"Living {days} days, told and judged as they go")
    lived = replace(template, queues=tuple(map(live.unplayed, template.queues)))
    simulate(lived, demand, options=live.options(until), observer=past)
    return list(by_day(past.judged, past.starts(), days, ZoneInfo(cluster.display_time_zone)))


def snapshot(cluster: Cluster) -> m.Snapshot:
    """The organisation with its nodes and without work; no API server is needed for it."""
    rows = policy.load(cluster, at=cluster.now())
    return m.Snapshot(
        now=BEGIN,
        gpu_classes=tuple(m.GpuClass(c.name, float(c.exchange_rate)) for c in rows.gpu_classes),
        nodes=tuple(
            m.Node(
                name,
                pool.gpu_class,
                pool.gpus * m.MILLI,
                cpus=pool.cpus * m.MILLI,
                memory_mib=pool.memory_gib * 1024,
                topology=topology,
                ready=ready,
            )
            for pool, name, topology, ready in seed.node_rows()
        ),
        queues=policy.engine_queues(rows),
        priority_classes=policy.engine_priority_classes(rows),
        policy=policy.engine_policy(rows),
    )


def by_day(
    judged: Sequence[JudgedRun], starts: Sequence[ForecastOutcome], days: int, zone: ZoneInfo
) -> Iterator[Day]:
    for number in range(days):
        begin = BEGIN + timedelta(days=number)
        end = begin + timedelta(days=1)
        runs = [one for one in judged if begin <= one.ended < end]
        scores = score("", [one for one in starts if begin <= one.told_at < end])
        yield Day(
            day=f"{begin.astimezone(zone):%a %d %b}",
            runs=len(runs),
            held_pct=100 * sum(one.hit for one in runs) / len(runs) if runs else None,
            error=median(one.error for one in runs) if runs else None,
            naive_error=median(one.naive_error for one in runs) if runs else None,
            starts=scores.starts,
            before_p90_pct=scores.before_p90.pct if scores.starts else None,
            in_band_pct=scores.in_band.pct if scores.starts else None,
            start_error_pct=scores.error_pct,
            naive_start_error_pct=scores.naive_pct,
        )
