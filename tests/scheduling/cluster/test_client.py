"""Raw JSON over HTTP: what is tried again, what is raised, and in whose name."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduling.cluster.connection import client as module
from scheduling.cluster.connection.client import (
    Client,
    ConflictError,
    InvalidError,
    NotFoundError,
    Person,
    UnreachableError,
    configuration_of,
    error_of,
    retry_after,
)
from scheduling.models import Cluster

MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


class Scripted(ThreadingHTTPServer):
    """Answers with a list of (status, headers), then 200; remembers the headers it was sent."""

    def __init__(self, answers: list[tuple[int, dict[str, str]]]) -> None:
        self.answers = answers
        self.heard: list[dict[str, str]] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Scripted

    def do_GET(self) -> None:
        self.server.heard.append(
            {k.lower(): ", ".join(self.headers.get_all(k) or []) for k in self.headers}
        )
        status, headers = self.server.answers.pop(0) if self.server.answers else (200, {})
        body = json.dumps({"kind": "Status", "code": status}).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    server = Scripted([])
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    taken: list[float] = []
    monkeypatch.setattr(Client, "_rest", lambda self, seconds: taken.append(seconds))
    return taken


def connect(url: str, **fields: str) -> Client:
    return Client(configuration_of(Cluster(name="c", api_url=url, **fields)))


def test_stale_write_is_a_conflict(client: Client) -> None:
    made = client.create(MAPS, config_map("a", x="1"))
    client.patch(f"{MAPS}/a", {"data": {"x": "2"}})

    stale = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}}
    with pytest.raises(ConflictError):
        client.patch(f"{MAPS}/a", {**stale, "data": {"x": "3"}})


def test_absent_object_is_not_found(client: Client) -> None:
    with pytest.raises(NotFoundError):
        client.get(f"{MAPS}/nowhere")


def test_refused_object_names_the_field(client: Client) -> None:
    with pytest.raises(InvalidError) as refused:
        client.create(MAPS, config_map("Not A Name"))

    assert refused.value.causes[0][0] == "metadata.name"


def test_server_fault_is_tried_again_with_growing_waits(
    scripted: Scripted, naps: list[float]
) -> None:
    scripted.answers = [(500, {}), (503, {}), (502, {})]

    assert connect(scripted.url).get("/x")["code"] == 200
    assert naps == sorted(naps)
    assert len(naps) == 3


def test_too_many_requests_waits_as_long_as_asked(scripted: Scripted, naps: list[float]) -> None:
    scripted.answers = [(429, {"Retry-After": "3"})]

    connect(scripted.url).get("/x")

    assert naps == [3.0]


def test_refusal_is_not_tried_again(scripted: Scripted, naps: list[float]) -> None:
    scripted.answers = [(403, {})]

    with pytest.raises(module.ApiError, match="403"):
        connect(scripted.url).get("/x")

    assert naps == []


def test_dead_server_is_unreachable_after_every_try(naps: list[float]) -> None:
    with pytest.raises(UnreachableError):
        connect("http://127.0.0.1:9").get("/x")

    assert len(naps) == module.TRIES - 1


def test_token_file_is_read_again_for_each_request(scripted: Scripted, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    client = connect(scripted.url, token_file=str(token))
    client.get("/x")
    token.write_text("second\n")
    client.get("/x")

    assert [h["authorization"] for h in scripted.heard] == ["Bearer first", "Bearer second"]


def test_kubeconfig_and_context_choose_server_and_token(scripted: Scripted, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "other",
                "clusters": [
                    {"name": "here", "cluster": {"server": scripted.url}},
                    {"name": "other", "cluster": {"server": "http://127.0.0.1:9"}},
                ],
                "users": [{"name": "me", "user": {"token": "t0ken"}}],
                "contexts": [
                    {"name": "mine", "context": {"cluster": "here", "user": "me"}},
                    {"name": "other", "context": {"cluster": "other", "user": "me"}},
                ],
            }
        )
    )

    Client(configuration_of(Cluster(kubeconfig=str(path), context="mine"))).get("/x")

    assert scripted.heard[0]["authorization"] == "Bearer t0ken"


def test_act_in_a_persons_name_is_impersonated(scripted: Scripted) -> None:
    person = Person("ann", ("lab", "everybody"))
    connect(scripted.url).request("GET", "/x", as_person=person)

    heard = scripted.heard[0]
    assert heard["impersonate-user"] == "ann"
    assert heard["impersonate-group"] == "lab, everybody"


def test_retry_after_reads_seconds_dates_and_nonsense() -> None:
    assert retry_after("2.5") == 2.5
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0
    assert retry_after("soon") == 0.0
    assert retry_after(None) == 0.0


def test_answer_that_is_no_json_still_becomes_an_error() -> None:
    error = error_of(502, b"<html>bad gateway</html>")

    assert (error.status, error.message) == (502, "<html>bad gateway</html>")
