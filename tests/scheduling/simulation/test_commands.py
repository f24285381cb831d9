from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import call_command

ROWS = (
    "timestamp,duration,num_gpus,cluster\n"
    "2017-10-02 00:00:00,100,8,a\n"
    "2017-10-02 00:00:10,100,8,a\n"
    "2017-10-02 00:00:20,50,4,b\n"
)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "small.csv"
    file.write_text(ROWS)
    return file


def replay(capsys: pytest.CaptureFixture[str], *args: object) -> dict:
    call_command("replay", *map(str, args), "--json")
    return json.loads(capsys.readouterr().out)


def test_replay_prints_figures_and_checksums_as_json(trace: Path, capsys) -> None:
    report = replay(capsys, trace, "--nodes", 1, "--policy", "fifo")

    assert (report["jobs"], report["evictions"], report["capacity_gpus"]) == (3, 0, 8)
    assert report["avg_wait_s"] == pytest.approx((0 + 90 + 180) / 3)
    assert list(report["inputs"]) == ["small.csv"]
    assert report["fairness"]["worst_queue"] == "b"


def test_replay_window_and_limit_narrow_the_trace(trace: Path, capsys) -> None:
    later = replay(capsys, trace, "--policy", "fifo", "--from", "2017-10-02T00:00:10")
    first = replay(capsys, trace, "--policy", "fifo", "--limit", 1)

    assert (later["jobs"], later["left_out"]) == (2, 1)
    assert first["jobs"] == 1


def test_replay_runs_the_shipped_engine_unless_told_otherwise(trace: Path, capsys) -> None:
    pooled = replay(capsys, trace, "--nodes", 2)
    static = replay(capsys, trace, "--nodes", "static", "--cycle-s", 60)

    assert (pooled["policy"], pooled["jobs"], pooled["static"]) == ("weir", 3, False)
    assert (static["policy"], static["static"], static["jobs"]) == ("weir", True, 3)
    assert pooled["capacity_gpus"] == 16


def test_replay_without_json_is_a_table_with_units(trace: Path, capsys) -> None:
    call_command("replay", str(trace), "--policy", "fifo", "--nodes", "static")

    shown = capsys.readouterr().out
    assert "small" not in shown.splitlines()[1]
    assert "average wait" in shown
    assert "GPU-hours" in shown


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (ROWS + "soon,5,1,a\n", "small.csv:5: expected a time such as"),
        (ROWS.splitlines(keepends=True)[0], "no job was replayed"),
    ],
)
def test_replay_of_bad_input_exits_with_two_and_says_why(
    trace: Path, capsys, rows: str, said: str
) -> None:
    trace.write_text(rows)

    with pytest.raises(SystemExit) as stopped:
        call_command("replay", str(trace), "--policy", "fifo", "--nodes", 1)

    assert stopped.value.code == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


def test_replay_on_too_few_nodes_exits_with_two_and_a_remedy(trace: Path, capsys) -> None:
    trace.write_text(ROWS + "2017-10-02 00:01:00,5,16,b\n")

    with pytest.raises(SystemExit) as stopped:
        call_command("replay", str(trace), "--policy", "fifo", "--nodes", 1)

    assert stopped.value.code == 2
    assert "replay it on more nodes" in capsys.readouterr().err


def test_bench_without_its_trace_exits_with_two(tmp_path: Path, capsys) -> None:
    with pytest.raises(SystemExit) as stopped:
        call_command("bench", "replay", "--traces", str(tmp_path))

    assert stopped.value.code == 2
    assert "philly" in capsys.readouterr().err


def test_replay_in_several_lives_gives_means_with_intervals(trace: Path, capsys) -> None:
    report = replay(capsys, trace, "--nodes", 1, "--policy", "fifo", "--lives", 6, "--seed", 3)

    assert (report["lives"], report["seed"]) == (6, 3)
    assert report["half"]["avg_wait_s"] >= 0
    again = replay(capsys, trace, "--nodes", 1, "--policy", "fifo", "--lives", 6, "--seed", 3)
    assert {**report, "cpu_s": 0} == {**again, "cpu_s": 0}


def test_replay_counts_nobody_of_the_warm_up(trace: Path, capsys) -> None:
    whole = replay(capsys, trace, "--policy", "fifo", "--nodes", 1)
    warm = replay(capsys, trace, "--policy", "fifo", "--nodes", 1, "--warm-up-s", 10)

    assert (whole["jobs"], warm["jobs"]) == (3, 2)


def test_replay_with_nodes_that_break_is_the_same_for_the_same_seed(trace: Path, capsys) -> None:
    often = ("--nodes", 2, "--mtbf-h", "0.02", "--repair-h", "0.005", "--seed", 4)

    once, twice = (replay(capsys, trace, *often) for _ in range(2))
    quiet = replay(capsys, trace, "--nodes", 2)

    assert {**once, "cpu_s": 0} == {**twice, "cpu_s": 0}
    assert once["makespan_s"] > quiet["makespan_s"]


def test_nodes_break_under_the_engine_alone(trace: Path, capsys) -> None:
    with pytest.raises(SystemExit) as stopped:
        call_command("replay", str(trace), "--policy", "fifo", "--nodes", "1", "--mtbf-h", "10")

    assert stopped.value.code == 2
    assert "nodes break under weir alone" in capsys.readouterr().err
