from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from scheduling.simulation.traces import TraceError
from workshop.simulator.recordings import read_recorded
from workshop.simulator.ties import Ties, sort_order

HEADER = "timestamp,duration,num_gpus,gpu_time,cluster\n"
ROWS = (
    "2017-10-02 00:00:10,2.5,1,2.5,a\n"
    "2017-10-02 00:00:00,3.5,8,28,b\n"
    "2017-10-02 00:00:10,0.2,4,0.8,a\n"
    "2017-10-03 00:00:00,60,2,120,other\n"
)


@pytest.fixture
def philly(tmp_path: Path) -> Path:
    (tmp_path / "philly.csv").write_text(HEADER + ROWS + "\n")
    (tmp_path / "philly_vc.csv").write_text("vc,node num\na,2\nb,1\n")
    return tmp_path


def broken(path: Path, text: str) -> list[str]:
    path.write_text(text)
    with pytest.raises(TraceError) as caught:
        read_recorded(path)
    return str(caught.value).splitlines()


def test_philly_rows_are_sorted_by_time_and_equal_times_keep_file_order(philly: Path) -> None:
    trace = read_recorded(philly)

    assert trace.submit_s.tolist() == [0, 10, 10]
    assert trace.index.tolist() == [1, 0, 2]
    assert trace.origin == datetime(2017, 10, 2, tzinfo=UTC)


def test_philly_durations_are_rounded_half_to_even_and_are_at_least_one(philly: Path) -> None:
    assert read_recorded(philly).duration_s.tolist() == [4, 2, 1]


def test_philly_jobs_of_unlisted_clusters_are_left_out_and_counted(philly: Path) -> None:
    trace = read_recorded(philly)

    assert trace.queues == ("a", "b")
    assert trace.queue_nodes == {"a": 2, "b": 1}
    assert trace.left_out == 1


def test_philly_window_includes_both_ends(philly: Path) -> None:
    begin = datetime(2017, 10, 2, 0, 0, 10, tzinfo=UTC)

    trace = read_recorded(philly, begin=begin, end=begin)

    assert trace.index.tolist() == [0, 2]
    assert trace.submit_s.tolist() == [0, 0]


def test_packed_file_reads_like_a_plain_one(tmp_path: Path) -> None:
    file = tmp_path / "some.csv.gz"
    file.write_bytes(gzip.compress((HEADER + ROWS).encode()))

    trace = read_recorded(file)

    assert len(trace) == 4
    assert trace[0].queue == "b"
    assert trace.left_out == 0


def test_broken_lines_name_file_line_and_expectation(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"

    lines = broken(
        file, HEADER + ROWS + "2017-13-01,5,1,5,a\n2017-10-01 00:00:00,x,0,5,\n2017-10-01,5\n"
    )

    assert lines == [
        f"{file}:6: expected a time such as 2017-10-09 07:01:55, found timestamp '2017-13-01'",
        f"{file}:7: expected seconds, zero or more, found duration 'x'",
        f"{file}:7: expected a whole number of GPUs, 1 or more, found num_gpus '0'",
        f"{file}:7: expected the name of a virtual cluster, found an empty cluster",
        f"{file}:8: expected 5 comma-separated fields, found 2 in '2017-10-01,5'",
    ]


def test_many_broken_lines_are_listed_up_to_twenty(tmp_path: Path) -> None:
    assert len(broken(tmp_path / "t.csv", HEADER + "nonsense\n" * 50)) == 20


def test_missing_columns_are_named_at_the_first_line(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"

    assert broken(file, "a,b\n1,2\n") == [
        f"{file}:1: expected a header with timestamp, duration, num_gpus, cluster, found 'a,b'"
    ]


def test_damaged_gzip_is_reported_where_it_breaks(tmp_path: Path) -> None:
    file = tmp_path / "t.csv.gz"
    file.write_bytes(gzip.compress((HEADER + ROWS * 500).encode())[:-40])

    with pytest.raises(TraceError, match="expected a whole gzip file"):
        read_recorded(file)


def test_folder_without_a_trace_says_what_it_looked_for(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="exactly one trace file"):
        read_recorded(tmp_path)


SWF = """; Version: 2.2
; UnixStartTime: 1000
; MaxProcs: 20
1 5 -1 30 4 -1 -1 8 -1 -1 1 7 1 -1 2 -1 -1 -1
2 5 -1 -1 4 -1 -1 8 -1 -1 1 7 1 -1 2 -1 -1 -1
3 1 -1 10 4 -1 -1 -1 -1 -1 1 9 1 -1 2 -1 -1 -1
"""


def test_swf_jobs_that_never_ran_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "t.swf").write_text(SWF)

    trace = read_recorded(tmp_path / "t.swf")

    assert trace.index.tolist() == [2, 0]
    assert trace.submit_s.tolist() == [0, 4]
    assert trace.gpus.tolist() == [4, 8]
    assert (trace[1].user, trace[1].queue) == ("user-7", "queue-2")
    assert (trace.nodes, trace.left_out) == (3, 1)
    assert trace.origin == datetime.fromtimestamp(1001, UTC)


def test_swf_queue_name_after_the_node_list_is_used(tmp_path: Path) -> None:
    (tmp_path / "t.swf").write_text(
        SWF.replace("2 -1 -1 -1\n", "2 -1 -1 -1 {1,1} q_1d 1:ppn=8\n", 1)
    )

    assert read_recorded(tmp_path / "t.swf").queues == ("q_1d", "queue-2")


def test_swf_broken_line_names_its_column(tmp_path: Path) -> None:
    file = tmp_path / "t.swf"

    assert broken(file, SWF + "4 x -1 10 4 -1 -1 8 -1 -1 1 7 1 -1 2 -1 -1 -1\n4 5\n") == [
        f"{file}:7: expected a number in column 2, found submit time 'x'",
        f"{file}:8: expected 18 fields between spaces, found 2 in '4 5'",
    ]


@pytest.mark.parametrize("jobs", [0, 1, 16, 17, 18, 1000, 20_000])
def test_published_order_sorts_and_loses_nothing(jobs: int) -> None:
    values = np.random.default_rng(jobs).integers(0, jobs // 3 + 1, jobs)

    order = sort_order(values, Ties.PUBLISHED)

    assert (np.diff(values[order]) >= 0).all()
    assert sorted(order.tolist()) == list(range(jobs))


def test_published_order_of_few_rows_is_the_file_order() -> None:
    assert sort_order(np.array([3, 1, 3, 1]), Ties.PUBLISHED).tolist() == [1, 3, 0, 2]


def test_busy_months_are_the_published_ones(busy_months) -> None:
    assert len(busy_months) == 68_503
    assert round(busy_months.gpu_seconds / 3600) == 690_860
    assert round(float(busy_months.duration_s.mean()), 1) == 11_480.7
