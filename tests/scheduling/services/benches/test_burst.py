"""A burst of Jobs at a slow API server, from end to end."""

from __future__ import annotations

from workshop.benches.worker.burst import measured


def test_all_of_a_burst_and_its_probes_are_started() -> None:
    found = measured(jobs=4, latency_s=0.01, hangs_s=0.1)
    assert found["makespan_s"] > 0
    assert found["plans"] >= 1
    assert 0 < found["probe_p50_ms"] <= found["probe_max_ms"]
