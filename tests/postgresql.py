"""A PostgreSQL of our own for tests, thrown away afterwards; None with a reason where there is none."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def missing() -> str:
    """Why no server can be started here; empty when one can."""
    for program in ("initdb", "pg_ctl", "postgres"):
        if shutil.which(program) is None:
            return f"{program} is not on the PATH"
    return "" if os.geteuid() or _unprivileged() else "PostgreSQL does not run as root"


def _unprivileged() -> str | None:
    """Whom root runs the server as."""
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)


@contextmanager
def server() -> Iterator[str]:
    """The address (a ``DATABASE_URL``) of an empty server on a socket of its own, no TCP port."""
    user = None if os.geteuid() else _unprivileged()
    role = pwd.getpwuid(os.geteuid()).pw_name
    folder = Path(tempfile.mkdtemp(prefix="weir-pg-"))
    if user:
        shutil.chown(folder, user)
    data = folder / "data"
    speed = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off"
    try:
        _run(user, "initdb", "-D", data, "-U", role, "-A", "trust", "--no-sync")
        options = f"-k {folder} -c listen_addresses='' {speed}"
        _run(user, "pg_ctl", "-D", data, "-l", folder / "log", "-w", "-o", options, "start")
        try:
            yield f"postgres:///{folder}/postgres"
        finally:
            _run(user, "pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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


def _run(user: str | None, *command: object) -> None:
    subprocess.run(
        [str(part) for part in command],
        user=user,
        cwd="/",
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
