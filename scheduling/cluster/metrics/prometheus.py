"""Instant queries of a Prometheus server: HTTP API v1,
https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import urllib3

TIMEOUT_S = 4.0
"""Of all queries of one look together: cycles of the cluster wait behind it."""
MOST_BYTES = 64 * 1024 * 1024


class MetricsError(Exception):
    """The server does not answer, or says something else than a vector."""


@dataclass(frozen=True, slots=True)
class Series:
    labels: Mapping[str, str]
    value: float


class Prometheus:
    """``url`` is that of the server's root, ``token`` a bearer token where it wants one. All that is asked
    has to be answered within ``timeout_s`` of its making.
    """

    def __init__(self, url: str, token: str = "", timeout_s: float = TIMEOUT_S) -> None:
        self._url = f"{url.rstrip('/')}/api/v1/query"
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._pool = urllib3.PoolManager(
            num_pools=1, retries=urllib3.Retry(connect=0, read=0, redirect=0)
        )
        self._timeout_s, self._until = timeout_s, time.monotonic() + timeout_s

    def query(self, expression: str) -> list[Series]:
        """The newest value of each series; none where there is no such metric. Raises MetricsError."""
        left_s = self._until - time.monotonic()
        if left_s <= 0:
            raise MetricsError(f"Its answers take longer than {self._timeout_s:g} s.")
        try:
            answer = self._pool.request(
                "GET", self._url, fields={"query": expression}, headers=self._headers,
                preload_content=False, timeout=urllib3.Timeout(total=left_s),
            )  # fmt: skip
            body = answer.read(MOST_BYTES, decode_content=True)
            answer.release_conn()
        except urllib3.exceptions.HTTPError as error:
            raise MetricsError(f"It does not answer: {type(error).__name__}.") from error
        return _vector(answer.status, body)

    def close(self) -> None:
        self._pool.clear()


def _vector(status: int, body: bytes) -> list[Series]:
    try:
        answer: Any = json.loads(body)
        fault = str(answer["error"])[:200] if answer["status"] != "success" else ""
        data = {} if fault else answer["data"]
        kind, found = data.get("resultType"), data.get("result")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise MetricsError(f"It answers {status}, and not as Prometheus does.") from None
    if fault:
        raise MetricsError(f"It answers {status}: {fault}.")
    if kind != "vector" or not isinstance(found, list):
        raise MetricsError(f"It answers a {kind}, not a vector.")
    try:
        series = [Series(dict(one["metric"]), float(one["value"][1])) for one in found]
    except (ValueError, KeyError, TypeError, IndexError):
        raise MetricsError("It answers a vector whose series cannot be read.") from None
    return [one for one in series if math.isfinite(one.value)]
