"""What a command loads before it does anything: nothing that it does not use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest
import yaml
from django.conf import settings
from django.core.management import get_commands, load_command_class

import manage
from scheduling.management import reading
from scheduling.management.command import FileCommand
from scheduling.management.database import DatabaseCommand
from tests.scheduling.management.test_snapshot_commands import FILE

PROGRAM = """
import json, os, runpy, sys
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit:
    pass
os.write(2, json.dumps(sorted(sys.modules)).encode())
"""
BARE = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
"""The environment of a terminal; pytest has named the settings in this process."""
LEARNING = {"sklearn", "statsmodels", "pandas", "scipy.linalg", "scipy.stats", "cma"}
WEB = {
    "rest_framework.views", "drf_spectacular.openapi", "uvicorn", "redis", "django.test",
    "portal.config.urls", "portal.web.urls", "portal.api.urls",
}  # fmt: skip
CLUSTER = {"kubernetes", "scheduling.cluster.connection.client"}
ENGINE = {"numba", "scheduling.engine.planner"}
PORTAL = {"celery", "requests", "scheduling.models", "portal.accounts", "django.contrib.auth"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "now.yaml").write_text(FILE)
    (tmp_path / "none.json").write_text("[]")
    return tmp_path


def loaded(folder: Path, program: str, *args: str, plain: str = "1") -> set[str]:
    """The modules of a process that ran ``program`` with ``args``, on a database without tables."""
    code = PROGRAM.replace("sys.argv[0]", repr(program))
    done = subprocess.run(
        [sys.executable, "-c", code, *args], cwd=folder, capture_output=True, timeout=120, check=True,
        env={
            **BARE, "PYTHONPATH": str(settings.BASE_DIR), "NUMBA_DISABLE_JIT": plain,
            "DATABASE_URL": f"sqlite:///{folder / 'none.sqlite3'}", "WEIR_CONFIG": str(folder / "none"),
        },
    )  # fmt: skip
    told = done.stderr.decode()
    return set(json.loads(told[told.rindex("[") :]))


@pytest.mark.parametrize(
    ("command", "unused"),
    [
        ("plan now.yaml", LEARNING | WEB | CLUSTER | PORTAL),
        ("explain now.yaml w2", LEARNING | WEB | CLUSTER | PORTAL),
        ("scenario none.json", LEARNING | WEB | CLUSTER | PORTAL),
        ("replay none.json", LEARNING | WEB | CLUSTER | PORTAL),
        ("audit verify", LEARNING | WEB | CLUSTER | ENGINE),
        ("export-trace fra1 all.ledger.csv", LEARNING | WEB | CLUSTER | {"scheduling.engine.planner"}),
        ("cluster check fra1", LEARNING | WEB | {"scheduling.engine.planner"}),
        ("snapshot fra1", LEARNING | WEB | {"scheduling.engine.planner"}),
        ("what-if fra1 none.json", LEARNING | WEB),
        ("serve --help", LEARNING | WEB | CLUSTER | ENGINE),
        ("migrate --help", LEARNING | WEB | CLUSTER | ENGINE),
    ],
)  # fmt: skip
def test_command_loads_nothing_that_it_does_not_use(
    folder: Path, command: str, unused: set[str]
) -> None:
    assert loaded(folder, str(settings.BASE_DIR / "manage.py"), *command.split()) & unused == set()


@pytest.mark.parametrize("command", ["plan now.yaml", "explain now.yaml w2"])
def test_small_file_needs_no_compiler(folder: Path, command: str) -> None:
    program = str(settings.BASE_DIR / "manage.py")
    found = loaded(folder, program, *command.split(), plain="0")
    assert "scheduling.engine.planner" in found
    assert "numba" not in found


@pytest.mark.parametrize(
    ("nodes", "plainly"), [(reading.SMALL - 2, True), (reading.SMALL - 1, False)]
)
def test_file_is_planned_in_python_as_long_as_that_is_sooner(
    folder: Path, monkeypatch: pytest.MonkeyPatch, nodes: int, plainly: bool
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(reading, "run_plainly", lambda: asked.append(1))
    more = [{"name": f"n{i}", "gpu_class": "h100", "gpus": 8} for i in range(nodes)]
    (folder / "now.json").write_text(
        json.dumps({**yaml.safe_load(FILE), "nodes": more}, default=str)
    )
    reading.read_snapshot(load_command_class("scheduling", "plan"), str(folder / "now.json"))
    assert bool(asked) is plainly


def test_terminal_client_loads_nothing_of_the_portal(folder: Path) -> None:
    client = str(settings.BASE_DIR / "weir" / "__main__.py")
    unused = (
        LEARNING | WEB | CLUSTER | ENGINE | {"django", "celery", "numpy", "scheduling", "portal"}
    )

    assert loaded(folder, client, "whoami") & unused == set()


@pytest.mark.parametrize(
    ("kind", "named"), [(FileCommand, manage.OF_FILES), (DatabaseCommand, manage.OF_THE_DATABASE)]
)
def test_commands_of_each_kind_are_those_that_manage_names(
    kind: type, named: Collection[str]
) -> None:
    ours = {
        name: app
        for name, app in get_commands().items()
        if str(app).startswith(("scheduling", "portal", "workshop"))
    }

    assert {
        name for name, app in ours.items() if isinstance(load_command_class(str(app), name), kind)
    } == set(named)


# That there are no tables is one of the things that the doctor looks for: tests/portal/config/test_doctor.py.
@pytest.mark.parametrize("name", sorted(manage.OF_THE_DATABASE - {"doctor"}))
def test_command_on_a_database_without_tables_says_in_one_line_what_to_do(
    folder: Path, name: str
) -> None:
    rest = {"audit": ["verify"], "cluster": ["check", "fra1"], "export-trace": ["fra1", "x.ledger.csv"],
            "snapshot": ["fra1"], "what-if": ["fra1", "none.json"]}.get(name, [])  # fmt: skip
    done = subprocess.run(
        [sys.executable, str(settings.BASE_DIR / "manage.py"), name, *rest],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        env={**BARE, "DATABASE_URL": f"sqlite:///{folder / 'none.sqlite3'}"},
    )  # fmt: skip

    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "no such table" in line
    assert "Start 'make demo' or 'make serve' first" in line
    assert "manage.py doctor" in line
