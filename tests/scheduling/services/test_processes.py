"""Processes write down that they live; who falls silent is told, unless another took the place."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import pytest
from django.db import DatabaseError
from django.utils import timezone

from scheduling.models import Process, Role
from scheduling.services.worker import hearts
from scheduling.services.worker.processes import LOST_S, Heart, missing, standings
from tests.scheduling.embedded import embedded_worker

pytestmark = pytest.mark.django_db


def row(role: Role, name: str, *, silent_s: float = 0, age_s: float = 3600) -> Process:
    now = timezone.now()
    return Process.objects.create(
        role=role, name=name, host=name.partition(":")[0],
        began_at=now - timedelta(seconds=age_s), seen_at=now - timedelta(seconds=silent_s),
    )  # fmt: skip


def names(now: datetime | None = None) -> list[tuple[str, bool]]:
    return [(one.process.name, one.alive) for one in standings(now)]


def test_beat_writes_the_process_down_and_then_only_its_time() -> None:
    heart = Heart(Role.ENGINE, lambda: {"fra1": {"lag_s": 0.3}})
    heart.beat()
    first = Process.objects.get()
    heart.beat()
    again = Process.objects.get()
    assert again.pk == first.pk
    assert again.seen_at > first.seen_at
    assert again.held == {"fra1": {"lag_s": 0.3}}


def test_process_that_falls_silent_is_told(db: None) -> None:
    row(Role.ENGINE, "a:1", silent_s=LOST_S + 1)
    assert names() == [("a:1", False)]
    assert Role.ENGINE in missing(standings())


def test_process_between_two_beats_lives(db: None) -> None:
    row(Role.ENGINE, "a:1", silent_s=LOST_S - 10)
    assert names() == [("a:1", True)]
    assert Role.ENGINE not in missing(standings())


def test_silent_process_that_was_replaced_is_no_news(db: None) -> None:
    row(Role.ENGINE, "a:1", silent_s=120)
    row(Role.ENGINE, "a:2", age_s=60)
    assert names() == [("a:2", True)]


def test_silent_process_beside_an_older_one_is_told(db: None) -> None:
    row(Role.WEB, "a:1")
    row(Role.WEB, "b:1", silent_s=120, age_s=600)
    assert names() == [("a:1", True), ("b:1", False)]


def test_new_process_drops_what_was_not_heard_of_for_a_day(db: None) -> None:
    row(Role.WEB, "old:1", silent_s=25 * 3600)
    Heart(Role.BEAT).beat()
    assert [process.role for process in Process.objects.all()] == [Role.BEAT]


def test_process_that_ends_as_it_should_leaves_no_row(db: None) -> None:
    heart = Heart(Role.WEB)
    heart.beat()
    heart.leave()
    assert not Process.objects.exists()


def test_database_that_is_away_ends_no_heart(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def gone(self: Heart) -> None:
        raise DatabaseError("gone")

    monkeypatch.setattr(Heart, "beat", gone)
    heart = Heart(Role.WEB).start()
    time.sleep(0.2)
    assert heart._thread.is_alive()
    heart.stop()
    assert "gone" in caplog.text


@pytest.mark.parametrize(("queues", "roles"), [
    (["celery"], [Role.WORKER]),
    (["studies"], [Role.STUDY]),
    (["clusters"], [Role.ENGINE]),
    (["cluster-fra1"], [Role.ENGINE]),
    (["celery", "clusters", "cluster-fra1"], [Role.ENGINE, Role.WORKER]),
])  # fmt: skip
def test_worker_is_what_its_queues_say(queues: list[str], roles: list[Role]) -> None:
    assert hearts.roles_of(queues) == roles


@pytest.mark.django_db(transaction=True)
def test_embedded_worker_lives_in_four_roles_until_it_stops() -> None:
    with embedded_worker():
        until = time.monotonic() + 60
        while Process.objects.count() < 4 and time.monotonic() < until:
            time.sleep(0.1)
        roles = set(Process.objects.values_list("role", flat=True))
        assert roles == {"engine", "worker", "study", "beat"}
    assert not Process.objects.exists()
