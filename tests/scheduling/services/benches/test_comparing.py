"""Then and now: figures of the page beside new reports, and which of them got worse."""

from __future__ import annotations

from typing import Any

import pytest

from workshop.benches.evidence.claims import CLAIMS
from workshop.benches.evidence.comparing import ALL, changes, figures_of, in_words
from workshop.benches.evidence.rendering import block

MEASURED = {"fifo_avg_jct_s": 168_591.0, "jobs_per_cpu_s": 20_000, "pooled72_avg_wait_s": 7_541}
REPORT: dict[str, Any] = {
    "bench": "replay", "measured": MEASURED, "cpu_s": 1_000.0, "wall_s": 13.0, "peak_mib": 300.0,
    "machine": {"cpu": "a machine", "cores": 2, "python": "3.11"}, "at": "2026-11-26 09:00", "load": 1.5,
}  # fmt: skip
JOBS = "jobs a CPU-second, shipped engine"


def page_of(report: dict[str, Any]) -> str:
    return f"<!-- evidence replay -->\n{block(CLAIMS['replay'], report)}\n<!-- end of replay -->"


def later(cpu_s: float = 1_000.0, **measured: float) -> dict[str, Any]:
    return REPORT | {"cpu_s": cpu_s, "measured": MEASURED | measured}


def worse(report: dict[str, Any]) -> list[str]:
    found = changes(figures_of(page_of(REPORT)), {"replay": report})
    return [change.said for change in found if change.is_worse]


def test_page_gives_each_figure_and_what_the_bench_took() -> None:
    figures = figures_of(page_of(REPORT))["replay"]

    assert figures[JOBS] == 20_000
    assert figures[ALL] == 1_000


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (later(), []),
        (later(cpu_s=1_149.0), []),
        (later(cpu_s=1_151.0), [ALL]),
        (later(jobs_per_cpu_s=17_500), []),
        (later(jobs_per_cpu_s=17_000), [JOBS]),
        (later(jobs_per_cpu_s=40_000), []),
        (later(pooled72_avg_wait_s=70_000), []),  # has no goal and is no cost
    ],
)
def test_figure_is_worse_from_fifteen_per_cent_on(report: dict[str, Any], said: list[str]) -> None:
    assert worse(report) == said


def test_lines_tell_then_and_now_and_sum_up_what_got_worse() -> None:
    found = list(changes(figures_of(page_of(REPORT)), {"replay": later(jobs_per_cpu_s=10_000)}))
    lines = list(in_words(found))

    assert f"replay: {JOBS}: 20000 then, 10000 now  WORSE" in lines
    assert "1 of 4 figures are worse than before by more than 15%." in lines
    assert lines[-1] == f"  replay: {JOBS}: 2.00 times as bad"


@pytest.mark.parametrize("report", [{"failed": "MemoryError"}, {"missing": "no traces."}])
def test_bench_that_did_not_run_says_nothing(report: dict[str, Any]) -> None:
    assert list(changes(figures_of(page_of(REPORT)), {"replay": report})) == []


def test_figure_that_is_new_says_nothing() -> None:
    assert list(changes({}, {"replay": later()})) == []
