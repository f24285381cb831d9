"""The broker in a folder wakes who waits for a message, also in another process, and loses none."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from kombu import Connection, Consumer, Exchange, Queue

from scheduling.services.worker import broker

QUEUE = Queue("test-broker", Exchange("test-broker"), routing_key="test-broker")
TRANSPORT = "scheduling.services.worker.broker:Transport"


def connected(folder: Path) -> Connection:
    options = {"folder": str(folder)}
    return Connection("folder://localhost/", transport=TRANSPORT, transport_options=options)


@pytest.fixture
def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    monkeypatch.setattr(broker, "LOOK_EVERY_S", 60.0)
    with connected(tmp_path) as made:
        yield made


def send(connection: Connection, *bodies: str) -> None:
    for body in bodies:
        connection.SimpleQueue(QUEUE).put(body)


def test_message_wakes_a_consumer_that_waits(connection: Connection) -> None:
    heard: list[str] = []
    with Consumer(connection, [QUEUE], callbacks=[lambda body, _: heard.append(body)]):
        later = threading.Timer(0.05, send, (connection, "first"))
        later.start()
        connection.drain_events(timeout=30)
        later.join()

    assert heard == ["first"]


SENDER = f"""
import sys
from pathlib import Path
from kombu import Connection, Exchange, Queue
from scheduling.services.worker.broker import Transport
queue = Queue("test-broker", Exchange("test-broker"), routing_key="test-broker")
options = {{"folder": sys.argv[1]}}
with Connection("folder://localhost/", transport="{TRANSPORT}", transport_options=options) as made:
    made.SimpleQueue(queue).put("from afar")
"""


def test_message_of_another_process_wakes_a_consumer_that_waits(
    connection: Connection, tmp_path: Path
) -> None:
    heard: list[str] = []
    with Consumer(connection, [QUEUE], callbacks=[lambda body, _: heard.append(body)]):
        sender = subprocess.Popen([sys.executable, "-c", SENDER, str(tmp_path)])
        connection.drain_events(timeout=50)
        assert sender.wait(30) == 0

    assert heard == ["from afar"]


def test_answer_to_a_message_wakes_a_consumer_that_may_have_one_at_a_time(
    connection: Connection,
) -> None:
    heard: list[str] = []

    def hear(body: str, message: object) -> None:
        heard.append(body)
        threading.Timer(0.05, message.ack).start()  # type: ignore[attr-defined] # kombu's

    send(connection, "first", "second")
    with Consumer(connection, [QUEUE], callbacks=[hear]) as consumer:
        consumer.qos(prefetch_count=1)
        connection.drain_events(timeout=30)
        connection.drain_events(timeout=30)

    assert heard == ["first", "second"]


def test_nothing_to_hear_ends_the_wait(connection: Connection) -> None:
    with Consumer(connection, [QUEUE]), pytest.raises(TimeoutError):
        connection.drain_events(timeout=0.01)


def held(folder: Path) -> list[str]:
    return [path.name for path in (folder / "test-broker").iterdir()]


def test_message_is_gone_once_it_is_answered(connection: Connection, tmp_path: Path) -> None:
    send(connection, "first")
    with Consumer(connection, [QUEUE], callbacks=[lambda _, message: message.ack()]):
        connection.drain_events(timeout=30)

    assert held(tmp_path) == []


def test_message_that_a_consumer_leaves_unanswered_waits_for_the_next(tmp_path: Path) -> None:
    with connected(tmp_path) as first:
        send(first, "first")
        with Consumer(first, [QUEUE], callbacks=[lambda *_: None]):
            first.drain_events(timeout=30)
            assert broker.waiting(tmp_path, "test-broker") == []

    assert len(broker.waiting(tmp_path, "test-broker")) == 1


def test_message_of_a_process_that_was_killed_is_given_back(
    connection: Connection, tmp_path: Path
) -> None:
    send(connection, "first")
    (name,) = held(tmp_path)
    died = subprocess.Popen([sys.executable, "-c", ""])
    died.wait()
    home = tmp_path / "test-broker"
    (home / name).rename(home / f"{name}{broker.CLAIM}{died.pid}")
    broker.give_back(tmp_path)

    assert held(tmp_path) == [name]
