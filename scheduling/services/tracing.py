"""Traces (OpenTelemetry) of requests, cycles and tasks, where the settings name an endpoint; else nothing.

Spans hold names, counts and times: nobody's name, no address as it was typed, no text of an error.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:  # 0.2 s to import, for nothing where nobody wants traces
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Tracer

Fact = str | int | float | bool
Note = Callable[[dict[str, Fact]], None]
TIMEOUT_S = 5
NS_IN_MS = 1_000_000


@contextmanager
def span(
    name: str, facts: dict[str, Fact] | None = None, *, of: str = "internal"
) -> Iterator[Note]:
    """What happens inside takes one span; the function that it gives adds what is known later. ``of`` is the
    span's kind: ``server`` where somebody waits for an answer, ``consumer`` for what a queue brought."""
    tracer = _tracer()
    if tracer is None:
        yield _unheard
        return
    from opentelemetry.trace import SpanKind, StatusCode

    # An exception's text may name a person.
    with tracer.start_as_current_span(
        name, kind=SpanKind[of.upper()], attributes=facts, record_exception=False,
        set_status_on_exception=False,
    ) as one:  # fmt: skip
        try:
            yield one.set_attributes
        except Exception as error:
            one.set_status(StatusCode.ERROR, type(error).__name__)
            raise


def phases(laps: Sequence[tuple[str, float]]) -> None:
    """Spans of phases that followed each other and end now, by name and milliseconds."""
    tracer = _tracer()
    if tracer is None:
        return
    at = time.time_ns() - int(sum(ms for _, ms in laps) * NS_IN_MS)
    for name, ms in laps:
        one = tracer.start_span(name, start_time=at)
        at += int(ms * NS_IN_MS)
        one.end(end_time=at)


def _unheard(_: dict[str, Fact]) -> None:
    pass


@cache
def _tracer() -> Tracer | None:
    return provider().get_tracer("weir") if settings.WEIR_TRACING_ENDPOINT else None


@cache
def provider() -> TracerProvider:
    """One a process, made at its first span: threads that send do not outlive a fork."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = {} if "OTEL_SERVICE_NAME" in os.environ else {"service.name": "weir"}
    made = TracerProvider(resource=Resource.create(named))
    made.add_span_processor(BatchSpanProcessor(_exporter()))
    return made


def _exporter() -> SpanExporter:
    """Headers, certificates and sampling are those of OpenTelemetry's own environment."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    endpoint = f"{settings.WEIR_TRACING_ENDPOINT}/v1/traces"
    return OTLPSpanExporter(endpoint=endpoint, timeout=TIMEOUT_S)
