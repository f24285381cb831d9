"""Probes of the web server: by any name, over plain HTTP, past sign-in; and how its answers are counted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from portal.config import probes
from scheduling.services.worker.probes import ProbeAnswer


async def page(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": int(scope["path"][1:]), "headers": []})
    await send({"type": "http.response.body", "body": b"a page"})


def ask(path: str, method: str = "GET", headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    given = [(k.lower().encode(), v.encode()) for k, v in (headers or {}).items()]
    scope = {"type": "http", "path": path, "method": method, "headers": given}
    asyncio.run(probes.probed(page)(scope, None, send))
    return sent[0]["status"], sent[1]["body"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []

    def answer(path: str, authorization: str, collectors: Any) -> ProbeAnswer:
        found.append((path, authorization))
        return ProbeAnswer(503, b"no  database")

    monkeypatch.setattr(probes, "answer", answer)
    return found


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
def test_probe_is_answered_before_the_portal(asked: list[tuple[str, str]], path: str) -> None:
    headers = {"Host": "10.1.2.3:8000", "Authorization": "Bearer t"}

    assert ask(path, headers=headers) == (503, b"no  database")
    assert asked == [(path, "Bearer t")]


def test_other_methods_and_addresses_are_the_portals(asked: list[tuple[str, str]]) -> None:
    assert ask("/200") == (200, b"a page")
    with pytest.raises(ValueError, match="livez"):
        ask("/livez", "POST")
    assert asked == []


def test_answers_are_counted_by_status_and_probes_are_not(
    asked: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = probes.Answers()
    monkeypatch.setattr(probes, "answers", counted)
    for path in ("/200", "/201", "/503", "/readyz"):
        ask(path)

    registry = CollectorRegistry()
    registry.register(counted)
    text = generate_latest(registry).decode()

    assert 'weir_http_answers_total{status="2xx"} 2.0' in text
    assert 'weir_http_answers_total{status="5xx"} 1.0' in text
    assert "weir_http_answer_seconds_count 3.0" in text


def test_server_answers_by_address_and_plain_http_where_pages_are_led_to_tls(settings: Any) -> None:
    """As a kubelet and Prometheus ask: by the pod's address, which is no allowed host."""
    from portal.config.asgi import application

    settings.SECURE_SSL_REDIRECT = True
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "path": "/livez", "method": "GET", "query_string": b"", "scheme": "http",
        "headers": [(b"host", b"10.1.2.3:8000")],
    }  # fmt: skip
    asyncio.run(application(scope, None, send))

    assert [message.get("status") for message in sent] == [200, None]
    assert sent[1]["body"] == b"ok\n"
