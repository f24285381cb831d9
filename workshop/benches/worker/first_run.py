"""From a clone to the first page: what each step takes of a machine that has nothing of it yet."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import requests
from django.conf import settings

from workshop.benches.engine.outcomes import Outcome, Progress
from workshop.benches.worker.crowd import sign_in
from workshop.benches.worker.overview import (
    ADDRESS,
    END_S,
    PASSWORD,
    START_S,
    NoDemoError,
    wait_until_it_listens,
)
from workshop.benches.worker.processes import Watch
from workshop.testbed.parts import end_with_parent, free_port

SETUP = {"python": ".venv/bin/python", "install": ".venv/.runtime", "compile": "setup"}
"""Phase -> what make is asked for; installing has the downloads in it."""
LINES = {"Making the database": "migrate", "First start": "seed", "Living": "live"}
"""How the demo's lines begin -> the phase that begins with one."""
FIRST_PAGE = "/c/fra1/"
LAST_LINES = 5
"""Of a step that fails: make itself says the last ones."""
OURS = ("WEIR_", "DATABASE_URL", "DJANGO_")
"""Of the environment, what a newcomer has not set."""


class Phases:
    """What each phase took of the session that ``watch`` looks at."""

    def __init__(self, watch: Watch, prefix: str, progress: Progress) -> None:
        self._watch, self._prefix, self._progress = watch, prefix, progress
        self._began = ("", 0.0, 0.0)
        self.measured: dict[str, float] = {}

    def begin(self, name: str) -> None:
        """And end the one before, if there is one."""
        self.end()
        self._progress(f"{self._prefix}{name}")
        self._watch.take_peak_mib()
        self._began = (f"{self._prefix}{name}", self._watch.cpu_s(), time.monotonic())

    def end(self) -> None:
        name, cpu_s, wall_s = self._began
        if name:
            took = (self._watch.cpu_s() - cpu_s, time.monotonic() - wall_s)
            self.measured |= figures(name, *took, self._watch.take_peak_mib())
        self._began = ("", 0.0, 0.0)


def figures(name: str, cpu_s: float, wall_s: float, peak_mib: float) -> dict[str, float]:
    return {
        f"{name}_cpu_s": round(cpu_s, 2),
        f"{name}_wall_s": round(wall_s, 2),
        f"{name}_peak_mib": round(peak_mib, 1),
    }


def run_first_run(_traces: Path, progress: Progress) -> Outcome:
    """A clone of this checkout in an empty folder, twice to the first page. Raises NoDemoError."""
    with tempfile.TemporaryDirectory(prefix="weir-first-run-") as folder:
        clone = Path(folder) / "weir"
        command = ["git", "clone", "--quiet", str(settings.BASE_DIR), str(clone)]
        subprocess.run(command, check=True)  # noqa: S603 - ourselves
        measured: dict[str, float] = {}
        for name, target in SETUP.items():
            progress(name)
            measured |= _made(clone, name, target)
        measured |= _visited(clone, "", progress)
        measured |= _visited(clone, "second_", progress)
    for unit in ("cpu_s", "wall_s"):
        measured[f"to_first_page_{unit}"] = _sum(measured, unit)
    notes = [
        "to_first_page: everything but install, which has the downloads in it, and the second start",
        "peak_mib: of setup the largest process, of the demo the proportional set size of all of its own",
        f"load of the machine at the end: {os.getloadavg()[0]:.1f}, of which this is 1 to 2",
    ]
    return Outcome(measured, notes=notes)


def _sum(measured: Mapping[str, float], unit: str) -> float:
    parts = (v for k, v in measured.items() if k.endswith(unit))
    others = (
        v for k, v in measured.items() if k.endswith(unit) and k.startswith(("install", "second"))
    )
    return round(sum(parts) - sum(others), 2)


def _made(clone: Path, name: str, target: str) -> dict[str, float]:
    """What ``make target`` takes. Raises NoDemoError where it fails."""
    began_s = time.monotonic()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(  # noqa: S603 - ourselves
            ["make", "--silent", target],  # noqa: S607
            cwd=clone, env=_environment(), stdout=said, stderr=subprocess.STDOUT,
        )  # fmt: skip
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        last = said.read().strip().splitlines()[-LAST_LINES:]
    if process.returncode:
        raise NoDemoError(f"make {target} failed: {' '.join(last)}")
    wall_s = time.monotonic() - began_s
    return figures(name, used.ru_utime + used.ru_stime, wall_s, used.ru_maxrss / 1024)


def _visited(clone: Path, prefix: str, progress: Progress) -> dict[str, float]:
    """A start of the demo up to its overview. Raises NoDemoError."""
    process = subprocess.Popen(  # noqa: S603 - ourselves
        ["make", "--silent", "demo", f"PORT={free_port()}"],  # noqa: S607
        cwd=clone, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
        preexec_fn=end_with_parent,  # noqa: PLW1509 - nothing else runs in this process yet
    )  # fmt: skip
    watch = Watch(process.pid)
    phases = Phases(watch, prefix, progress)
    try:
        _follow(process, phases)
    except requests.RequestException as failed:
        raise NoDemoError(f"The demo could not be visited: {failed}") from failed
    finally:
        watch.stop()
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(END_S)
    return phases.measured


def _follow(process: subprocess.Popen[str], phases: Phases) -> None:
    """From its first line to the answer with the first page."""
    phases.begin("start")
    last = ""
    for line in process.stdout or ():
        last = line.strip() or last
        for beginning, phase in LINES.items():
            if line.startswith(beginning):
                phases.begin(phase)
        if found := ADDRESS.search(line):
            phases.begin("page")
            wait_until_it_listens(found[1])
            visitor = sign_in(found[1], "admin", PASSWORD)
            visitor.get(f"{found[1]}{FIRST_PAGE}", timeout=START_S).raise_for_status()
            phases.end()
            return
    raise NoDemoError(f"The demo ended before it served: {last}")


def _environment() -> dict[str, str]:
    """That of somebody who has set nothing of ours."""
    return {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
