"""Weir's web processes over PostgreSQL and Redis with a large organisation in it, thrown away afterwards."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import requests
from django.conf import settings

from scheduling.services.worker.deployment import DEPLOYED
from scheduling.services.worker.spending import MIB, ProcessUse, spent
from workshop.benches.engine.outcomes import Progress
from workshop.testbed.parts import end_with_parent, free_port, postgres, redis_server

WEB_PROCESSES = 2
"""As in docker/Dockerfile."""
START_S = 60.0


class NoPortalError(Exception):
    """The portal did not start; the message says what it said."""


@dataclass(frozen=True)
class Person:
    """A session: who it is, and what of theirs there is to look at."""

    persona: str
    user: str
    cookie: str
    value: str
    department: str
    queue: str
    workload: str

    def address(self, page: str) -> str:
        """Of ``page`` with this person's own things, or of the list above it for whoever has no such
        thing."""
        filled = page.format(**vars(self)).replace("w//", "workloads/")
        return filled.replace("//", "/")


@dataclass(frozen=True)
class Portal:
    base: str
    people: list[Person]
    pid: int
    """Of the process that started the web processes."""
    database: str
    """Its address as libpq reads it."""

    def memory_mib(self) -> float:
        """Memory of all web processes, what they share once."""
        return self._spent().memory / MIB

    def cpu_s(self) -> float:
        """CPU seconds that they have spent."""
        return self._spent().cpu_s

    def _spent(self) -> ProcessUse:
        return spent(self.pid) or ProcessUse()


@contextmanager
def large_portal(progress: Progress, sessions: int, *size: str) -> Iterator[Portal]:
    """``size`` are words for `seed_large`, which makes one cluster without any.

    Raises NoPortalError, and PartsError where PostgreSQL or Redis is not installed."""
    with postgres() as database, redis_server() as cache:
        environment = {
            **os.environ,
            "DATABASE_URL": database.url,
            "WEIR_CACHE_URL": cache.url,
            "WEIR_SECRET_KEY": secrets.token_urlsafe(50),
            "WEIR_SERVER_TIMING": "1",
            "OMP_NUM_THREADS": "1",
        }
        progress(
            "PostgreSQL is filled: 1,000 queues, 500 people, 50,000 live workloads, a year by the day"
            + (f" ({' '.join(size)})" if size else "")
        )
        people = _seed(environment, sessions, size)
        with _served(environment) as (base, pid):
            yield Portal(base, people, pid, database.dsn)


def _seed(environment: Mapping[str, str], sessions: int, size: Sequence[str]) -> list[Person]:
    command = [sys.executable, "manage.py", "seed_large", "--sessions", str(sessions), *size]
    done = subprocess.run(  # noqa: S603 - ourselves
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NoPortalError(done.stderr.strip() or done.stdout.strip())
    return [Person(**row) for row in json.loads(done.stdout.splitlines()[-1])]


@contextmanager
def _served(environment: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    port = free_port()
    web = next(one for one in DEPLOYED if one.name == "web")
    command = [
        sys.executable, "-m", *web.command, "--host", "127.0.0.1", "--port", str(port),
        "--workers", str(WEB_PROCESSES), "--log-level", "warning", "--no-access-log",
    ]  # fmt: skip
    process = subprocess.Popen(  # noqa: S603 - ourselves
        command, cwd=settings.BASE_DIR, env=environment, start_new_session=True,
        preexec_fn=end_with_parent,  # noqa: PLW1509 - nothing else runs in this process yet
    )  # fmt: skip
    base = f"http://127.0.0.1:{port}"
    try:
        _wait(base, process)
        yield base, process.pid
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


def _wait(base: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        try:
            if requests.get(f"{base}/sign-in/", timeout=5).ok:
                return
        except requests.RequestException:
            time.sleep(0.2)
    raise NoPortalError(f"The web processes did not answer at {base} within {START_S:.0f} s.")
