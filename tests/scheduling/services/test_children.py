"""Processes of one command: each is started again when it dies, and none outlives the parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scheduling.kube import eventually

PROGRAM = Path(__file__).parents[1] / "family.py"
ALWAYS = ("portal", "engine", "worker")


class Running:
    """The program, and what its children have written down."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.parent = subprocess.Popen([sys.executable, str(PROGRAM), str(folder)])
        for name in ALWAYS:
            eventually((folder / name).exists)

    def pid(self, name: str) -> int:
        return int((self.folder / name).read_text())

    def lives(self, pid: int) -> bool:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state != "Z"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    found = Running(tmp_path)
    yield found
    found.parent.kill()
    found.parent.wait()


def test_child_that_is_killed_is_started_again(running: Running) -> None:
    died = running.pid("engine")
    os.kill(died, signal.SIGKILL)
    eventually(lambda: running.pid("engine") != died)
    assert running.lives(running.pid("worker"))


def test_children_end_with_a_parent_that_is_killed(running: Running) -> None:
    pids = [running.pid(name) for name in ALWAYS]
    running.parent.kill()
    eventually(lambda: not any(map(running.lives, pids)))


def test_parent_that_is_to_end_ends_its_children_first(running: Running) -> None:
    pids = [running.pid(name) for name in ALWAYS]
    running.parent.terminate()
    assert running.parent.wait(30) == 0
    assert not any(map(running.lives, pids))


def test_end_of_the_vital_part_is_that_of_all(running: Running) -> None:
    pid = running.pid("engine")
    (running.folder / "end-portal").write_text("7")
    assert running.parent.wait(30) == 7
    assert not running.lives(pid)


def test_part_that_has_nothing_to_do_is_not_there_until_it_has(running: Running) -> None:
    assert not (running.folder / "studies").exists()
    (running.folder / "wanted").touch()
    eventually((running.folder / "studies").exists)


def test_part_that_ends_with_nothing_to_do_is_left_alone(running: Running) -> None:
    (running.folder / "wanted").touch()
    eventually((running.folder / "studies").exists)
    pid = running.pid("studies")
    (running.folder / "wanted").unlink()
    (running.folder / "end-studies").write_text("0")
    eventually(lambda: not running.lives(pid))
    (running.folder / "studies").unlink()
    (running.folder / "end-studies").unlink()
    died = running.pid("engine")
    os.kill(died, signal.SIGKILL)
    eventually(lambda: running.pid("engine") != died)  # the parent has looked by then
    assert not (running.folder / "studies").exists()


ASIDE = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs are started deaf to it
from pathlib import Path
from django.conf import settings
settings.configure()
from scheduling.services.worker.children import aside
here = Path(sys.argv[1])

def run():
    taken.append(1)
    (here / "aside").write_text(str(os.getpid()))
    {does}

taken = []
aside("aside", run)
print(len(taken))
"""


def _aside(does: str, folder: Path) -> subprocess.Popen[str]:
    """A program that does so aside, then prints how much it holds of what was taken there."""
    command = [sys.executable, "-c", ASIDE.format(does=does), str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_what_is_done_aside_is_over_when_the_process_goes_on_and_took_none_of_its_memory(
    tmp_path: Path,
) -> None:
    said, _ = _aside("pass", tmp_path).communicate(timeout=60)
    assert said == "0\n"
    assert (tmp_path / "aside").exists()


def test_what_is_done_aside_fails_the_process_leaves_with_its_status(tmp_path: Path) -> None:
    process = _aside("sys.exit(3)", tmp_path)
    assert process.communicate(timeout=60) == ("", None)
    assert process.returncode == 3


def test_process_is_interrupted_what_it_does_aside_ends_too(tmp_path: Path) -> None:
    process = _aside("time.sleep(600)", tmp_path)
    noted = tmp_path / "aside"
    eventually(lambda: noted.exists() and noted.read_text() != "")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    eventually(lambda: not Path(f"/proc/{noted.read_text()}").exists())
