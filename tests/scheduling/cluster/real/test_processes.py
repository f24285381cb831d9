"""Processes that are found again, and only those."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from workshop.testbed.control_plane.processes import Identity, Process, ProcessDiedError, end_all

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('deaf', flush=True); time.sleep(600)",
]


def test_started_process_is_ended_by_whoever_opens_the_folder(tmp_path: Path) -> None:
    process = Process(tmp_path, "sleeper", SLEEP)
    process.start()
    identity = process.identity
    assert identity is not None
    assert identity.is_alive

    assert end_all(tmp_path) == ["sleeper"]
    assert not identity.is_alive
    assert list(tmp_path.glob("*.pid")) == []


def test_id_that_was_given_to_another_process_is_spared(tmp_path: Path) -> None:
    """The file names this very test's id, but another birth."""
    Identity(os.getpid(), "1").write(tmp_path / "old.pid")
    assert end_all(tmp_path) == []


def test_process_that_ignores_the_polite_signal_is_ended_all_the_same(tmp_path: Path) -> None:
    process = Process(tmp_path, "stubborn", STUBBORN)
    process.start()
    identity = process.identity
    assert identity is not None
    while "deaf" not in process.tail():
        pass
    identity.end(wait_s=0.1)
    assert not identity.is_alive


def test_process_that_ended_by_itself_is_reported_with_its_last_words(tmp_path: Path) -> None:
    process = Process(tmp_path, "short", ["/bin/sh", "-c", "echo port is taken; exit 1"])
    process.start()
    while process.is_alive:
        pass
    with pytest.raises(ProcessDiedError, match="port is taken"):
        process.check()


def test_processes_of_a_killed_starter_are_found(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from workshop.testbed.control_plane.processes import Process\n"
        f"Process(Path({str(tmp_path)!r}), 'orphan', {SLEEP!r}).start()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    starter = subprocess.run([sys.executable, "-c", code], check=False)
    assert starter.returncode == -signal.SIGKILL
    assert end_all(tmp_path) == ["orphan"]
