"""The page of evidence: tables between markers, from reports; what failed or is lacking is said."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from workshop.benches.evidence.claims import CLAIMS, Claim, at_least, at_most, equal, within
from workshop.benches.evidence.rendering import PageError, block, missed, rendered
from workshop.benches.evidence.running import report_of, reports_in, run_all
from workshop.management.commands.bench import ALL

CLAIM = Claim("division", (at_most("ms_1000", "1,000 leaves, ms", 5), at_least("n", "many", 10, 0)))
REPORT: dict[str, Any] = {
    "bench": "division", "measured": {"ms_1000": 1.75, "n": 9},
    "cpu_s": 12.0, "wall_s": 13.0, "peak_mib": 300.0,
    "machine": {"cpu": "a machine", "cores": 2, "python": "3.11"}, "at": "2026-11-26 09:00", "load": 1.5,
}  # fmt: skip


def test_table_has_figure_goal_and_verdict() -> None:
    said = block(CLAIM, REPORT)

    assert "| 1,000 leaves, ms | 1.75 | ≤ 5 | reached |" in said
    assert "| many | 9 | ≥ 10 | **missed** |" in said
    assert "`python manage.py bench division --json`" in said
    assert "load 1.5 when it ended, 2026-11-26 09:00 UTC" in said


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (None, "Not run."),
        ({"missing": "the traces are not here."}, "Not run: the traces are not here."),
        ({"failed": "MemoryError"}, "**Failed**: MemoryError"),
    ],
)
def test_what_was_not_measured_has_no_table(report: dict[str, str] | None, said: str) -> None:
    text = block(CLAIM, report)

    assert said in text
    assert "|" not in text


def test_figure_that_a_bench_no_longer_reports_is_named() -> None:
    assert "| many | not reported | ≥ 10 |  |" in block(CLAIM, REPORT | {"measured": {}})


@pytest.mark.parametrize(
    ("line", "value", "met"),
    [
        (at_most("x", "x", 5), 5, True),
        (at_most("x", "x", 5), 5.01, False),
        (at_least("x", "x", 5), 4.99, False),
        (equal("x", "x", 5), 5, True),
        (within("x", "x", 35, 45), 34.9, False),
        (within("x", "x", 35, 45), 45, True),
    ],
)
def test_goal_is_held_against_the_figure(line: Any, value: float, met: bool) -> None:
    assert line.is_met(value) is met


def test_missed_goals_of_all_benches_are_listed() -> None:
    said = missed({"division": REPORT | {"measured": {"ms_1000": 9, "ms_10000": 1}}})

    assert "| division | 1,000 leaves, CPU-ms | 9.00 | ≤ 5 |" in said
    assert "10,000 leaves" not in said


def page_of(*names: str) -> str:
    return "\n".join(f"<!-- evidence {n} -->\nold\n<!-- end of {n} -->" for n in names)


def test_blocks_are_replaced_and_the_rest_stays() -> None:
    page = f"Before.\n{page_of(*CLAIMS, 'missed')}\nAfter."

    once = rendered(page, {"division": REPORT})

    assert once.startswith("Before.\n<!-- evidence division -->\n`python")
    assert once.endswith("\nAfter.")
    assert "old" not in once
    assert rendered(once, {"division": REPORT}) == once


@pytest.mark.parametrize("names", [[*CLAIMS], [*CLAIMS, "missed", "never"]])
def test_page_with_other_markers_is_refused(names: list[str]) -> None:
    with pytest.raises(PageError):
        rendered(page_of(*names), {})


def test_page_that_is_published_has_every_marker() -> None:
    page = (settings.BASE_DIR / "docs" / "evidence.md").read_text()

    assert rendered(page, {}).count("Not run.") == len(CLAIMS)


def test_every_claim_is_of_a_bench_that_exists() -> None:
    assert CLAIMS.keys() <= ALL.keys()


def answer(code: int, out: str = "", err: str = "") -> Any:
    return lambda claim, traces: subprocess.CompletedProcess([], code, out, err)


def test_report_of_a_bench_that_fails_has_its_last_line(tmp_path: Path) -> None:
    report = report_of(CLAIM, tmp_path, answer(2, err="first\nno room\n"))

    assert report == {"bench": "division", "failed": "no room"}


def test_report_of_a_bench_that_takes_too_long_says_so(tmp_path: Path) -> None:
    def never(claim: Claim, traces: Path) -> subprocess.CompletedProcess[str]:
        raise subprocess.TimeoutExpired("bench", 60)

    assert report_of(CLAIM, tmp_path, never)["failed"] == "it took longer than 60 s."


def test_bench_without_its_traces_is_not_run(tmp_path: Path) -> None:
    report = report_of(Claim("replay", (), ("philly",)), tmp_path, answer(0, "{}"))

    assert report["missing"] == "the traces are not here."


def test_runs_keep_a_report_each_and_go_on_after_a_failure(tmp_path: Path) -> None:
    lines: list[str] = []
    claims = [CLAIM, Claim("cycle", ())]

    def run(claim: Claim, traces: Path) -> Any:
        if claim.bench == "division":
            return answer(1, err="broken")(claim, traces)
        return answer(0, json.dumps({"bench": claim.bench, "measured": {}}))(claim, traces)

    failed = run_all(claims, tmp_path, tmp_path / "kept", lines.append, run)

    assert failed == 1
    assert reports_in(tmp_path / "kept")["division"]["failed"] == "broken"
    assert reports_in(tmp_path / "kept")["cycle"]["measured"] == {}
    assert lines[0].startswith("1 of 2")
