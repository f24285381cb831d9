"""What the load test says of what locust and the web processes told."""

import pytest

from workshop.benches.worker.large import Person
from workshop.benches.worker.load import LoadWatch, _figures


def watched(*mib):
    return LoadWatch([(60.0 * i, float(one), 0.5 * 60 * i) for i, one in enumerate(mib)])


@pytest.mark.parametrize(
    ("mib", "growth"),
    [
        ((300, 500, 600, 600, 600, 600), 0.0),
        ((300, 500, 600, 610, 620, 630), 600.0),
        ((300, 600, 630), 0.0),
    ],
    ids=["caches that filled", "a leak of 10 MiB a minute", "too short to say"],
)
def test_growth_is_told_of_the_time_after_caches_filled(mib, growth):
    assert watched(*mib).growth_mib_per_hour() == pytest.approx(growth, abs=1e-6)


def row(name, times, failures=0):
    return {
        "name": name,
        "response_times": times,
        "num_requests": sum(times.values()),
        "num_failures": failures,
    }


def test_streams_count_as_errors_but_not_as_pages():
    told = [
        row("overview", {"100": 9, "900": 1}),
        row("my work", {"200": 10}, failures=2),
        row("live stream", {"60000": 20}, failures=1),
    ]
    figures = _figures(told, watched(600, 600, 600), 20)
    assert (figures["pages"], figures["errors"], figures["streams_opened"]) == (20, 3, 20)
    assert (figures["p50_ms"], figures["p99_ms"]) == (200.0, pytest.approx(767.0))
    assert figures["web_cores"] == 0.5


def test_crowd_that_nobody_answered_has_figures_all_the_same():
    assert _figures([], watched(600, 600), 5)["p99_ms"] == 0.0


@pytest.mark.parametrize(
    ("workload", "queue", "address"),
    [
        ("large-7", "q-1", ["w/large-7/", "queues/q-1/", "work/"]),
        ("", "", ["workloads/", "queues/", "work/"]),
    ],
    ids=["who has work", "who has none"],
)
def test_person_reads_what_there_is_of_theirs(workload, queue, address):
    person = Person("researcher", "ada", "sid", "x", "", queue, workload)
    pages = ("w/{workload}/", "queues/{queue}/", "work/")
    assert [person.address(page) for page in pages] == address
