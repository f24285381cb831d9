"""What the demo takes at rest: ``bench demo``. Each of its processes, from the first page on."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from django.conf import settings

from scheduling.services.worker.spending import MIB, ProcessUse, spent_by_name
from workshop.benches.engine.outcomes import Outcome, Progress
from workshop.testbed.control_plane.processes import ProcessDiedError

DEMO = "demo"
MINUTES = 10
EVERY_S = 10.0
FIRST_S = 1800.0
"""The longest until the first page, on a machine that is busy with other things."""
POLL_S = 0.2
PARENT, OURS = "parent", "weir "

Seen = list[tuple[float, dict[str, ProcessUse]]]
"""Seconds, and what each process had spent by then."""


def bench_demo(_traces: Path, progress: Progress, minutes: int = MINUTES) -> Outcome:
    """A first start of the demo in a folder of its own, then ``minutes`` in which nobody looks at it."""
    with tempfile.TemporaryDirectory(prefix="weir-demo-") as folder, _demo(Path(folder)) as running:
        began_s = time.monotonic()
        _await_page(running)
        first_s, first = time.monotonic() - began_s, _spent(running)
        progress(f"the first page after {first_s:.0f} s")
        seen = _look(running, minutes * 60, progress)
    figures = {"first_page_s": round(first_s, 1), "first_page_cpu_s": _sum_cpu(first)}
    return Outcome(
        measured=figures | figures_of(seen),
        notes=[
            "NAME_cpu: cores that the process kept busy from the first page to the end; NAME_mib: its"
            " proportional set at the end; all_late_cpu: all of them in the last third",
            "a process that ended in between is told with what it was seen to spend",
            f"load of the machine at the end: {os.getloadavg()[0]:.1f}",
        ],
    )


def figures_of(seen: Seen) -> dict[str, float]:
    """Cores and memory by process and of all, from the first look to the last."""
    last_s = seen[-1][0]
    whole, late = (
        cores(seen),
        cores([one for one in seen if one[0] >= seen[0][0] * 1 / 3 + last_s * 2 / 3]),
    )
    memory = [sum(one.memory for one in spent.values()) / MIB for _, spent in seen]
    found = {f"{name}_cpu": round(value, 3) for name, value in sorted(whole.items())}
    found |= {
        f"{name}_mib": round(one.memory / MIB, 1) for name, one in sorted(seen[-1][1].items())
    }
    return found | {
        "all_cpu": round(sum(whole.values()), 3),
        "all_late_cpu": round(sum(late.values()), 3),
        "all_first_mib": round(memory[0], 1),
        "all_mib": round(memory[-1], 1),
        "all_peak_mib": round(max(memory), 1),
    }


def cores(seen: Seen) -> dict[str, float]:
    """Of each process; one that began anew counts from there."""
    spent_s: dict[str, float] = defaultdict(float)
    for (_, before), (_, after) in pairwise(seen):
        for name, one in after.items():
            was_s = before[name].cpu_s if name in before else 0.0
            spent_s[name] += max(0.0, one.cpu_s - was_s)
    span_s = seen[-1][0] - seen[0][0]
    return {name: value / span_s for name, value in spent_s.items()} if span_s else {}


def _look(running: _Server, span_s: float, progress: Progress) -> Seen:
    until = time.monotonic() + span_s
    seen = [(time.monotonic(), _spent(running))]
    while time.monotonic() < until:
        time.sleep(min(EVERY_S, max(POLL_S, until - time.monotonic())))
        seen.append((time.monotonic(), _spent(running)))
        if len(seen) % 6 == 0:
            memory = sum(one.memory for one in seen[-1][1].values()) / MIB
            progress(f"{until - time.monotonic():.0f} s to go, {memory:.0f} MiB")
    return seen


class _Server:
    """The command, and where its pages are."""

    def __init__(self, folder: Path, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/"
        command = [
            sys.executable,
            "manage.py",
            "demo",
            "--port",
            str(port),
            "--data",
            str(folder / "demo"),
        ]
        self.log = folder / "demo.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(  # noqa: S603 - ourselves
                command, cwd=settings.BASE_DIR, stdout=log, stderr=log
            )

    def check(self) -> None:
        if self.process.poll() is not None:
            raise ProcessDiedError(f"The demo ended by itself:\n{self.log.read_text()[-2000:]}")


@contextmanager
def _demo(folder: Path) -> Iterator[_Server]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    running = _Server(folder, port)
    try:
        yield running
    finally:
        running.process.send_signal(signal.SIGTERM)
        running.process.wait()


def _await_page(running: _Server) -> None:
    until = time.monotonic() + FIRST_S
    while time.monotonic() < until:
        running.check()
        try:
            with urllib.request.urlopen(running.url, timeout=30):  # noqa: S310 - http of our own
                return
        except (urllib.error.URLError, OSError):
            time.sleep(POLL_S)
    raise ProcessDiedError(f"The demo showed no page in {FIRST_S:g} s.")


def _spent(running: _Server) -> dict[str, ProcessUse]:
    running.check()
    found = spent_by_name(running.process.pid)
    return {
        name.removeprefix(OURS) if name.startswith(OURS) else PARENT: one
        for name, one in found.items()
    }


def _sum_cpu(spent: dict[str, ProcessUse]) -> float:
    return round(sum(one.cpu_s for one in spent.values()), 1)
