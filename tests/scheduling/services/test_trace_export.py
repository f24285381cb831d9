"""The ledger's finished work in a trace file that replays read."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from scheduling.models import Queue, State
from scheduling.simulation.traces import read_trace
from tests.factories import NOW, make_cluster, make_workload

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue():
    return Queue.objects.create(cluster=make_cluster(), name="vision")


def ended(queue, **fields):
    """An hour on two members of half a GPU each, a quarter of it lost."""
    values = {
        "state": State.FINISHED,
        "gpus": 500,
        "min_members": 2,
        "first_started_at": NOW - timedelta(hours=2),
        "finished_at": NOW - timedelta(hours=1),
        "used_gpu_s": 3600.0,
        "lost_gpu_s": 900.0,
    }
    return make_workload(queue, **(values | fields))


def test_export_is_the_useful_run_time_and_replay_reads_it(queue, tmp_path: Path, capsys) -> None:
    ended(queue, run_time_limit_s=7200)
    make_workload(queue)
    file = tmp_path / "all.ledger.csv"

    call_command("export-trace", queue.cluster.name, str(file))

    assert "1 workload of" in capsys.readouterr().out
    trace = read_trace(file)
    assert (trace.gpus.tolist(), trace.duration_s.tolist()) == ([1], [2700])
    assert (trace.queues, trace.users) == ((queue.name,), ("m.okafor",))
    assert trace.asked_s is not None
    assert trace.asked_s.tolist() == [7200]


def test_export_takes_what_was_submitted_in_the_window(queue, tmp_path: Path) -> None:
    ended(queue, submitted_at=NOW - timedelta(days=9))
    ended(queue)
    file = tmp_path / "late.ledger.csv"

    since = (NOW - timedelta(days=1)).isoformat()
    call_command("export-trace", queue.cluster.name, str(file), "--from", since)

    assert len(read_trace(file)) == 1


@pytest.mark.parametrize(
    ("cluster", "name", "said"),
    [("nowhere", "a.ledger.csv", "no cluster 'nowhere'"), ("", "a.csv", "ends in .ledger.csv")],
)
def test_export_to_nowhere_is_refused(queue, tmp_path: Path, cluster, name, said) -> None:
    with pytest.raises(CommandError, match=said):
        call_command("export-trace", cluster or queue.cluster.name, str(tmp_path / name))


def test_export_overwrites_nothing(queue, tmp_path: Path) -> None:
    file = tmp_path / "there.ledger.csv"
    file.write_text("mine")

    with pytest.raises(CommandError, match="there already"):
        call_command("export-trace", queue.cluster.name, str(file))

    assert file.read_text() == "mine"
