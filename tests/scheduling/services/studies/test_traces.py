"""The work of a trace: opened within bounds, refused by line, mapped onto the queues, lived."""

from __future__ import annotations

import gzip
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from scheduling.engine import model as m
from scheduling.models import Study
from scheduling.services.errors import ServiceError
from scheduling.services.studies import running
from scheduling.services.studies.experiments import periods, traces
from scheduling.services.studies.experiments.mapping import leaves_of, period_of_trace, placed
from scheduling.services.studies.experiments.past import TraceQuestion, days_of_trace
from tests.factories import example_cluster
from tests.lab import CHANGES, ORDER, experiment

HEAD = "submitted,run_s,gpus,queue,user,asked_s\n"
FIRST = datetime(2025, 3, 3, tzinfo=UTC)
NODE, CLASS = 8, "h100"


def ledger(rows=200, *, queues=("speech", "away", "far"), users=6, gpus=(1, 2, 4, 8)) -> bytes:
    lines = [
        f"{(FIRST + timedelta(minutes=30 * i)).isoformat()},{3600 + 60 * i},{gpus[i % len(gpus)]},"
        f"{queues[i % len(queues)]},{f'u-{i % users}' if users else ''},7200"
        for i in range(rows)
    ]
    return (HEAD + "\n".join(lines) + "\n").encode()


def trace(**more):
    return traces.of_sent("week.ledger.csv", ledger(**more))


def world() -> m.Snapshot:
    """speech has twice the nominal quota of vision; both are below research."""

    def queue(name, gpus, parent="research"):
        return m.Queue(name, parent=parent, quotas={CLASS: m.Quota(gpus * m.MILLI)})

    return m.Snapshot(
        now=FIRST,
        gpu_classes=(m.GpuClass(CLASS),),
        nodes=tuple(m.Node(f"n-{i}", CLASS, NODE * m.MILLI) for i in range(4)),
        queues=(queue("research", 24, None), queue("speech", 16), queue("vision", 8)),
        priority_classes=(m.PriorityClass("training"),),
    )


def test_file_with_faults_is_refused_by_line_and_told_by_its_name() -> None:
    broken = ledger(3).replace(b",2,", b",none,") + b"only,three,cells\n"
    with pytest.raises(ServiceError) as caught:
        traces.of_sent("week.ledger.csv", broken)
    assert caught.value.field == "trace"
    assert "week.ledger.csv:3: expected whole GPUs" in caught.value.sentence
    assert "week.ledger.csv:5: expected 6 fields" in caught.value.sentence


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("week.txt", ledger(2), "No reader is known"),
        ("../week.swf", ledger(2), "No reader is known"),
        ("week.swf", b"", "is empty"),
        ("week.swf", b"x" * (traces.MOST_SENT + 1), "too large to be sent"),
        ("week.ledger.csv", HEAD.encode(), "has no work"),
        ("week.ledger.csv.gz", b"no gzip", "damaged data"),
        (
            "week.ledger.csv.gz",
            gzip.compress(b"0" * (traces.MOST_UNPACKED + 9)),
            "unpacks to too much",
        ),
    ],
)
def test_file_that_cannot_be_lived_is_refused_with_a_remedy(
    name: str, content: bytes, told: str
) -> None:
    with pytest.raises(ServiceError) as caught:
        traces.of_sent(name, content)
    assert told in caught.value.sentence
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("week.ledger.csv", ledger(9)),
        ("week.ledger.csv.gz", gzip.compress(ledger(9))),
        ("week.csv", b"timestamp,duration,num_gpus,cluster\n2017-10-09 07:01:55,60,1,a\n"),
        ("week.swf", b"1 0 0 60 4 -1 -1 4 90 -1 1 3 -1 -1 1 -1 -1 -1\n"),
    ],
)
def test_each_format_is_read_by_its_ending(name: str, content: bytes) -> None:
    assert len(traces.of_sent(name, content)) >= 1


def test_only_traces_of_the_folder_may_be_used(settings, tmp_path: Path) -> None:
    outside = tmp_path / "outside.ledger.csv"
    outside.write_bytes(ledger(3))
    folder = tmp_path / "kept"
    (folder / "philly").mkdir(parents=True)
    (folder / "philly" / "philly.csv").write_text(
        "timestamp,duration,num_gpus,cluster\n2017-10-09 07:01:55,60,1,a\n"
    )
    (folder / "week.ledger.csv").write_bytes(ledger(3))
    (folder / "readme.txt").write_text("none")
    settings.WEIR_LAB_TRACES = folder
    assert traces.trace_names() == ["philly", "week.ledger.csv"]
    assert len(traces.of_kept("week.ledger.csv")) == 3
    assert len(traces.of_kept("philly")) == 1
    for name in ("../outside.ledger.csv", str(outside), "readme.txt", ""):
        with pytest.raises(ServiceError, match="no such trace"):
            traces.of_kept(name)


def test_without_a_folder_no_trace_is_kept(settings) -> None:
    settings.WEIR_LAB_TRACES = None
    assert traces.trace_names() == []


def mapped(one, **more):
    days = days_of_trace(one, None, None, timedelta(0))
    return period_of_trace(one, world(), days.begin, days.end, days.warm_up, "training", **more)


def test_queue_of_the_same_name_takes_its_own_work() -> None:
    one = trace(queues=("speech", "away"))
    period, how = mapped(one)
    mine = {job.workload.name for job in period.jobs if job.workload.queue == "speech"}
    assert mine >= {job.name for job in one if job.queue == "speech"}
    assert (how["by_name"], how["by_share"]) == (["speech"], 1)


def test_rest_is_shared_out_by_nominal_quota() -> None:
    one = trace(rows=600, queues=("away", "far"), users=60, gpus=(1, 2))
    given: dict[str, int] = defaultdict(int)
    for job in one:
        given[placed(one, leaves_of(world()))[job.queue, job.user].name] += (
            job.gpus * job.duration_s
        )
    assert given["speech"] / given["vision"] == pytest.approx(2, rel=0.15)


def test_work_of_one_person_stays_together() -> None:
    one = trace(queues=("away",), users=5)
    period, _ = mapped(one)
    where: dict[str, set[str]] = defaultdict(set)
    for job in period.jobs:
        where[job.workload.user].add(job.workload.queue)
    assert all(len(queues) == 1 for queues in where.values())


def test_gang_is_of_equal_members_that_fit_on_a_node_and_what_is_too_large_is_counted() -> None:
    one = trace(rows=3, queues=("speech",), gpus=(16, 12, 999))
    period, how = mapped(one)
    shapes = [(job.workload.gpus // m.MILLI, job.workload.members.min) for job in period.jobs]
    assert shapes == [(8, 2), (6, 2)]
    assert how["too_large"] == 1


def test_time_that_was_asked_for_is_what_is_predicted() -> None:
    period, _ = mapped(trace(rows=2))
    assert period.jobs[0].workload.predicted == m.PredictedRunTime(7200.0, 7200.0)


def test_world_without_quota_is_refused() -> None:
    bare = m.Snapshot(now=FIRST, gpu_classes=(m.GpuClass(CLASS),), queues=(m.Queue("speech"),))
    with pytest.raises(ServiceError, match="No queue has quota"):
        leaves_of(bare)


def test_days_left_out_are_as_much_as_may_be_lived(monkeypatch: pytest.MonkeyPatch) -> None:
    one = trace(rows=200)
    days = days_of_trace(one, None, None, timedelta(days=1))
    assert (days.begin, days.end) == (
        FIRST + timedelta(days=1),
        one.submitted_at(199) + timedelta(seconds=1),
    )
    monkeypatch.setattr(periods, "MOST_JOBS", 100)
    assert days_of_trace(one, None, None, timedelta(days=1)).end == one.submitted_at(100)


@pytest.mark.parametrize(
    ("begin", "end", "warm", "field"),
    [
        (FIRST, None, 0, "begin"),
        (FIRST + timedelta(days=9), FIRST + timedelta(days=20), 0, "begin"),
        (FIRST, FIRST + timedelta(days=2), 5, "begin"),
        (FIRST + timedelta(days=2), FIRST, 0, "end"),
        (None, None, 20, "warm_up_days"),
        (None, None, 29, "warm_up_days"),
    ],
)
def test_days_outside_the_trace_are_refused(begin, end, warm: int, field: str) -> None:
    with pytest.raises(ServiceError) as caught:
        days_of_trace(trace(rows=200), begin, end, timedelta(days=warm))
    assert caught.value.field == field


@pytest.mark.django_db
def test_experiment_lives_a_trace_on_the_queues_of_the_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = example_cluster()
    made = experiment(
        cluster, monkeypatch, begin=None, end=None, warm_up=timedelta(days=1), replays=2,
        variants=(ORDER, CHANGES), trace=TraceQuestion("week.ledger.csv", ledger(150)),
    )  # fmt: skip
    while running.work(made.pk):
        pass
    made = Study.objects.get(pk=made.pk)
    assert set(made.variants.values_list("state", flat=True)) == {"done"}
    assert (made.basis["source"]["name"], made.basis["world"]["of"], made.basis["recorded"]) == (
        "week.ledger.csv",
        "today",
        {},
    )
    assert made.basis["source"]["by_name"] == ["speech"]
    assert made.basis["jobs"] == 150 - 48
