"""A crowd before a server of one page."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
import requests

from workshop.benches.worker.crowd import Visits, crowd, sign_in


class Site(BaseHTTPRequestHandler):
    """Signs in who sends the token of the form with the password; its page fails at every third visit."""

    visits = 0
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/sign-in/":
            self._answer(200, b'<form><input type="hidden" name="token" value="t1"></form>')
            return
        Site.visits += 1
        self._answer(200 if Site.visits % 3 else 500, b"page")

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(302 if sent == b"token=t1&username=ann&password=right" else 403, b"")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Tests have an output of their own."""


@pytest.fixture
def base() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_visit_counts_every_answer_and_names_what_failed(base: str) -> None:
    with crowd(base, 3 * [("ann", "right")]) as people:
        visits = people.visit("/", 0.2)

    assert len(visits.seconds) == Site.visits
    assert visits.errors == ["500"] * (Site.visits // 3)


def test_person_who_cannot_sign_in_ends_the_crowd(base: str) -> None:
    with pytest.raises(requests.RequestException, match="ann could not sign in: 403"):
        sign_in(base, "ann", "wrong")


def test_figures_are_milliseconds_and_answers_a_second() -> None:
    figures = Visits([0.1] * 9 + [1.0], ["500"]).figures("page", 5.0)

    assert figures["page_p50_ms"] == 100
    assert figures["page_p99_ms"] == pytest.approx(919)
    assert figures["page_per_s"] == 2
    assert figures["page_errors"] == 1
