"""A bench from end to end: control plane, worker process and runner process."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import call_command

from workshop.benches.worker.record import throughput
from workshop.benches.worker.registry import SERVICE_BENCHES, run_load
from workshop.benches.worker.work import JobClass, Load

TINY = Load(
    cohorts=2,
    queues=2,
    classes=(
        JobClass("small", units=1, runtime_s=0.1, priority=50, every_s=0.05, count=10),
        JobClass("large", units=20, runtime_s=0.2, priority=200, every_s=0.2, count=2),
    ),
)


@pytest.mark.real
def test_every_job_is_admitted_and_ends(tmp_path: Path) -> None:
    found = run_load(TINY, throughput, tmp_path / "stage", lambda line: None).measured

    assert found["jobs"] == 48
    # Each is created, admitted and completed; more is said, but nothing is admitted twice.
    assert found["api_writes_jobs"] >= 3 * 48
    assert found["makespan_s"] > found["bound_s"]
    assert 0 < found["use_pct"] <= 100
    assert found["worker_cpu_s"] > 0
    assert not (tmp_path / "stage").exists()


@pytest.mark.parametrize(
    "name",
    sorted(
        SERVICE_BENCHES.keys()
        - {
            "first-run",
            "overview",
            "pages",
            "many-clusters",
            "eta",
            "what-if",
            "foreseen",
            "burst",
            "live-eta",
            "live-loop",
            "demo",
        }
    ),
)
def test_without_programs_the_command_says_what_to_do(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    with pytest.raises(SystemExit) as stopped:
        call_command("bench", name)

    assert stopped.value.code == 2
    assert "KUBEBUILDER_ASSETS" in capsys.readouterr().err
