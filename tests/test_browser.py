"""Which browser the tests take, and what they say where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from tests import browser


def program(folder: Path, name: str) -> Path:
    made = folder / name
    made.write_text("#!/bin/sh\n")
    made.chmod(0o755)
    return made


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of programs."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("WEIR_BROWSER", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        "chromium-headless-shell",
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
        "chrome",
    ],
)
def test_browser_of_any_usual_name_is_found(alone: Path, name: str) -> None:
    made = program(alone, name)

    assert browser.find() == str(made)


def test_browser_without_windows_is_taken_before_others(alone: Path) -> None:
    program(alone, "chromium")
    lean = program(alone, "chromium-headless-shell")

    assert browser.find() == str(lean)


def test_browser_that_is_named_is_taken_before_others(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(alone, "chromium")
    named = program(alone, "of-my-own")
    monkeypatch.setenv("WEIR_BROWSER", str(named))

    assert browser.find() == str(named)


def test_named_browser_that_is_not_there_is_none(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(alone, "chromium")
    monkeypatch.setenv("WEIR_BROWSER", str(alone / "gone"))

    assert browser.find() is None


@pytest.mark.parametrize(("ci", "status"), [("", 0), ("true", 1)])
def test_without_a_browser_its_tests_are_left_out_and_counted_but_fail_in_ci(
    ci: str, status: int
) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:randomly",
         "tests/e2e/test_overview.py", "-k", "overview", "--maxfail", "1"],
        cwd=settings.BASE_DIR, capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "CI": ci, "WEIR_BROWSER": "/nowhere", "NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip

    assert told.returncode == status, told.stdout
    assert "apt-get install chromium-headless-shell" in told.stdout
    assert ("left out: there is no Chromium or Chrome" in told.stdout) is (not ci)
