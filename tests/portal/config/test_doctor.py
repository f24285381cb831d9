"""`manage.py doctor`: silent on what is well, a remedy for what is not, and an exit code."""

from __future__ import annotations

import io
from collections import namedtuple
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from kubernetes import client as official

from portal.accounts.models import User
from portal.config import doctoring
from portal.streams.models import Stream
from scheduling.cluster.connection.client import Client
from scheduling.models import Cluster, Process, Role
from scheduling.models.credentials import keep
from scheduling.services.worker import looks
from tests.scheduling.kube import node, policy
from workshop.testbed.server import EmbeddedServer

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(port=0, startup_s=0.01) as running:
        Client(official.Configuration(host=running.url)).create("/api/v1/nodes", node("n1"))
        yield running


@pytest.fixture
def cluster(server: EmbeddedServer, settings: Any) -> Cluster:
    """An installation of which nothing is wrong."""
    settings.WEIR_MAIL_HOST = ""
    settings.WEIR_STREAMS = {"audit": "https://log.example.org/in", "usage": ""}
    settings.SECRET_KEY = "kX8-2vQmZr7_LpT4wYb" * 4
    now = timezone.now()
    for role in Role:
        Process.objects.create(role=role, name="a:1", host="a", began_at=now, seen_at=now)
    User.objects.create_superuser("boss")
    made = policy("observe", server.url, "research", nominal_gpus=8)
    Cluster.objects.filter(pk=made.pk).update(name="fra1", planned_at=now)
    return Cluster.objects.get(pk=made.pk)


def examine() -> tuple[str, int]:
    """What it says, and how many things are wrong."""
    out = io.StringIO()
    try:
        call_command("doctor", stdout=out)
    except CommandError as error:
        return out.getvalue(), int(str(error).split()[0])
    return out.getvalue(), 0


def test_sound_installation_fits_a_screen_and_nothing_is_wrong(cluster: Cluster) -> None:
    told, wrong = examine()

    assert wrong == 0, told
    assert "Nothing is wrong." in told
    assert "ok    cluster fra1: It answers" in told
    assert len(told.splitlines()) <= 40


def late(cluster: Cluster) -> None:
    cluster.planned_at = timezone.now() - timedelta(hours=1)
    cluster.save()


def unreached(cluster: Cluster) -> None:
    cluster.api_url = "http://127.0.0.1:9"
    cluster.save()


def lost_key(cluster: Cluster) -> None:
    kept = keep(cluster, "metrics_token_file", "a token")
    cluster.credentials.filter(reference=kept).update(sealed="gAAAAAB-of-another-key")


def no_engine(_: Cluster) -> None:
    Process.objects.filter(role=Role.ENGINE).delete()


def in_no_pod(cluster: Cluster) -> None:
    cluster.api_url, cluster.planned_at = "", None
    cluster.save()


def not_migrated(_: Cluster) -> None:
    MigrationRecorder.Migration.objects.filter(app="alerts").latest("pk").delete()


def failing_stream(_: Cluster) -> None:
    Stream.objects.create(name="audit", fault="It answered 500.", failing_since=timezone.now())


FAULTS = {
    "plan of an hour ago": (late, "cluster fra1: It was planned last", "engine's log"),
    "cluster out of reach": (unreached, "cluster fra1: The API server does not answer", "Check address"),
    "account of a pod, asked outside": (
        in_no_pod, "cluster fra1: No connection can be made: Service host/port is not set.",
        "where the engine runs",
    ),
    "key that is gone": (lost_key, "secret key: metrics_token_file of fra1", "FALLBACKS"),
    "no engine": (no_engine, "processes: No engine worker has been heard of.", "Start it"),
    "failing stream": (
        failing_stream, "stream audit: https://log.example.org:443 takes nothing",
        "WEIR_STREAM_AUDIT",
    ),
    "migration": (not_migrated, "migrations: 1 migration is not applied", "manage.py migrate"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_told_with_a_remedy_and_fails(cluster: Cluster, name: str) -> None:
    fault, said, remedy = FAULTS[name]
    fault(cluster)

    told, wrong = examine()

    (line,) = (row for row in told.splitlines() if row.startswith("LACK") and said in row)
    rows = told.splitlines()
    assert remedy in rows[rows.index(line) + 1]
    assert wrong >= 1


def test_clusters_that_lack_the_same_are_told_of_once(cluster: Cluster) -> None:
    in_no_pod(cluster)
    for number in range(5):
        Cluster.objects.create(name=f"ams{number}", mode="observe")

    told, wrong = examine()

    assert wrong == 2, told
    assert "LACK  clusters ams0, ams1, ams2, ams3 and 2 more: It was never planned." in told


def test_database_away_is_told_and_ends_what_needs_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Away:
        vendor = "postgresql"

        def __getattr__(self, name: str) -> None:
            raise OperationalError("connection refused")

    monkeypatch.setattr(looks, "connection", Away())

    told, wrong = examine()

    assert "LACK  database: The database does not answer (OperationalError)." in told
    assert "cluster fra1" not in told
    assert wrong == 1


def test_full_disk_is_told(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")(100 << 30, 99 << 30, 1 << 30)
    monkeypatch.setattr(doctoring.shutil, "disk_usage", lambda _: usage)

    told, wrong = examine()

    assert "LACK  disk: 1.0 GiB of 100 are free" in told
    assert wrong == 1


def test_mail_server_that_refuses_is_told(cluster: Cluster, settings: Any) -> None:
    settings.WEIR_MAIL_HOST = settings.EMAIL_HOST = "127.0.0.1"
    settings.EMAIL_PORT = 9
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"

    told, wrong = examine()

    assert "LACK  mail: 127.0.0.1 takes no mail" in told
    assert wrong == 1


def test_weak_key_is_told(cluster: Cluster, settings: Any) -> None:
    settings.SECRET_KEY = "secret" * 10

    told, _ = examine()

    assert "LACK  settings: weir.E001" in told


def test_clock_of_a_database_that_is_apart_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cursor:
        def __enter__(self) -> Cursor:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def execute(self, _: str) -> None:
            pass

        def fetchone(self) -> tuple[Any]:
            return (timezone.now() - timedelta(seconds=30),)

    away = type("Postgres", (), {"vendor": "postgresql", "cursor": lambda self: Cursor()})()
    monkeypatch.setattr(doctoring, "connection", away)

    (item,) = doctoring._clock()

    assert (item.grade, item.topic) == ("missing", "clock")
    assert "30 s apart" in item.sentence
