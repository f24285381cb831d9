"""HTTP as clients really speak it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest

from .conftest import Cluster

BODY = json.dumps({"metadata": {"name": "a"}}).encode()
PATH = "/api/v1/namespaces/default/configmaps"
HEAD = b"Host: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture
def wire(cluster: Cluster) -> Iterator[socket.socket]:
    """A bare connection."""
    with socket.create_connection(("127.0.0.1", cluster.server.port), timeout=5) as connection:
        yield connection


def _until(wire: socket.socket, mark: bytes, times: int = 1) -> bytes:
    data = b""
    while data.count(mark) < times:
        part = wire.recv(65536)
        if not part:
            break
        data += part
    return data


def test_chunked_body_is_read(wire: socket.socket) -> None:
    first, second = BODY[:7], BODY[7:]
    wire.sendall(
        b"POST %b HTTP/1.1\r\n%bTransfer-Encoding: chunked\r\n\r\n" % (PATH.encode(), HEAD)
    )
    wire.sendall(b"%x\r\n%b\r\n" % (len(first), first))
    wire.sendall(b"%x\r\n%b\r\n0\r\n\r\n" % (len(second), second))
    assert b"201 Created" in _until(wire, b"}}")


def test_body_is_invited_when_the_client_waits_for_that(wire: socket.socket) -> None:
    expect = b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(BODY)
    wire.sendall(b"POST %b HTTP/1.1\r\n%b%b" % (PATH.encode(), HEAD, expect))
    assert b"100 Continue" in _until(wire, b"\r\n\r\n")
    wire.sendall(BODY)
    assert b"201 Created" in _until(wire, b"}}")


def test_requests_sent_together_are_answered_in_order(wire: socket.socket) -> None:
    wire.sendall(b"GET /version HTTP/1.1\r\n%b\r\nGET /readyz HTTP/1.1\r\n%b\r\n" % (HEAD, HEAD))
    data = _until(wire, b"ok")
    assert data.index(b"gitVersion") < data.index(b"text/plain")


def test_request_in_pieces_is_put_together(wire: socket.socket) -> None:
    for byte in b"GET /readyz HTTP/1.1\r\n" + HEAD + b"\r\n":
        wire.sendall(bytes([byte]))
    assert b"200 OK" in _until(wire, b"ok")


def test_connection_closes_when_asked(wire: socket.socket) -> None:
    wire.sendall(b"GET /readyz HTTP/1.1\r\nConnection: close\r\n%b\r\n" % HEAD)
    assert b"Connection: close" in _until(wire, b"never")


@pytest.mark.parametrize("junk", [b"hello\r\n\r\n", b"GET\r\n\r\n", b"\x00\x01\r\n\r\n"])
def test_junk_is_refused_and_the_connection_closed(wire: socket.socket, junk: bytes) -> None:
    wire.sendall(junk)
    assert _until(wire, b"never").startswith(b"HTTP/1.1 400")


def test_body_too_large_is_refused_unread(wire: socket.socket) -> None:
    wire.sendall(b"POST %b HTTP/1.1\r\n%bContent-Length: 99999999\r\n\r\n" % (PATH.encode(), HEAD))
    assert _until(wire, b"never").startswith(b"HTTP/1.1 413")
