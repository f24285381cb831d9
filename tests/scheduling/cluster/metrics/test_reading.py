"""Readings of GPUs, from a server that answers as Prometheus does and from some that do not."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from scheduling.cluster.metrics import MetricsError, PodUse, Prometheus, prometheus, read

SM, UTIL = "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_DEV_GPU_UTIL"
USED, FREE, POWER = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_POWER_USAGE"


def series(value: object, gpu: int = 0, **labels: str) -> dict[str, Any]:
    known = {"Hostname": "n1", "gpu": str(gpu), "namespace": "team", "pod": "train-0"}
    return {"metric": {**known, **labels}, "value": [0, str(value)]}


def vector(*found: dict[str, Any]) -> tuple[int, bytes]:
    data = {"resultType": "vector", "result": list(found)}
    return 200, json.dumps({"status": "success", "data": data}).encode()


@contextmanager
def serving(
    answers: Mapping[str, tuple[int, bytes]], tokens: list[str] | None = None
) -> Iterator[str]:
    """A server that has these metrics, and no others."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if tokens is not None:
                tokens.append(self.headers.get("Authorization", ""))
            (name,) = parse_qs(urlsplit(self.path).query)["query"]
            code, body = answers.get(name, vector())
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def look(answers: Mapping[str, tuple[int, bytes]], activity: str = "") -> dict[Any, PodUse]:
    with serving(answers) as url:
        source = Prometheus(url)
        try:
            return read(source, activity)
        finally:
            source.close()


def test_gpus_of_a_pod_are_put_together() -> None:
    found = look({
        SM: vector(series(0.9), series(0.5, gpu=1)),
        USED: vector(series(1000), series(3000, gpu=1)),
        FREE: vector(series(9000), series(7000, gpu=1)),
        POWER: vector(series(300), series(200, gpu=1)),
    })  # fmt: skip

    assert found == {("team", "train-0"): PodUse(2, pytest.approx(0.7), 2000.0, 10_000.0, 500.0)}


def test_series_of_no_pod_are_left_out() -> None:
    assert look({SM: vector(series(0.9, pod=""))}) == {}


def test_labels_that_the_scrape_renamed_go_first() -> None:
    renamed = series(
        0.9, exported_namespace="team", exported_pod="train-1", namespace="gpu-operator"
    )

    assert list(look({SM: vector(renamed)})) == [("team", "train-1")]


@pytest.mark.parametrize(
    ("answers", "activity", "expected"),
    [
        ({SM: vector(series(0.4)), UTIL: vector(series(90))}, "", 0.4),
        ({UTIL: vector(series(90))}, "", 0.9),
        ({"team:sm:avg": vector(series(0.3)), SM: vector(series(0.4))}, "team:sm:avg", 0.3),
        ({"team:sm_percent": vector(series(30))}, "team:sm_percent", 0.3),
        ({SM: vector(series(1.7))}, "", 1.0),
    ],
)
def test_first_series_of_activity_that_there_is_counts_as_a_share(
    answers: Mapping[str, tuple[int, bytes]], activity: str, expected: float
) -> None:
    (use,) = look(answers, activity).values()

    assert use.activity == pytest.approx(expected)


def test_value_that_is_no_number_is_left_out() -> None:
    assert look({SM: vector(series("NaN"))}) == {}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((500, b"oops"), "answers 500, and not as Prometheus"),
        ((200, b"[]"), "not as Prometheus"),
        ((401, b"{}"), "not as Prometheus"),
        (
            (422, b'{"status": "error", "error": "bad query", "data": {"resultType": ""}}'),
            "answers 422: bad query",
        ),
        (
            (200, b'{"status": "success", "data": {"resultType": "matrix", "result": []}}'),
            "a matrix, not a vector",
        ),
        (vector({"metric": {}, "value": [0, "many"]}), "cannot be read"),
        (vector({"metric": {}}), "cannot be read"),
    ],
)
def test_answer_that_is_no_vector_is_told(answer: tuple[int, bytes], said: str) -> None:
    with pytest.raises(MetricsError, match=said):
        look({SM: answer})


def test_server_that_is_away_is_told() -> None:
    with pytest.raises(MetricsError, match="does not answer"):
        Prometheus("http://127.0.0.1:9", timeout_s=0.2).query(SM)


def test_all_queries_share_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(prometheus, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with serving({SM: vector(series(0.5))}) as url:
        source = Prometheus(url, timeout_s=60)
        source.query(SM)
        now[0] += 61

        with pytest.raises(MetricsError, match="longer than 60 s"):
            source.query(SM)


def test_token_is_sent_as_a_bearer() -> None:
    tokens: list[str] = []
    with serving({}, tokens) as url:
        Prometheus(url, token="s3cret").query(SM)

    assert tokens == ["Bearer s3cret"]
