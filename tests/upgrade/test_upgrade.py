"""The database of the release before, brought to this version by its migrations alone."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import IntegrityError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

RELEASES = sorted(Path(__file__).parent.glob("*.sql"))
Tables = dict[str, list[str]]


@pytest.fixture(scope="module", params=RELEASES, ids=lambda path: path.stem)
def release(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, int]]:
    """The file of a database as that release left it, and how many rows each table had."""
    file = tmp_path_factory.mktemp("release") / "weir.sqlite3"
    with closing(sqlite3.connect(file)) as made:
        made.executescript(request.param.read_text(encoding="utf-8"))
        names = made.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        rows = {
            name: made.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for (name,) in names
        }
    return file, rows


@pytest.fixture(scope="module")
def upgraded(
    release: tuple[Path, dict[str, int]], django_db_setup: None, django_db_blocker: object
) -> Iterator[BaseDatabaseWrapper]:
    connections.databases["release"] = {
        **connections.databases["default"],
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(release[0]),
        "OPTIONS": {},
    }
    with django_db_blocker.unblock():  # type: ignore[attr-defined]
        call_command("migrate", database="release", verbosity=0)
        yield connections["release"]
        connections["release"].close()
    del connections["release"]
    del connections.databases["release"]


def schema(of: BaseDatabaseWrapper) -> Tables:
    """Each object of the database by its parts, in an order of their own: added columns stand last."""
    with of.cursor() as cursor:
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        return {name: sorted(_parts(sql)) for name, sql in cursor.fetchall()}


def _parts(sql: str) -> list[str]:
    """Split at the commas that stand in one pair of brackets."""
    parts, depth = [""], 0
    for sign in re.sub(r"\s+", " ", sql):
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 1:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


def test_there_is_a_release_to_come_from() -> None:
    assert RELEASES


def test_schema_is_the_one_of_a_new_database(upgraded: BaseDatabaseWrapper) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("the new database is not SQLite's")
    assert schema(upgraded) == schema(connection)


def test_every_row_of_the_release_is_read(
    upgraded: BaseDatabaseWrapper, release: tuple[Path, dict[str, int]]
) -> None:
    """All columns of this version, of as many rows as there were."""
    kept = {}
    for model in apps.get_models(include_auto_created=True):
        table = model._meta.db_table
        if model._meta.app_label not in ("contenttypes", "auth") and release[1].get(table):
            kept[table] = len(list(model._base_manager.using("release").values()))
    assert kept == {table: release[1][table] for table in kept}
    assert kept["scheduling_queue"] > 10
    assert kept["audit_auditentry"] > 0


@pytest.mark.parametrize(
    ("act", "refusal"),
    [
        ("UPDATE audit_auditentry SET actor = 'somebody'", "never changed"),
        ("DELETE FROM audit_auditentry", "never changed"),
        (
            "UPDATE scheduling_queue SET parent_id = (SELECT max(id) FROM scheduling_queue q"
            " WHERE q.parent_id = scheduling_queue.id) WHERE parent_id IS NOT NULL",
            "queue_no_cycle",
        ),
    ],
)
def test_guards_of_the_database_hold(upgraded: BaseDatabaseWrapper, act: str, refusal: str) -> None:
    with upgraded.cursor() as cursor, pytest.raises(IntegrityError, match=refusal):
        cursor.execute(act)


def test_clusters_that_were_there_share_as_before(upgraded: BaseDatabaseWrapper) -> None:
    with upgraded.cursor() as cursor:
        cursor.execute("SELECT DISTINCT sharing FROM scheduling_cluster")
        assert cursor.fetchall() == [("fair_share",)]
