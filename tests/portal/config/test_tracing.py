"""Traces: off by default and then not even imported; what spans hold of requests, cycles and tasks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from django.conf import settings as real
from django.test import Client
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from portal.alerts.tasks import look
from scheduling.services import tracing
from scheduling.services.cycle import run as cycle
from scheduling.services.cycle.run import CycleResult
from tests.factories import make_cluster, make_user
from tests.sink import listening


@pytest.fixture
def exporter(settings, monkeypatch) -> Iterator[InMemorySpanExporter]:
    made = InMemorySpanExporter()
    settings.WEIR_TRACING_ENDPOINT = "http://collector.example.org:4318"
    settings.MIDDLEWARE = ["portal.config.tracing.TracingMiddleware", *real.MIDDLEWARE]
    monkeypatch.setattr(tracing, "_exporter", lambda: made)
    yield from _anew(made)


def _anew(made):
    tracing._tracer.cache_clear()
    tracing.provider.cache_clear()
    yield made
    tracing.provider().shutdown()
    tracing._tracer.cache_clear()
    tracing.provider.cache_clear()


def spans(exporter: InMemorySpanExporter) -> list[ReadableSpan]:
    tracing.provider().force_flush()
    return list(exporter.get_finished_spans())


@pytest.mark.django_db
def test_request_has_a_span_with_its_route_and_nobodys_name(exporter):
    client = Client()
    client.force_login(make_user("ada"))
    make_cluster("fra1")

    client.get("/c/fra1/workloads/?user=ada")

    (one,) = spans(exporter)
    assert one.name == "GET request"
    assert one.attributes["http.route"].startswith("c/<slug:cluster>/")
    assert one.attributes["http.response.status_code"] in (200, 404)
    assert "ada" not in one.to_json()


@pytest.mark.django_db
def test_addresses_that_no_view_answers_share_one_route(exporter):
    Client().get("/nowhere/secret-of-ada")

    (one,) = spans(exporter)
    assert one.attributes["http.route"] == "none"
    assert "secret" not in one.to_json()


def test_error_says_its_kind_and_not_its_text(exporter):
    with pytest.raises(ValueError, match="ada"), tracing.span("x"):
        raise ValueError("of ada")

    (one,) = spans(exporter)
    assert one.status.description == "ValueError"
    assert "ada" not in one.to_json()


def test_cycle_has_a_span_of_counts_over_those_of_its_phases(exporter, monkeypatch):
    def passed(cluster, link, memory, call, trigger, watch) -> CycleResult:
        watch.laps += [("Look at the cluster", 20.0), ("Decide", 30.0)]
        return CycleResult(number=7, decisions=3, written=2, failed={"a": "refused"})

    monkeypatch.setattr(cycle, "_run", passed)
    cluster = type("C", (), {"name": "fra1"})()

    cycle.run(cluster, None, None, None, "timer")

    look, decide, whole = spans(exporter)
    assert (look.name, decide.name, whole.name) == ("Look at the cluster", "Decide", "cycle")
    assert look.end_time == decide.start_time
    assert decide.end_time - decide.start_time == 30_000_000
    assert decide.parent.span_id == whole.context.span_id
    assert dict(whole.attributes) == {
        "weir.cluster": "fra1", "weir.trigger": "timer", "weir.skipped": "", "weir.cycle": 7,
        "weir.decisions": 3, "weir.written": 2, "weir.failed": 1,
    }  # fmt: skip


@pytest.mark.django_db
def test_task_that_a_worker_runs_has_a_span_of_its_name(exporter, monkeypatch):
    monkeypatch.setattr(look, "run", lambda: None)

    look.apply()

    assert [one.name for one in spans(exporter)] == ["portal.alerts.tasks.look"]


def test_spans_go_to_the_endpoint_by_http(settings):
    with listening() as sink:
        settings.WEIR_TRACING_ENDPOINT = sink.address.rstrip("/")
        for _ in _anew(None):
            with tracing.span("cycle"):
                pass
            tracing.provider().force_flush()

    ((path, *_),) = {(one[0],) for one in sink.got}
    assert path.endswith("/v1/traces")


def test_without_an_endpoint_a_span_is_nothing(settings):
    settings.WEIR_TRACING_ENDPOINT = ""
    tracing._tracer.cache_clear()

    with tracing.span("x") as note:
        note({"a": 1})
    tracing.phases([("x", 1.0)])

    assert tracing._tracer() is None


def test_portal_starts_without_what_only_settings_switch_on():
    """Traces and the directory: each takes a tenth of a second or more. (redis imports metrics by itself.)"""
    said = (
        "import django, sys; django.setup();"
        "from django.test import Client; Client(SERVER_NAME='localhost').get('/livez');"
        "late = {'opentelemetry.sdk.trace', 'opentelemetry.exporter', 'ldap3'};"
        "print(sorted(late & sys.modules.keys()))"
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "portal.config.settings"}
    done = subprocess.run(
        [sys.executable, "-c", said], cwd=real.BASE_DIR, env=environment, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"
