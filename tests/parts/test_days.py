"""Days that an installation has on PostgreSQL: back to a backup, and back to the release before.

The commands are those of docs/operations/repair.md.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from kubernetes import client as official

from scheduling.cluster.connection.client import Client
from tests.parts import afterwards, deployment, seed
from tests.parts.running import ROOT, Running
from tests.parts.test_whole import SECRET, manifest
from tests.scheduling.kube import JOBS, node
from workshop.testbed.parts import Postgres, free_port, postgres, program
from workshop.testbed.server import EmbeddedServer

pytestmark = pytest.mark.parts


class Installation:
    """Its database, its cluster, and commands in its environment."""

    def __init__(self, running: Running, database: Postgres, cluster: EmbeddedServer) -> None:
        self.running, self.database = running, database
        self.kube = Client(official.Configuration(host=cluster.url))

    def does(self, verb: str, *names: str) -> str:
        return self.running.run(["python", afterwards.__file__, verb, *names])

    def manage(self, *words: str) -> str:
        return self.running.run(["python", "manage.py", *words])

    def cycle(self) -> dict[str, str]:
        return json.loads(self.does("cycle"))

    def sql(self, text: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.database.dsn, autocommit=True) as link:
            done = link.execute(text)
            return done.fetchall() if done.description else []

    def shell(self, line: str, folder: Path) -> None:
        """A line of the manual, where its programs are."""
        programs = Path(program("pg_dump") or "pg_dump").parent
        environment = {**self.running.environment, "PATH": f"{programs}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-ec", line], cwd=folder, env=environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def work(name: str) -> dict[str, Any]:
    """A Job of somebody who may have work run in the queue."""
    made = manifest(name)
    made["metadata"].setdefault("annotations", {})["weir.dev/user"] = seed.NAME
    return made


def told(word: str) -> str:
    """The line of the manual that begins with ``word``."""
    (line,) = re.findall(
        rf"^{word} .*$", (ROOT / "docs/operations/repair.md").read_text(), re.MULTILINE
    )
    return line


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder: Path = tmp_path_factory.mktemp("days")
    with postgres(free_port()) as database, EmbeddedServer(port=0, startup_s=0.01) as cluster:
        environment = {
            **dict.fromkeys(deployment.environment(), ""),
            "DATABASE_URL": database.url,
            "WEIR_BROKER_URL": f"folder://{folder}/broker",
            "WEIR_SECRET_KEY": SECRET,
            "NUMBA_DISABLE_JIT": "1",
        }
        running = Running(folder, {k: v for k, v in environment.items() if v}, free_port())
        made = Installation(running, database, cluster)
        made.kube.create("/api/v1/nodes", node("n1"))
        made.manage("migrate", "--verbosity", "0")
        running.run(["python", seed.__file__, cluster.url])
        yield made


def test_restored_to_a_point_loses_what_people_did_since_and_heals_from_the_cluster(
    installation: Installation, tmp_path: Path
) -> None:
    made = installation
    made.kube.create(JOBS, work("before"))
    made.cycle()
    made.does("between", "research")
    digest = made.manage("audit", "verify").split("Last digest: ")[1].split()[0]
    made.shell(told("pg_dump"), tmp_path)
    made.does("between", "products")
    made.kube.create(JOBS, work("after"))
    assert set(made.cycle()) == {"before", "after"}

    made.shell(told("pg_restore"), tmp_path)
    made.manage("migrate", "--verbosity", "0")

    assert f"Last digest: {digest}" in made.manage("audit", "verify")
    assert made.sql("SELECT name FROM teams_team WHERE name IN ('research', 'products')") == [
        ("research",)
    ]
    assert made.sql("SELECT name FROM scheduling_workload") == [("before",)]
    healed = made.cycle()
    assert set(healed) == {"before", "after"}
    assert made.sql("SELECT count(*) FROM scheduling_eviction") == [(0,)], "nothing is stopped"
    made.does("between", "products")
    assert "none missing" in made.manage("audit", "verify", "--expect", digest)


def test_restored_database_refuses_changes_of_the_audit_log_as_before(
    installation: Installation, tmp_path: Path
) -> None:
    installation.shell(told("pg_dump"), tmp_path)
    installation.shell(told("pg_restore"), tmp_path)

    with pytest.raises(psycopg.errors.IntegrityConstraintViolation):
        installation.sql("DELETE FROM audit_auditentry")


def test_this_release_runs_on_the_database_of_the_one_after_it(installation: Installation) -> None:
    """As both do while pods are exchanged, and this one alone after a rollback."""
    made = installation
    made.sql("ALTER TABLE scheduling_queue ADD COLUMN later text")
    made.sql("ALTER TABLE audit_auditentry ADD COLUMN later integer NOT NULL DEFAULT 0")
    made.sql("CREATE TABLE teams_later (id bigint PRIMARY KEY)")
    made.sql(
        "INSERT INTO django_migrations (app, name, applied) VALUES ('teams', '9999_later', now())"
    )

    assert "No planned migration operations." in made.manage("migrate", "--plan")
    made.kube.create(JOBS, work("beside"))
    assert "beside" in made.cycle()
    assert "none missing" in made.manage("audit", "verify")
