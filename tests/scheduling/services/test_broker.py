"""The broker in memory wakes who waits for a message."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from kombu import Connection, Consumer, Exchange, Queue

from scheduling.services.worker import broker

QUEUE = Queue("test-broker", Exchange("test-broker"), routing_key="test-broker")


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    monkeypatch.setattr(broker, "LOOK_EVERY_S", 60.0)
    with Connection(
        "memory://localhost/", transport="scheduling.services.worker.broker:Transport"
    ) as made:
        yield made
        QUEUE(made).delete()


def send(connection: Connection, *bodies: str) -> None:
    for body in bodies:
        connection.SimpleQueue(QUEUE).put(body)


def test_message_wakes_a_consumer_that_waits(connection: Connection) -> None:
    heard: list[str] = []
    with Consumer(connection, [QUEUE], callbacks=[lambda body, _: heard.append(body)], no_ack=True):
        later = threading.Timer(0.05, send, (connection, "first"))
        later.start()
        connection.drain_events(timeout=30)
        later.join()

    assert heard == ["first"]


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
