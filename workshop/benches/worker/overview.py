"""Pages of the demo before a crowd: the demo's own process, asked as browsers ask it."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests
from django.conf import settings

from workshop.benches.engine.outcomes import Outcome, Progress
from workshop.benches.worker.crowd import add_people, crowd, sign_in
from workshop.benches.worker.questions import check, sooner
from workshop.testbed.parts import end_with_parent, free_port

CLIENTS = 50
SPAN_S = 30.0
LIMIT_MS = 1000.0
CHECK_LIMIT_MS, SOONER_LIMIT_MS = 2000.0, 1000.0
QUESTIONS = {"check": check, "sooner": sooner}
PLACES = (("pretraining", "researcher"), ("research", "team lead"), ("operations", "admin"))
"""Team and persona of the crowd, in turn: the last question of a person replaces the one before, so each
client is a person."""
CLUSTER = "fra1"
PASSWORD = "weir"  # noqa: S105 - the demo's own, printed at every start
PAGES = {"overview": "/c/fra1/", "account": "/account/"}
"""The account page shows next to nothing: what any page costs this server before a crowd."""
ADDRESS = re.compile(r"Weir is at (http://\S+)/")
START_S = 20.0
END_S = 20.0


class NoDemoError(Exception):
    """The demo did not start; the message ends with what it said last."""


def run_overview(_traces: Path, progress: Progress) -> Outcome:
    """50 people of three personas on the demo's overview. Raises NoDemoError."""
    try:
        return _measure(progress)
    except requests.RequestException as failed:
        raise NoDemoError(f"The demo could not be visited: {failed}") from failed


def _measure(progress: Progress) -> Outcome:
    measured: dict[str, float] = {"clients": CLIENTS}
    faults: dict[str, int] = {}
    with demo(progress) as base, crowd(base, _people(base)) as people:
        people.visit(PAGES["overview"], 3.0)
        for name, address in PAGES.items():
            progress(f"{CLIENTS} clients on {address} for {SPAN_S:.0f} s")
            measured |= people.visit(address, SPAN_S).figures(name, SPAN_S)
        for name, ask in QUESTIONS.items():
            progress(f"{CLIENTS} people ask at once: {name}")
            began_s = time.monotonic()
            answers = ask(people, CLUSTER)
            measured |= answers.figures(name, time.monotonic() - began_s)
            faults |= {f"{name}: {fault}": n for fault, n in Counter(answers.errors).items()}
    measured["overview_p95_to_limit"] = round(measured["overview_p95_ms"] / LIMIT_MS, 2)
    notes = [
        f"limit of p95: {LIMIT_MS:.0f} ms; no pause between an answer and the next question",
        f"limits at p95: {CHECK_LIMIT_MS:.0f} ms of a check, {SOONER_LIMIT_MS:.0f} ms of what would start"
        " work sooner, both until the answer stands",
        *(f"{fault}, {n} times" for fault, n in faults.items()),
        "server, worker, cluster and work of the demo are one process; the crowd is another",
    ]
    return Outcome(measured, notes=notes)


def _people(base: str) -> list[tuple[str, str]]:
    with sign_in(base, "admin", PASSWORD) as admin:
        return add_people(base, admin, PLACES, CLIENTS)


@contextmanager
def demo(progress: Progress) -> Iterator[str]:
    """The base address of a demo seeded anew, on a free port. Raises NoDemoError."""
    with tempfile.TemporaryDirectory(prefix="weir-pages-") as folder:
        command = [sys.executable, "manage.py", "demo", "--port", str(free_port())]
        process = subprocess.Popen(  # noqa: S603 - ourselves
            [*command, "--data", f"{folder}/demo"],
            cwd=settings.BASE_DIR,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=end_with_parent,  # noqa: PLW1509 - nothing else runs in this process yet
        )
        try:
            yield _started(process, progress)
        finally:
            process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _started(process: subprocess.Popen[str], progress: Progress) -> str:
    last = ""
    for line in process.stdout or ():
        if found := ADDRESS.search(line):
            wait_until_it_listens(found[1])
            return found[1]
        if last := line.strip() or last:
            progress(last)
    raise NoDemoError(f"The demo ended before it served: {last}")


def wait_until_it_listens(base: str) -> None:
    """It tells its address a moment before it takes connections. Raises NoDemoError."""
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        try:
            requests.get(f"{base}/sign-in/", timeout=START_S).raise_for_status()
        except requests.ConnectionError:
            time.sleep(0.1)
        else:
            return
    raise NoDemoError(f"The demo did not answer at {base} within {START_S:.0f} s.")
