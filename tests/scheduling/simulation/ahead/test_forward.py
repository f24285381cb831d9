"""A life goes on from a moment as the engine would have it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from scheduling.engine.model import (
    MILLI,
    GpuClass,
    Members,
    Node,
    Phase,
    PriorityClass,
    Queue,
    Quota,
    Snapshot,
    Workload,
)
from scheduling.simulation.ahead.forward import live_on
from scheduling.simulation.ahead.opening import open_snapshot

NOW = datetime(2026, 11, 19, 9, 42, tzinfo=UTC)
H100 = "h100-80gb"


def workload(name, gpus=8, *, runs_for_s=None, **more):
    held = {}
    if runs_for_s is not None:
        held = {
            "phase": Phase.RUNNING,
            "started": NOW - timedelta(seconds=runs_for_s),
            "gpu_class": H100,
            "placement": {"node-1": 1},
        }
    plain = Workload(
        name=name,
        queue="speech",
        priority_class="training",
        submitted=NOW - timedelta(hours=2),
        gpus=gpus * MILLI,
        members=Members(1, 1),
        gpu_classes=(H100,),
    )
    return replace(plain, **held, **more)


def world(*workloads, nodes=1):
    return Snapshot(
        now=NOW,
        gpu_classes=(GpuClass(H100),),
        nodes=tuple(Node(f"node-{i + 1}", H100, 8 * MILLI) for i in range(nodes)),
        queues=(Queue("speech", quotas={H100: Quota(8 * nodes * MILLI)}),),
        priority_classes=(PriorityClass("training"),),
        workloads=workloads,
    )


def starts(snapshot, **rest_s):
    opening = open_snapshot(snapshot)
    rest = np.array([rest_s[name.replace("-", "_")] for name in opening.names], np.int64)
    future = live_on(opening, rest)
    return dict(zip(opening.names, future.starts.tolist(), strict=True))


def test_who_waits_starts_when_who_runs_ends():
    snapshot = world(workload("runs", runs_for_s=600), workload("waits"))
    assert starts(snapshot, runs=3600, waits=60) == {"runs": 0, "waits": 3600}


def test_who_fits_starts_at_once():
    snapshot = world(workload("runs", runs_for_s=600), workload("waits"), nodes=2)
    assert starts(snapshot, runs=3600, waits=60)["waits"] == 0


def test_two_wait_one_after_the_other():
    first = workload("first")
    second = workload("second", submitted=NOW - timedelta(hours=1))
    snapshot = world(workload("runs", runs_for_s=600), first, second)
    assert starts(snapshot, runs=100, first=50, second=10) == {
        "runs": 0,
        "first": 100,
        "second": 150,
    }


def test_what_ended_already_counts_as_free():
    snapshot = world(workload("gone", runs_for_s=600, leaving=True), workload("waits"))
    assert starts(snapshot, waits=10) == {"waits": 0}


def test_one_future_leaves_the_opening_as_it_was():
    opening = open_snapshot(world(workload("runs", runs_for_s=600), workload("waits")))
    rest = np.array([3600, 60], np.int64)
    first = live_on(opening, rest).starts.tolist()
    assert live_on(opening, rest).starts.tolist() == first


def test_who_is_held_never_starts_by_the_stop():
    opening = open_snapshot(world(workload("waits", held=True)))
    future = live_on(opening, np.array([60], np.int64), stop_s=7200)
    assert future.starts.tolist() == [-1]
