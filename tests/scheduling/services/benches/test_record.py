"""The figures of a recorded run."""

from __future__ import annotations

import pytest

from workshop.benches.worker.record import Cost, Record, latency, throughput
from workshop.benches.worker.runner import Course
from workshop.benches.worker.stage import writes_in
from workshop.benches.worker.work import JobClass, Load

COST = Cost(
    worker_cpu_s=2.5, worker_peak_mib=300.0, server_cpu_s=7.0, writes={"jobs": 6, "events": 2}
)
TWO = Load(
    cohorts=1,
    queues=1,
    classes=(
        JobClass("small", units=1, runtime_s=1, priority=1, every_s=1, count=2),
        JobClass("large", units=4, runtime_s=2, priority=2, every_s=1, count=1),
    ),
    nominal=4,
)
METRICS = """
# HELP apiserver_request_total Counter of apiserver requests
apiserver_request_total{code="201",component="apiserver",resource="jobs",subresource="",verb="POST"} 5
apiserver_request_total{code="200",component="apiserver",resource="jobs",subresource="status",verb="PATCH"} 3
apiserver_request_total{code="200",component="apiserver",resource="jobs",subresource="",verb="LIST"} 9
apiserver_request_total{code="201",component="apiserver",resource="events",subresource="",verb="POST"} 1e+03
"""


def course(kind: str, units: int, runtime_s: float, created: float, admitted: float, end: float):
    return Course(
        f"{kind}-{created:g}", kind, units, runtime_s, created_s=created, admitted_s=admitted,
        held_s=end - admitted, finished_s=end,
    )  # fmt: skip


def record(*courses: Course) -> Record:
    return Record(courses, runner_cpu_s=1.0, cost=COST)


def test_makespan_use_and_waits_are_those_of_the_run() -> None:
    ran = record(
        course("small", 1, 1, created=1, admitted=2, end=3.5),
        course("small", 1, 1, created=2, admitted=7, end=8.5),
        course("large", 4, 2, created=1, admitted=3.5, end=6),
    )
    found = throughput(ran, TWO)

    assert found["makespan_s"] == 7.5
    assert found["bound_s"] == (2 * 1 + 4 * 2) / 4
    assert found["use_pct"] == pytest.approx(100 * (1.5 + 1.5 + 4 * 2.5) / (4 * 7.5), abs=0.01)
    assert found["work_pct"] == pytest.approx(100 * 2.5 / 7.5, abs=0.01)
    assert (found["small_s"], found["large_s"]) == ((1 + 5) / 2, 2.5)
    assert (found["worker_cpu_s"], found["api_writes"], found["api_writes_events"]) == (2.5, 8, 2)


def test_latency_is_of_the_awaited_class_beside_those_that_wait() -> None:
    load = Load(cohorts=1, queues=1, classes=TWO.classes, awaited="small")
    found = latency(
        record(
            course("small", 1, 1, created=10, admitted=10.1, end=12),
            course("small", 1, 1, created=11, admitted=11.3, end=12),
            course("large", 4, 2, created=1, admitted=1.5, end=6),
            course("large", 4, 2, created=2, admitted=10.5, end=12),
            course("large", 4, 2, created=3, admitted=0, end=0),
        ),
        load,
    )

    assert found["p50_ms"] == pytest.approx(200)
    assert found["max_ms"] == pytest.approx(300)
    assert (found["probes"], found["least_pending"]) == (2, 1)


def test_writes_are_read_from_the_servers_metrics() -> None:
    assert writes_in(METRICS) == {"jobs": 8, "events": 1000}
