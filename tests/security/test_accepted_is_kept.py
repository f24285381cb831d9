"""What was answered with success is on disk; what cannot be is refused, and nothing of it happened."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.db import OperationalError
from django.test import Client as Browser

from portal.boundary.answers import of_database
from scheduling.cluster.connection.client import ApiError, Client, NotFoundError, configuration_of
from scheduling.models import Cluster
from scheduling.services.clusters import connection
from scheduling.services.errors import ServiceError
from workshop.demo.work import feed
from workshop.demo.work.arrivals import Arrival
from workshop.testbed.server import EmbeddedServer

MAPS = "/api/v1/namespaces/default/configmaps"
FULL = OperationalError("database or disk is full")
LOCKED = OperationalError("database is locked")


def connect(server: EmbeddedServer) -> Client:
    return Client(configuration_of(Cluster(name="test", api_url=server.url)))


def config_map(name: str, size: int = 1) -> dict[str, object]:
    return {"metadata": {"name": name}, "data": {"text": "x" * size}}


def names(path: Path) -> set[str]:
    """Of the config maps that a process started now would find."""
    with sqlite3.connect(path) as database:
        rows = database.execute("SELECT name FROM objects WHERE plural = 'configmaps'")
        return {name for (name,) in rows}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite3"


@pytest.fixture
def server(path: Path) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(path=path) as started:
        yield started


def fill(server: EmbeddedServer, *, is_full: bool) -> None:
    """SQLite's own bound on its pages answers as a full disk does."""
    assert server._journal
    database = server._journal._database
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {pages if is_full else 1 << 30}")


def test_created_object_is_in_the_file_when_the_answer_comes(
    server: EmbeddedServer, path: Path
) -> None:
    connect(server).create(MAPS, config_map("kept"))

    assert "kept" in names(path)


def test_removed_object_has_left_the_file_when_the_answer_comes(
    server: EmbeddedServer, path: Path
) -> None:
    client = connect(server)
    client.create(MAPS, config_map("gone"))
    client.request("DELETE", f"{MAPS}/gone")

    assert "gone" not in names(path)


def test_write_to_a_full_disk_is_refused_and_leaves_nothing(server: EmbeddedServer) -> None:
    client = connect(server)
    client.create(MAPS, config_map("small"))
    fill(server, is_full=True)
    with pytest.raises(ApiError) as refused:
        client.create(MAPS, config_map("large", 100_000))
    with pytest.raises(ApiError):
        client.patch(f"{MAPS}/small", {"data": {"text": "y" * 100_000}})

    assert refused.value.status == 507
    assert client.get(f"{MAPS}/small")["data"] == {"text": "x"}
    with pytest.raises(NotFoundError):
        client.get(f"{MAPS}/large")


def test_writes_go_on_once_there_is_room(server: EmbeddedServer, path: Path) -> None:
    client = connect(server)
    fill(server, is_full=True)
    with pytest.raises(ApiError):
        client.create(MAPS, config_map("large", 100_000))
    fill(server, is_full=False)
    client.create(MAPS, config_map("large", 100_000))

    assert "large" in names(path)


def test_write_to_a_locked_file_is_refused_as_busy(server: EmbeddedServer, path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(ApiError) as refused:
        connect(server).request("POST", MAPS, body=config_map("late"), tries=1)
    other.execute("ROLLBACK")
    other.close()

    assert refused.value.status == 503
    assert "late" not in names(path)


@pytest.mark.parametrize(("status", "code"), [(507, "no_space"), (503, "no_answer")])
def test_cluster_that_cannot_write_is_no_fault_of_the_manifest(
    monkeypatch: pytest.MonkeyPatch, status: int, code: str
) -> None:
    monkeypatch.setattr(connection, "_clients", {})
    monkeypatch.setattr(connection.Client, "connect", lambda cluster: object())
    with (
        pytest.raises(ServiceError) as refused,
        connection.talking_to(Cluster(name="far", api_url="http://127.0.0.1:9")),
    ):
        raise ApiError(status, "", "no room")

    assert refused.value.code == code


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("error", "status", "code"), [(FULL, 507, "no_space"), (LOCKED, 503, "no_database")]
)
@pytest.mark.parametrize("address", ["/", "/api/v1/me"])
def test_database_that_fails_is_named_by_page_and_api(
    monkeypatch: pytest.MonkeyPatch, address: str, error: OperationalError, status: int, code: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("portal.teams.rights.RightsMiddleware.__call__", fail)
    answer = Browser(raise_request_exception=False).get(address)

    assert answer.status_code == status
    expected = code if address.startswith("/api/") else of_database(error).sentence
    assert expected in answer.content.decode().replace("&#x27;", "'")


def arrival(number: int) -> Arrival:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Arrival(number=number, at=at, user="ada", manifest={})


class Played:
    """A cluster whose time has come, whose database fails as often as there are ``errors``."""

    def __init__(self, errors: list[Exception]) -> None:
        self.cluster = Cluster(name="demo")
        self.clock = SimpleNamespace(real_delay=lambda at: 0.0)
        self.errors = errors
        self.saved = threading.Event()

    def save_clock(self) -> None:
        if self.errors:
            raise self.errors.pop()
        self.saved.set()


def test_clock_of_the_demo_outlives_a_locked_database(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(feed, "SAVE_CLOCK_S", 0.01)
    monkeypatch.setattr(feed, "close_old_connections", lambda: None)
    played = Played([LOCKED])
    stream = feed.Stream(played, iter(()), tmp_path / "position")
    stream.start()
    is_saved = played.saved.wait(60)
    stream.stop()

    assert is_saved


def test_arrival_refused_for_want_of_room_is_sent_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answers: list[Exception | None] = [
        None, ServiceError("no_space", "full", "wait"), LOCKED, ServiceError("invalid", "bad", "mend"),
    ]  # fmt: skip

    def submit(*_: object, **__: object) -> None:
        if answer := answers.pop():
            raise answer

    monkeypatch.setattr(feed, "AGAIN_S", 0.01)
    monkeypatch.setattr(feed.workloads, "submit", submit)
    monkeypatch.setattr(feed, "close_old_connections", lambda: None)
    position = tmp_path / "position"
    stream = feed.Stream(Played([]), iter([arrival(0), arrival(1)]), position)
    stream.start()
    until = time.monotonic() + 60
    while answers and time.monotonic() < until:
        time.sleep(0.01)
    stream.stop()

    assert not answers
    assert feed.next_position(position) == 2
