"""Two versions at once on PostgreSQL: processes of the release before on the schema of this one, reading and
writing, as while pods are exchanged.

The release before is the commit that wrote down its database for `tests/upgrade`; a clone without that commit
has no drill.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from kubernetes import client as official

from scheduling.cluster.connection.client import Client
from tests.parts.running import ROOT
from tests.parts.test_whole import manifest, within
from tests.scheduling.kube import node
from workshop.testbed.parts import Postgres, free_port, postgres
from workshop.testbed.server import EmbeddedServer

pytestmark = pytest.mark.parts
WITHIN_S = 180.0
WEB = ("uvicorn", "portal.config.asgi:application", "--host", "127.0.0.1", "--lifespan", "on")
ENGINE = ("celery", "-A", "portal.config", "worker", "--pool", "threads", "--queues", "clusters")
PAGES = ("", "/queues", "/workloads", "/nodes", "/quotas")


def git(*words: str) -> bytes:
    """Nothing where the tree is no clone."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=False).stdout


def checked_out(folder: Path) -> Path:
    """The tree of the release before."""
    (dump,) = sorted((ROOT / "tests/upgrade").glob("*.sql"))[-1:]
    found = git("log", "-1", "--format=%H", "--", str(dump.relative_to(ROOT))).decode().strip()
    named = f'version = "{dump.stem}"'
    if not found or named not in git("show", f"{found}:pyproject.toml").decode():
        pytest.skip("this clone does not have the commit of the release before")
    with tarfile.open(fileobj=io.BytesIO(git("archive", found))) as packed:
        packed.extractall(folder, filter="data")
    return folder


class Versions:
    """One database and one cluster, and the programs of two trees on them."""

    def __init__(
        self, old: Path, folder: Path, database: Postgres, cluster: EmbeddedServer
    ) -> None:
        self.old, self.folder, self.database, self.address = old, folder, database, cluster.url
        self.kube = Client(official.Configuration(host=cluster.url))
        self.port, self.token = free_port(), ""
        self.lasting: list[subprocess.Popen[bytes]] = []
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("WEIR_", "DJANGO_"))},
            "DATABASE_URL": database.url,
            "WEIR_BROKER_URL": f"folder://{folder}/broker",
            "WEIR_SECRET_KEY": secrets.token_urlsafe(50),
            "WEIR_ALLOWED_HOSTS": "127.0.0.1",
            "WEIR_TLS": "false",
            "NUMBA_DISABLE_JIT": "1",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }

    def run(self, tree: Path, *words: str) -> str:
        done = subprocess.run(
            ["python", *words], cwd=tree, env=self.environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
        return done.stdout

    def start(self, tree: Path, *words: str) -> None:
        with (self.folder / "lasting.log").open("ab") as log:
            self.lasting.append(
                subprocess.Popen(
                    words,
                    cwd=tree,
                    env=self.environment,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    def end_all(self) -> None:
        while self.lasting:
            process = self.lasting.pop()
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def answer(self, method: str, path: str, **more: Any) -> requests.Response | None:
        """What the old web server says; None while it does not answer."""
        headers = {"Authorization": f"Bearer {self.token}"}
        url = f"http://127.0.0.1:{self.port}{path}"
        try:
            return requests.request(method, url, headers=headers, timeout=30, **more)
        except requests.RequestException:
            return None

    def submit(self, name: str) -> None:
        """By the old web server; to its end by the old engine."""
        sent = {"manifest": manifest(name)}
        made = self.answer("POST", "/api/v1/clusters/test/workloads", json=sent)
        assert made is not None
        assert made.ok, made.text
        within(lambda: self.state(name) == "finished", WITHIN_S, self.log)

    def state(self, name: str) -> str:
        told = self.answer("GET", "/api/v1/clusters/test/workloads")
        rows = told.json()["results"] if told is not None and told.ok else []
        return next((row["state"] for row in rows if row["name"] == name), "")

    def is_up(self) -> bool:
        told = self.answer("GET", "/sign-in/")
        return told is not None and told.ok

    def log(self) -> str:
        return (self.folder / "lasting.log").read_text(errors="replace")[-4000:]


@pytest.fixture
def versions(tmp_path: Path) -> Iterator[Versions]:
    """The release before at work: its schema, its web server and its engine."""
    old = checked_out(tmp_path / "old")
    with postgres(free_port()) as database, EmbeddedServer(port=0, startup_s=0.01) as cluster:
        made = Versions(old, tmp_path, database, cluster)
        made.kube.create("/api/v1/nodes", node("n1"))
        made.run(old, "manage.py", "migrate", "--verbosity", "0")
        made.token = made.run(old, "tests/parts/seed.py", made.address)
        try:
            made.start(old, *WEB, "--port", str(made.port))
            made.start(old, *ENGINE)
            within(made.is_up, WITHIN_S, made.log)
            yield made
        finally:
            made.end_all()


def test_release_before_goes_on_reading_and_writing_on_the_schema_of_this_one(
    versions: Versions,
) -> None:
    versions.submit("before")

    versions.run(ROOT, "manage.py", "migrate", "--verbosity", "0")

    versions.submit("beside")
    for path in PAGES:
        told = versions.answer("GET", f"/api/v1/clusters/test{path}")
        assert told is not None
        assert told.ok, f"{path}: {told.text}"
    for fault in ("IntegrityError", "ProgrammingError"):
        assert fault not in versions.log(), versions.log()
    versions.end_all()
    told = json.loads(versions.run(ROOT, "tests/parts/afterwards.py", "cycle"))
    assert {"before", "beside"} <= set(told)
    assert "none missing" in versions.run(ROOT, "manage.py", "audit", "verify")
