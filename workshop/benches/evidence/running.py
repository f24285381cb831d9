"""Runs benches one after the other, each in a process of its own, and keeps what each reported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workshop.benches.evidence.claims import Claim

LONGEST_S = 1_800
"""Of one bench; with all of them an hour on two quiet cores."""
Run = Callable[[Claim, Path], "subprocess.CompletedProcess[str]"]
Tell = Callable[[str], None]


def run_all(claims: Sequence[Claim], traces: Path, folder: Path, tell: Tell, run: Run) -> int:
    """Keep a report of each in ``folder`` (NAME.json), with a line of progress before and after; how many
    failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    began_s = time.monotonic()
    for number, claim in enumerate(claims, 1):
        spent = (time.monotonic() - began_s) / 60
        tell(f"{number} of {len(claims)}, {spent:.0f} min: {claim.bench}")
        report = report_of(claim, traces, run)
        failed += "failed" in report
        tell(f"  {report.get('failed') or report.get('missing') or 'done'}")
        (folder / f"{claim.bench}.json").write_text(json.dumps(report, indent=2) + "\n")
    return failed


def report_of(claim: Claim, traces: Path, run: Run) -> dict[str, Any]:
    """What the bench printed; or ``missing`` without its traces, or ``failed`` with its last line."""
    if any(not (traces / name).is_dir() for name in claim.traces):
        return {"bench": claim.bench, "missing": "the traces are not here."}
    try:
        done = run(claim, traces)
    except subprocess.TimeoutExpired as late:
        return _failed(claim, f"it took longer than {late.timeout:.0f} s.")
    if done.returncode:
        return _failed(claim, (done.stderr.strip().splitlines() or ["it said nothing."])[-1])
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return _failed(claim, "what it printed is no JSON.")
    return report | {"at": f"{datetime.now(UTC):%Y-%m-%d %H:%M}", "load": os.getloadavg()[0]}


def _failed(claim: Claim, why: str) -> dict[str, Any]:
    return {"bench": claim.bench, "failed": why}


def in_process(manage: Path) -> Run:
    """Runs a bench by the ``manage.py`` at that path."""

    def run(claim: Claim, traces: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 - our own command
            [sys.executable, str(manage), "bench", claim.bench, "--json", "--traces", str(traces)],
            capture_output=True, text=True, timeout=LONGEST_S, check=False,
        )  # fmt: skip

    return run


def reports_in(folder: Path) -> dict[str, dict[str, Any]]:
    """The reports in ``folder`` by bench."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
