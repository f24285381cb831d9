"""README's table of commands, each row run as it stands beside the example organisation."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

from scheduling.cluster.vocabulary import labels
from scheduling.models import ClusterMode
from scheduling.services.clusters.add import set_mode
from scheduling.services.workloads.submit import submit
from tests.factories import example_cluster
from tests.foresight import with_past
from tests.portal.kubernetes import serving
from tests.scheduling.manifests import template
from workshop.demo import running

ROW = re.compile(r"^\| ((?:`[^`]+`(?:, )?)+) \|", re.MULTILINE)
ROWS = [
    command
    for row in ROW.findall((settings.BASE_DIR / "README.md").read_text())
    for command in re.findall(r"`([^`]+)`", row)
]
SHORTER = {"scenario": ["--days", "1"], "what-if": ["--now"]}
"""Options of the long ones."""
ELSEWHERE = {
    "demo_week": "tests/portal/demo/test_week.py",
    "doctor": "tests/portal/config/test_doctor.py",
    "bench": "tests/scheduling/services/benches/test_bench.py",
}
"""Rows that make a world of their own, and where each is run."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a person stands: a checkout whose docs are read."""
    (tmp_path / "docs").symlink_to(settings.BASE_DIR / "docs")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def beside(db: None) -> Iterator[None]:
    """What a demo has: a cluster that answers, with work that waits, and weeks behind it."""
    cluster = example_cluster()
    with_past(cluster)
    queue = cluster.queues.get(name="vision")
    meta = {"name": "probe", "labels": {labels.QUEUE: queue.name}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": meta,
        "spec": {"template": template(restartPolicy="Never")},
    }
    with serving(cluster):
        submit(cluster, manifest=job, user="researcher")
        # Nobody has written the guardrails that enforcement needs.
        set_mode(cluster, ClusterMode.OBSERVE)
        yield


def run(command: str) -> None:
    """``command`` of the table in this process; what it prints goes where it says."""
    line, _, file = command.replace(" [--json]", " --json").partition(" > ")
    program, script, name, *args = shlex.split(line)
    assert (program, script) == ("python", "manage.py")
    out = io.StringIO()
    call_command(name, *args, *SHORTER.get(name, ()), stdout=out, stderr=io.StringIO())
    assert out.getvalue() or name == "export-trace"
    if file:
        Path(file).write_text(out.getvalue())


def test_every_row_is_run_by_a_test_of_this_file_or_another() -> None:
    programs = {row.split()[0] for row in ROWS}

    assert programs == {"python", "make", ".venv/bin/weir"}
    assert len(ROWS) > 20
    for path in ELSEWHERE.values():
        assert (settings.BASE_DIR / path).exists()


def test_rows_of_manage_work_one_after_the_other(folder: Path, beside: None) -> None:
    ours = [row for row in ROWS if row.startswith("python ") and row.split()[2] not in ELSEWHERE]
    for row in ours:
        run(row.replace("WORKLOAD", "vision/probe"))

    assert len(ours) == 9


@pytest.mark.parametrize("row", [row for row in ROWS if row.startswith("make ")])
def test_row_of_make_is_a_target_of_the_makefile(row: str) -> None:
    done = subprocess.run(
        [*row.split(), "--dry-run"],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_row_of_the_client_is_a_command_it_has() -> None:
    (row,) = (row for row in ROWS if "weir " in row and row.startswith(".venv"))
    done = subprocess.run(
        [sys.executable, "-m", "weir", *row.split()[1:], "--help"],
        cwd=settings.BASE_DIR, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr


def test_command_beside_a_demo_reads_its_database_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    running.note(
        {"DATABASE_URL": "sqlite:///demo", "WEIR_ADDRESS": "http://127.0.0.1:1", "HOME": "/"},
        tmp_path,
    )

    running.join(tmp_path)

    assert os.environ["DATABASE_URL"] == "sqlite:///demo"
    assert "http://127.0.0.1:1" in capsys.readouterr().err


def test_database_that_is_named_comes_before_the_demos(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", {**os.environ, "DATABASE_URL": "sqlite:///mine"})
    running.note({"DATABASE_URL": "sqlite:///demo"}, tmp_path)

    running.join(tmp_path)

    assert os.environ["DATABASE_URL"] == "sqlite:///mine"


def test_demo_that_was_killed_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (tmp_path / f"{ended.pid}.json").write_text(json.dumps({"DATABASE_URL": "sqlite:///demo"}))
    monkeypatch.setattr(os, "environ", {"PATH": ""})

    running.join(tmp_path)

    assert "DATABASE_URL" not in os.environ
