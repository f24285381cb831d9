"""What is read from a connection, and when one is used again."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
import urllib3

from scheduling.cluster.connection.wire import BrokenError, Wire
from tests.scheduling.kube import eventually

OK = b"HTTP/1.1 200 OK\r\n"
EMPTY = OK + b"Content-Length: 0\r\n\r\n"


@dataclass
class Peer:
    """Answers each request with the next of ``answers`` as they stand, and hangs up after the last, or
    after each one."""

    answers: list[bytes] = field(default_factory=list)
    heard: list[bytes] = field(default_factory=list)
    hangs_up: bool = False
    connections: int = 0

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                taken, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=[taken], daemon=True).start()

    def _serve(self, taken: socket.socket) -> None:
        with taken:
            while data := taken.recv(65536):
                self.heard.append(data)
                taken.sendall(self.answers.pop(0))
                if self.hangs_up or not self.answers:
                    return


@pytest.fixture
def peer() -> Iterator[Peer]:
    made = Peer()
    yield made
    made.close()


@pytest.fixture
def wire(peer: Peer) -> Wire:
    return Wire(urllib3.PoolManager(), peer.url, keep=2)


def get(wire: Wire, target: str = "/x", **headers: str) -> bytes:
    return wire.ask("GET", target, headers.items(), None, 5.0).data


@pytest.mark.parametrize(
    ("answer", "data"),
    [
        (OK + b"Content-Length: 2\r\n\r\n{}", b"{}"),
        (OK + b"content-length:2\r\n\r\n{}", b"{}"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1;a=b\r\n}\r\n0\r\n\r\n", b"{}"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
    ids=["length", "lower case", "chunked", "no body"],
)
def test_body_is_read_to_its_end(peer: Peer, wire: Wire, answer: bytes, data: bytes) -> None:
    peer.answers = [answer]
    assert get(wire) == data


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        OK + b"Content-Length: 9\r\n\r\n{}",
        OK + b"Transfer-Encoding: chunked\r\n\r\nwhat\r\n",
        OK + b"X: y\r\n\r\n{}",
    ],
    ids=["silence", "half a line", "another protocol", "half a body", "no chunk", "no length"],
)
def test_answer_that_is_not_whole_is_an_error(peer: Peer, wire: Wire, answer: bytes) -> None:
    peer.answers = [answer]
    with pytest.raises(BrokenError):
        get(wire)


def test_connection_is_kept_for_the_next_request(peer: Peer, wire: Wire) -> None:
    peer.answers = [EMPTY, EMPTY]
    get(wire)
    get(wire)
    assert peer.connections == 1


@pytest.mark.parametrize(
    "last",
    [
        b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        OK + b"Content-Length: 0\r\nConnection: close\r\n\r\n",
    ],
)
def test_connection_is_not_kept_when_the_server_will_close_it(
    peer: Peer, wire: Wire, last: bytes
) -> None:
    peer.answers = [last, EMPTY]
    get(wire)
    get(wire)
    assert peer.connections == 2


def test_connection_on_which_more_was_said_than_asked_is_not_used_again(
    peer: Peer, wire: Wire
) -> None:
    peer.answers = [EMPTY + EMPTY, EMPTY]
    get(wire)
    get(wire)
    assert peer.connections == 2


def test_answer_begins_where_the_interim_ones_end(peer: Peer, wire: Wire) -> None:
    peer.answers = [
        b"HTTP/1.1 103 Early Hints\r\nLink: </y>\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\n{}"
    ]
    assert get(wire) == b"{}"


def test_connection_that_was_closed_without_a_word_is_not_used_again(
    peer: Peer, wire: Wire
) -> None:
    peer.hangs_up = True
    peer.answers = [EMPTY, EMPTY]
    get(wire)
    eventually(lambda: not wire._idle[0].is_usable)
    get(wire)
    assert peer.connections == 2


def test_lines_come_whole_however_they_were_cut(peer: Peer, wire: Wire) -> None:
    chunks = b"3\r\n1\n2\r\n4\r\n2\n\n3\r\n1\r\n\n\r\n0\r\n\r\n"
    peer.answers = [OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunks]
    stream = wire.open("/x", [], 5.0)
    assert list(stream.lines()) == [b"1", b"22", b"3"]
    stream.close()


def test_nothing_in_a_target_or_header_begins_another_line(peer: Peer, wire: Wire) -> None:
    peer.answers = [EMPTY]
    get(wire, "/a b\r\nX: y")
    assert peer.heard[0].startswith(b"GET /a%20b%0D%0AX:%20y HTTP/1.1\r\n")
    with pytest.raises(ValueError, match="Invalid header"):
        get(wire, name="a\r\nX: y")
