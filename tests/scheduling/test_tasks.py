"""The Celery envelopes, in one process and over Redis."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import current_app
from django.conf import settings

from scheduling import tasks
from scheduling.models import Cluster
from scheduling.services.cycle.run import CycleResult
from tests.scheduling.kube import policy


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[object], str]]:
    """What was put on queues: (arguments, queue)."""
    asked: list[tuple[list[object], str]] = []
    monkeypatch.setattr(
        tasks.run_cycle,
        "apply_async",
        lambda args, queue, expires=None: asked.append((args, queue)),
    )
    monkeypatch.setattr(tasks, "_waiting", set())
    return asked


@pytest.fixture
def cluster(db: None) -> Cluster:
    return policy("enforce", "http://127.0.0.1:9", "research")


def test_burst_of_events_puts_one_cycle_on_the_queue(
    cluster: Cluster, sent: list[tuple[list[object], str]]
) -> None:
    for _ in range(5):
        tasks.ask_for_cycle(cluster.pk, "test")

    assert sent == [([cluster.pk, "event"], "cluster-test")]


def test_cycle_of_an_event_waits_as_long_as_it_takes(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other is asked for meanwhile, so one that expired would leave the event to the timer."""
    asked: list[dict[str, object]] = []
    monkeypatch.setattr(tasks, "_waiting", set())
    monkeypatch.setattr(tasks.run_cycle, "apply_async", lambda **given: asked.append(given))
    tasks.ask_for_cycle(cluster.pk, "test")

    assert [given.get("expires") for given in asked] == [None]


def test_event_during_a_cycle_asks_for_another(
    cluster: Cluster, sent: list[tuple[list[object], str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks.ask_for_cycle(cluster.pk, "test")
    monkeypatch.setattr(
        tasks.cycles, "run_cycle", lambda pk, *, trigger, on_change: (on_change(), CycleResult())[1]
    )
    tasks.run_cycle(cluster.pk, "event")

    assert len(sent) == 2


def test_cluster_that_is_gone_is_no_error(db: None) -> None:
    tasks.run_cycle(4711)


def test_guardrails_of_a_cluster_that_is_gone_or_silent_are_no_error(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*args: object, **more: object) -> None:
        raise tasks.ApiError(0, "Unreachable", "no route")

    monkeypatch.setattr(tasks, "held_of", refuse)
    tasks.guard(4711)
    tasks.guard(cluster.pk)

    assert "no route" in caplog.text


@pytest.mark.parametrize(("asks", "asked", "door"), [
    ("request_learning", "learn", "run_times"),
    ("request_studies", "look_for_studies", "adapting"),
])  # fmt: skip
def test_process_of_studies_is_not_woken_where_nothing_is_due(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, asks: str, asked: str, door: str
) -> None:
    monkeypatch.setattr(tasks.capacity, "is_due", lambda *_: False)
    sent: list[list[int]] = []
    monkeypatch.setattr(
        getattr(tasks, asked), "apply_async", lambda args, expires: sent.append(args)
    )
    for is_due in (False, True):
        monkeypatch.setattr(getattr(tasks, door), "is_due", lambda *_, due=is_due, **__: due)
        getattr(tasks, asks)()

    assert sent == [[cluster.pk]]


def test_cluster_that_does_not_answer_is_logged_and_not_raised(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*args: object, **more: object) -> CycleResult:
        raise tasks.ApiError(0, "Unreachable", "no route")

    monkeypatch.setattr(tasks.cycles, "run_cycle", refuse)
    tasks.run_cycle(cluster.pk)

    assert "no route" in caplog.text


def test_every_beat_entry_names_a_task_and_expires_before_the_next() -> None:
    current_app.loader.import_default_modules()
    for entry in settings.CELERY_BEAT_SCHEDULE.values():
        assert entry["task"] in current_app.tasks
        assert entry["options"]["expires"] <= entry["schedule"]


# One command, one process; and the same over Redis: run as programs, on a database of their own.

PROGRAM = Path(__file__).with_name("one_process.py")


def run_program(tmp_path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    database = f"sqlite:///{tmp_path / 'weir.sqlite3'}"
    return subprocess.run(
        [sys.executable, str(PROGRAM)],
        cwd=settings.BASE_DIR,
        env={**os.environ, "DATABASE_URL": database, **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_job_is_admitted_by_worker_and_beat_in_one_process(tmp_path: Path) -> None:
    done = run_program(tmp_path, WEIR_BROKER_URL=f"folder://{tmp_path / 'broker'}")

    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "admitted" in done.stdout
    assert "added meanwhile" in done.stdout


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("no redis-server on this machine (Debian: apt-get install redis-server)")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [binary, "--port", str(port), "--save", "", "--dir", str(tmp_path)],
        stdout=subprocess.DEVNULL,
    )
    until = time.monotonic() + 60
    while socket.socket().connect_ex(("127.0.0.1", port)) and time.monotonic() < until:
        time.sleep(0.05)
    yield f"redis://127.0.0.1:{port}/0"
    server.send_signal(signal.SIGTERM)
    server.wait(60)


def test_job_is_admitted_over_redis_by_one_setting(tmp_path: Path, redis_url: str) -> None:
    done = run_program(tmp_path, WEIR_BROKER_URL=redis_url)

    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "admitted" in done.stdout
    assert "added meanwhile" in done.stdout
