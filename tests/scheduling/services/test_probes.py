"""/livez, /readyz and /metrics of processes: well, and with each thing away that they stand on."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.db import OperationalError
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from kombu import Connection

from scheduling.models import Cluster, ClusterMode, Role
from scheduling.services.worker import cluster_turns, hearts, looks, probes
from scheduling.services.worker.processes import Heart
from scheduling.services.worker.turns import Turn

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    looks._applied.cache_clear()
    probes._looks.forget()
    yield
    looks._applied.cache_clear()
    probes._looks.forget()


@pytest.fixture
def no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    class Away:
        vendor = "postgresql"

        def __getattr__(self, name: str) -> None:
            raise OperationalError("connection refused to db.inside.example.org")

    monkeypatch.setattr(looks, "connection", Away())


def faults() -> dict[str, str]:
    return {one.name: one.fault for one in looks.look()}


def test_ready_where_all_is_well_and_says_what_it_looked_at() -> None:
    Cluster.objects.create(name="fra1", planned_at=timezone.now())

    found = probes.ready()

    assert found.status == 200
    assert found.body.decode().split() == [
        word for name in ("database", "migrations", "broker", "plans") for word in ("ok", name)
    ]


def test_database_away_is_not_ready_but_alive(no_database: None) -> None:
    found = probes.ready()

    assert found.status == 503
    assert b"no  database does not answer (OperationalError)" in found.body
    assert b"no  migrations the database does not answer" in found.body
    assert probes.alive().status == 200
    assert b"db.inside" not in found.body, "strangers may read it"


def test_migration_that_is_not_applied_is_not_ready() -> None:
    last = MigrationRecorder.Migration.objects.filter(app="alerts").latest("pk")
    last.delete()

    assert faults()["migrations"] == "not applied: 1"
    assert probes.ready().status == 503


def test_migrations_are_looked_at_until_they_are_applied_and_not_after() -> None:
    last = MigrationRecorder.Migration.objects.filter(app="alerts").latest("pk")
    last.delete()
    assert faults()["migrations"]
    last.pk = None
    last.save()
    assert not faults()["migrations"]
    last.delete()
    assert not faults()["migrations"], "a schema is not taken back under a process that runs"


@pytest.mark.parametrize(
    ("age_s", "mode", "late"),
    [
        (looks.LATE_S + 10, ClusterMode.ENFORCE, True),
        (None, ClusterMode.OBSERVE, True),
        (looks.LATE_S - 10, ClusterMode.ENFORCE, False),
        (looks.LATE_S + 10, ClusterMode.PAUSED, False),
    ],
)
def test_old_plan_is_told_and_takes_no_portal_out_of_service(
    age_s: float | None, mode: ClusterMode, late: bool
) -> None:
    planned_at = timezone.now() - timedelta(seconds=age_s) if age_s else None
    Cluster.objects.create(name="secret-project", mode=mode, planned_at=planned_at)

    found = probes.ready()

    assert found.status == 200
    assert (b"in 1 of 1 cluster\n" in found.body) == late
    assert b"secret-project" not in found.body


def test_broker_away_is_told_within_seconds(
    settings: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.WEIR_BROKER_FOLDER = ""
    away = Connection("redis://127.0.0.1:1/0", connect_timeout=1)
    monkeypatch.setattr(
        looks, "current_app", SimpleNamespace(connection_for_write=lambda **_: away)
    )

    assert faults()["broker"].startswith("does not answer")
    assert probes.ready().status == 200


def test_many_who_ask_at_once_cost_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    remembered = probes._RecentLooks(lambda: looked.append(1) or [])
    for _ in range(20):
        remembered.get()

    assert looked == [1]


def test_heart_that_died_of_a_fault_is_not_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> dict[str, object]:
        raise RuntimeError("a fault of ours")

    heart = Heart(Role.ENGINE, fail)
    monkeypatch.setattr(hearts, "_hearts", {Role.ENGINE: heart})
    monkeypatch.setattr("threading.excepthook", lambda *_: None)
    heart.start()._thread.join(60)

    found = probes.alive()

    assert found.status == 503
    assert found.body == b"no heart beats any more in engine"


def test_heart_that_was_stopped_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    heart = Heart(Role.ENGINE)
    monkeypatch.setattr(hearts, "_hearts", {Role.ENGINE: heart})
    heart.stop()

    assert probes.alive().status == 200


class Stuck:
    """A cluster of which one cycle runs."""

    def __init__(self) -> None:
        self.name, self.turn = "fra1", Turn()


@pytest.mark.parametrize(("since_s", "status"), [(probes.STUCK_S + 1, 503), (30.0, 200)])
def test_cycle_that_never_ends_is_not_alive(
    monkeypatch: pytest.MonkeyPatch, since_s: float, status: int
) -> None:
    one = Stuck()
    one.turn.take()
    one.turn._since_s -= since_s
    monkeypatch.setattr(cluster_turns, "_turns", {1: one})

    assert probes.alive().status == status
    one.turn.give_back()
    assert cluster_turns.running_s() == {"fra1": 0.0}


@pytest.fixture
def port(settings: object) -> Iterator[int]:
    server = probes.listen(0, "127.0.0.1")
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def ask(port: int, path: str, token: str = "") -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as found:  # noqa: S310 - of our own
            return found.status, found.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.django_db(transaction=True)
def test_process_that_serves_no_pages_answers_on_its_port(port: int, settings: object) -> None:
    settings.WEIR_METRICS_TOKEN = "a token"

    assert ask(port, "/livez") == (200, "ok\n")
    assert ask(port, "/readyz")[0] == 200
    assert ask(port, "/metrics")[0] == 404
    status, text = ask(port, "/metrics", "a token")
    assert status == 200
    assert "weir_process_memory_bytes" in text
    assert ask(port, "/admin")[0] == 404


def test_port_that_is_taken_is_told_and_ends_nothing(
    port: int, settings: object, caplog: pytest.LogCaptureFixture
) -> None:
    settings.WEIR_PROBE_PORT = port

    probes.listen_if_asked()

    assert f"WEIR_PROBE_PORT {port} cannot be had" in caplog.text
