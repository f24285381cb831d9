"""A PostgreSQL of our own for single tests, thrown away afterwards; where there is none, the reason why."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.parts.servers import postgres, program, unprivileged


def missing() -> str:
    """Why no server can be started here; empty when one can."""
    for name in ("initdb", "pg_ctl", "postgres"):
        if program(name) is None:
            return f"{name} is not installed"
    return "" if os.geteuid() or unprivileged() else "PostgreSQL does not run as root"


@contextmanager
def server() -> Iterator[str]:
    """The address (a ``DATABASE_URL``) of an empty server on a socket of its own, no TCP port."""
    with postgres() as running:
        yield running.url


def run_tests(*arguments: str) -> subprocess.CompletedProcess[str]:
    """pytest in a process of its own, whose settings name a server of its own."""
    with server() as url:
        return subprocess.run(
            [sys.executable, "-m", "pytest", *arguments],
            cwd=Path(__file__).parents[1],
            env={**os.environ, "DATABASE_URL": url},
            capture_output=True,
            text=True,
            check=False,
        )
