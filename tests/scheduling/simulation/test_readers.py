"""Exports of Kubernetes objects and of the ledger as traces: what is read, and what is refused where."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scheduling.simulation.traces import TraceError
from scheduling.simulation.traces.ledger import COLUMNS, Spell, write_ledger
from workshop.simulator.recordings import read_recorded

HEADER = ",".join(COLUMNS) + "\n"


def job(name: str = "train", **changed: Any) -> dict[str, Any]:
    """Created at 10:00:00, started at 10:01, over at 10:11; two pods of four GPUs."""
    spec = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "4"}}}, {}]}
    return {
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "vision",
            "creationTimestamp": "2026-01-05T10:00:00Z",
            "labels": {"weir.dev/queue": "vision-train"},
            "annotations": {"weir.dev/user": "ana"},
        },
        "spec": {"parallelism": 2, "activeDeadlineSeconds": 3600, "template": {"spec": spec}},
        "status": {"startTime": "2026-01-05T10:01:00Z", "completionTime": "2026-01-05T10:11:00Z"},
    } | changed


def pod(name: str, start: str, end: str | None, owner: str | None = None) -> dict[str, Any]:
    state: dict[str, Any] = {"running": {}}
    if end:
        state = {"terminated": {"finishedAt": f"2026-01-05T{end}Z"}}
    meta: dict[str, Any] = {
        "name": name,
        "namespace": "vision",
        "creationTimestamp": "2026-01-05T10:00:30Z",
    }
    if owner:
        meta["ownerReferences"] = [{"kind": "Job", "name": owner}]
    return {
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpu": 1}}}]},
        "status": {"startTime": f"2026-01-05T{start}Z", "containerStatuses": [{"state": state}]},
    }


def written(folder: Path, *objects: Any) -> Path:
    file = folder / "export.json"
    file.write_text(json.dumps({"kind": "List", "items": list(objects)}))
    return file


def faults(file: Path) -> list[str]:
    with pytest.raises(TraceError) as caught:
        read_recorded(file)
    return str(caught.value).splitlines()


def test_job_is_read_with_its_gang_its_queue_its_user_and_its_limit(tmp_path: Path) -> None:
    trace = read_recorded(written(tmp_path, job()))

    assert trace.origin == datetime(2026, 1, 5, 10, tzinfo=UTC)
    assert trace.gpus.tolist() == [8]
    assert trace.duration_s.tolist() == [600]
    assert (trace.queues, trace.users) == (("vision-train",), ("ana",))
    assert trace.asked_s is not None
    assert trace.asked_s.tolist() == [3600]


def test_job_with_pods_runs_from_the_last_of_them(tmp_path: Path) -> None:
    pods = [pod("a", "10:05:00", None, "train"), pod("b", "10:06:00", None, "train")]

    trace = read_recorded(written(tmp_path, job(), *pods))

    assert trace.duration_s.tolist() == [300]
    assert trace.left_out == 0


def test_pod_of_no_job_is_work_and_its_namespace_its_queue(tmp_path: Path) -> None:
    trace = read_recorded(written(tmp_path, pod("alone", "10:02:00", "10:02:30")))

    assert (trace.gpus.tolist(), trace.duration_s.tolist()) == ([1], [30])
    assert trace.queues == ("vision",)


def test_failed_job_is_over_when_its_condition_says_so(tmp_path: Path) -> None:
    met = {"type": "Failed", "status": "True", "lastTransitionTime": "2026-01-05T10:01:40Z"}
    status = {"startTime": "2026-01-05T10:01:00Z", "conditions": [met]}

    assert read_recorded(written(tmp_path, job(status=status))).duration_s.tolist() == [40]


def test_what_is_not_over_or_has_no_gpu_is_left_out_and_counted(tmp_path: Path) -> None:
    running = job("running", status={"startTime": "2026-01-05T10:01:00Z"})
    plain = job("plain", spec={"template": {"spec": {"containers": [{}]}}})

    trace = read_recorded(written(tmp_path, running, plain, job(), {"kind": "Node"}))

    assert (len(trace), trace.left_out) == (1, 2)


def test_array_of_objects_is_read_as_a_list_is(tmp_path: Path) -> None:
    file = tmp_path / "array.json"
    file.write_text(json.dumps([job()]))

    assert len(read_recorded(file)) == 1


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (job(metadata={"name": "x"}), "items[0].metadata.creationTimestamp None"),
        (job(metadata={"creationTimestamp": "soon"}), "creationTimestamp 'soon'"),
        (job(spec={"parallelism": "two"}), "items[0].spec.parallelism 'two'"),
        (job(spec={"parallelism": True}), "items[0].spec.parallelism True"),
        (job(status=[1]), "items[0].status.startTime [1]"),
        (
            job(spec={"template": {"spec": {"containers": "c"}}}),
            "items[0].spec.template.spec.containers 'c'",
        ),
    ],
)
def test_broken_object_is_refused_with_file_and_path(tmp_path: Path, broken, said: str) -> None:
    (line,) = faults(written(tmp_path, broken))

    assert "export.json" in line
    assert said in line


def test_end_before_the_start_is_refused(tmp_path: Path) -> None:
    status = {"startTime": "2026-01-05T10:01:00Z", "completionTime": "2026-01-05T10:00:00Z"}

    (line,) = faults(written(tmp_path, job(status=status)))

    assert "an end that is not before the start" in line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "expected YAML or JSON"),
        ('{"kind": "Job"}', "a List of objects"),
        ("[1]", "expected an object"),
        ("7", "a List of objects"),
    ],
)
def test_file_that_is_no_list_of_objects_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "odd.json"
    file.write_text(text)

    (line,) = faults(file)

    assert said in line


def test_ledger_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "prod.ledger.csv"
    at = datetime(2026, 1, 5, 10, tzinfo=UTC)
    spells = [
        Spell(at.replace(minute=5), 60, 8, "b", 'o"neil, j'),
        Spell(at, 30, 1, "a", "ana", 600),
    ]
    with file.open("w", newline="") as to:
        assert write_ledger(spells, to) == 2

    trace = read_recorded(file)

    assert trace.submit_s.tolist() == [0, 300]
    assert trace.gpus.tolist() == [1, 8]
    assert trace.users[trace.user[1]] == 'o"neil, j'
    assert trace.asked_s is not None
    assert trace.asked_s.tolist() == [600, 0]


def test_same_spells_are_the_same_bytes() -> None:
    spells = [Spell(datetime(2026, 1, 5, tzinfo=UTC), 60, 8, "b", "u")] * 2
    once, twice = io.StringIO(), io.StringIO()

    write_ledger(spells, once)
    write_ledger(spells, twice)

    assert once.getvalue() == twice.getvalue()


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("soon,60,8,b,u,0", "submitted 'soon'"),
        ("2026-01-05T10:00:00,0,8,b,u,0", "run_s '0'"),
        ("2026-01-05T10:00:00,60,-1,b,u,0", "gpus '-1'"),
        ("2026-01-05T10:00:00,60,8,,u,0", "the name of a queue"),
        ("2026-01-05T10:00:00,60,8,b,u,x", "asked_s 'x'"),
        ("2026-01-05T10:00:00,60,8", "6 fields"),
    ],
)
def test_broken_row_of_a_ledger_is_refused_with_file_and_line(
    tmp_path: Path, row: str, said: str
) -> None:
    file = tmp_path / "prod.ledger.csv"
    file.write_text(HEADER + row + "\n")

    (line,) = faults(file)

    assert line.startswith(f"{file}:2: ")
    assert said in line


def test_ledger_with_another_header_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "prod.ledger.csv"
    file.write_text("timestamp,duration\n")

    (line,) = faults(file)

    assert f"{file}:1: expected the header submitted,run_s" in line
