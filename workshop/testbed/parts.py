"""PostgreSQL and Redis of our own, that can be killed, restarted and flushed."""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import redis

DEBIAN = Path("/usr/lib/postgresql")
PASSWORD = "only-on-loopback-and-only-for-tests"  # noqa: S105
"""Of the role ``weir``: a server on a port is open to everybody on the machine."""
SPEED = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off"
"""Killed servers are started again from what the kernel holds; nobody pulls the plug in a test."""


SIGNAL_AT_PARENTS_DEATH = 1
"""``PR_SET_PDEATHSIG`` of Linux."""


class PartsError(Exception):
    """A part is not installed, or does not do what it should; the message says which."""


def end_with_parent() -> None:
    """What a child calls first (``preexec_fn``): it gets SIGTERM once the thread that began it is gone,
    however that ended."""
    ctypes.CDLL(None).prctl(SIGNAL_AT_PARENTS_DEATH, signal.SIGTERM)


def program(name: str) -> str | None:
    """Where a program of PostgreSQL is: on the PATH, else in the newest of Debian's folders."""
    folders = sorted(DEBIAN.glob("*/bin"), key=lambda path: int(path.parts[-2]), reverse=True)
    places = os.pathsep.join([os.environ.get("PATH", ""), *map(str, folders)])
    return shutil.which(name, path=places)


def unprivileged() -> str | None:
    """Whom root runs PostgreSQL as, which refuses to run as root itself."""
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def children_of(pid: int) -> list[int]:
    return [child.pid for child in psutil.Process(pid).children()]


@dataclass
class Postgres:
    """A server in ``folder``; on a port of loopback where there is one, else on a socket file alone."""

    folder: Path
    port: int | None = None

    @property
    def url(self) -> str:
        if self.port is None:
            return f"postgres:///{self.folder}/postgres"
        return f"postgres://weir:{PASSWORD}@127.0.0.1:{self.port}/weir"

    @property
    def dsn(self) -> str:
        """The same as libpq reads it."""
        if self.port is None:
            return f"host={self.folder} dbname=postgres"
        return self.url

    def make(self) -> None:
        user = _user()
        role = "weir" if self.port else pwd.getpwuid(os.geteuid()).pw_name
        self.folder.mkdir(parents=True, exist_ok=True)
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        if user:
            shutil.chown(self.folder, user)
            shutil.chown(secret, user)
        access = ["-A", "scram-sha-256", "--pwfile", secret] if self.port else ["-A", "trust"]
        _run("initdb", "-D", self._data, "-U", role, "--no-sync", *access)
        self.start()
        if self.port:
            environment = {**os.environ, "PGPASSWORD": PASSWORD}
            command = [program("createdb") or "createdb", "-h", "127.0.0.1", "-p", str(self.port)]
            subprocess.run([*command, "-U", "weir", "weir"], env=environment, check=True)  # noqa: S603

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def start(self) -> None:
        where = f"127.0.0.1 -p {self.port}" if self.port else "''"
        options = f"-k {self.folder} -c listen_addresses={where} {SPEED}"
        log = self.folder / "log"
        _run("pg_ctl", "-D", self._data, "-l", log, "-w", "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        _run("pg_ctl", "-D", self._data, "-m", mode, "-w", "stop")

    def kill(self) -> None:
        """SIGKILL to the postmaster and to all that it has started, as when a container goes."""
        first = int((self._data / "postmaster.pid").read_text().split()[0])
        pids = [first, *children_of(first)]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + 10
        while any(Path(f"/proc/{pid}").exists() for pid in pids):
            if time.monotonic() > until:
                raise PartsError("PostgreSQL outlives SIGKILL.")
            time.sleep(0.05)


@dataclass
class Redis:
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603 - Debian's own
                command, cwd=self.folder, stdout=log, stderr=log
            )
        client, until = redis.Redis(port=self.port), time.monotonic() + 10
        while True:
            try:
                client.ping()
                return
            except redis.ConnectionError:
                if time.monotonic() > until:
                    raise PartsError((self.folder / "log").read_text()) from None
                time.sleep(0.05)

    def flush(self) -> None:
        redis.Redis(port=self.port).flushall()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@contextmanager
def postgres(port: int | None = None) -> Iterator[Postgres]:
    """Thrown away afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="weir-pg-"))
    server = Postgres(folder, port)
    try:
        server.make()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def redis_server() -> Iterator[Redis]:
    folder = Path(tempfile.mkdtemp(prefix="weir-redis-"))
    server = Redis(folder, free_port())
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _user() -> str | None:
    return None if os.geteuid() else unprivileged()


def _run(name: str, *arguments: object) -> None:
    found = program(name)
    if found is None:
        raise PartsError(f"{name} is missing: `make services` installs PostgreSQL and Redis.")
    subprocess.run(  # noqa: S603 - Debian's own
        [found, *map(str, arguments)],
        user=_user(), cwd="/", check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
