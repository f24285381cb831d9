"""One question about a cluster is planned at a time; a person's next one replaces the one before."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from scheduling.models import Cluster
from scheduling.services.explain import reading
from scheduling.services.explain.reading import QuestionTurn, Reading, ReplacedError


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as made:
        yield made


def waiting(turn: QuestionTurn, asker: str) -> bool:
    return asker in turn._newest


def until(condition: Any) -> None:
    for _ in range(1000):
        if condition():
            return
        threading.Event().wait(0.005)
    raise AssertionError("it did not come about")


def test_own_question_that_is_planned_gives_way_to_the_next_one(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BUSY_S", 0.02)
    turn = QuestionTurn()
    first = turn.take("ann")
    turn.check("ann", first)
    second = pool.submit(turn.take, "ann")
    until(lambda: turn._newest["ann"] is not first)
    threading.Event().wait(0.1)
    assert not second.done()
    with pytest.raises(ReplacedError):
        turn.check("ann", first)
    turn.leave("ann", first)
    turn.check("ann", second.result(10))


def test_own_question_that_waits_is_replaced_and_another_persons_is_not(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BUSY_S", 60.0)
    turn = QuestionTurn()
    bobs = turn.take("bob")
    first = pool.submit(turn.take, "ann")
    until(lambda: waiting(turn, "ann"))
    second = pool.submit(turn.take, "ann")
    with pytest.raises(ReplacedError):
        first.result(10)
    turn.check("bob", bobs)
    turn.leave("bob", bobs)
    turn.check("ann", second.result(10))


def test_who_waits_too_long_for_others_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BUSY_S", 0.02)
    turn = QuestionTurn()
    turn.take("bob")
    with pytest.raises(TimeoutError):
        turn.take("ann")
    assert not waiting(turn, "ann")


def test_questions_that_stand_by_themselves_replace_none(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BUSY_S", 60.0)
    turn = QuestionTurn()
    first = turn.take("")
    others = [pool.submit(turn.take, "") for _ in range(2)]
    turn.leave("", first)
    for _ in range(2):
        until(lambda: any(one.done() for one in others))
        done = next(one for one in others if one.done())
        others.remove(done)
        turn.leave("", done.result())


def test_who_came_first_is_planned_first(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BUSY_S", 60.0)
    turn, planned = QuestionTurn(), []

    def ask(asker: str) -> None:
        question = turn.take(asker)
        planned.append(asker)
        turn.leave(asker, question)

    first = turn.take("")
    people = ["ann", "bob", "cem", "dee"]
    asked = []
    for person in people:
        asked.append(pool.submit(ask, person))
        until(lambda person=person: waiting(turn, person))
    turn.leave("", first)
    for one in asked:
        one.result(10)

    assert planned == people


class Unread(Reading):
    """As read from a cluster without anything."""

    def __init__(self, cluster: Cluster) -> None:
        self.read_at, self.revision = time.monotonic(), cluster.revision
        self.fault, self.queue_of = None, {}


def test_reading_answers_all_who_asked_before_it_whatever_has_changed_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "Reading", Unread)
    readings, cluster = reading._Readings(), Cluster(revision=1)
    asked_at = time.monotonic()
    first = readings.get(cluster, "", asked_at)
    assert readings.get(cluster, "", time.monotonic()) is first
    cluster.revision = 2

    assert readings.get(cluster, "", asked_at) is first
    assert readings.get(cluster, "", time.monotonic()) is not first
