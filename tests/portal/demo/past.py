"""A few hours of the example organisation, lived in memory from an empty ledger on."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from scheduling.models import Cluster
from tests.factories import make_cluster
from workshop.demo import seed
from workshop.demo.past import live
from workshop.demo.past.forecasts import ForecastMoments
from workshop.demo.setting import CALM, CLUSTER
from workshop.demo.week import BEGIN, snapshot
from workshop.scenario import generate
from workshop.simulator.simulator import simulate


def organisation() -> Cluster:
    cluster = make_cluster(CLUSTER, **CALM)
    seed.seed_cluster(cluster, since=BEGIN - timedelta(days=60))
    return cluster


def lived(cluster: Cluster, hours: float) -> ForecastMoments:
    template, until = snapshot(cluster), BEGIN + timedelta(hours=hours)
    asked = live.demand_of(cluster, template, **live.DEMAND)
    demand = live.sensible(cluster, generate(asked, BEGIN, hours / 24, live.SEED))
    past = ForecastMoments(cluster, BEGIN)
    begun = replace(template, queues=tuple(map(live.unplayed, template.queues)))
    simulate(begun, demand, options=live.options(until), observer=past)
    past.close(until)
    return past
