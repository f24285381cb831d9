"""Thousands of waiting Jobs cost nothing but their memory."""

from __future__ import annotations

import time

from workshop.testbed.server import EmbeddedServer, ManualClock
from workshop.testbed.server.kinds.resources import JOBS
from workshop.testbed.server.store.context import Caller
from workshop.testbed.server.verbs.create import create

from ..contract.api import job
from .conftest import Cluster

WAITING = 4_000


def test_many_suspended_jobs_slow_nothing_down() -> None:
    clock = ManualClock()
    with EmbeddedServer(clock=clock, seed=1) as server:
        caller = Caller("test")
        for number in range(WAITING):
            with server.store.lock:
                body = job(f"wait-{number}", suspend=True)
                create(server.world, caller, JOBS, "default", body)
        server.settle()
        cluster = Cluster(server, clock)
        cluster.node("n1")
        begun = time.process_time()
        for number in range(20):
            cluster.api.patch("jobs", f"wait-{number}", {"spec": {"suspend": False}})
            cluster.step(2)
        spent = time.process_time() - begun
        assert len(cluster.pods("Running")) == 20
        # Looking at every Job once for each of 20 admissions would take far longer.
        assert spent < 5
        assert len(cluster.api.get("jobs")["items"]) == WAITING


def test_many_equal_pods_that_fit_nowhere_cost_one_look() -> None:
    clock = ManualClock()
    with EmbeddedServer(clock=clock, seed=1) as server:
        cluster = Cluster(server, clock)
        cluster.job("wide", gpus=1, parallelism=1000, completions=1000)
        cluster.step()
        begun = time.process_time()
        for number in range(10):
            cluster.node(f"n{number}", gpus=1)
            cluster.step()
        assert time.process_time() - begun < 10
        bound = [pod for pod in cluster.pods() if pod["spec"].get("nodeName")]
        assert len(bound) == 10
