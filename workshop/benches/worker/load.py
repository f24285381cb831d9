"""A crowd with personas at a large organisation's portal: errors, percentiles, memory over time, streams."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from django.conf import settings

from workshop.benches.engine.outcomes import Outcome, Progress
from workshop.benches.worker.large import Portal, large_portal

LOCUST = settings.BASE_DIR / ".venv-load" / "bin" / "locust"
PLANS_EVERY_S = 5.0
"""So often every live page is told of a new plan."""
RAMP_S = 30
LONGER_S = 60.0
"""Than it was to stay; then it is sent away."""
SETTLED_PART = 0.5
"""Memory is compared from here on: caches fill before."""


class NoLocustError(Exception):
    """Locust is not installed, or did not end as it should."""


@dataclass(slots=True)
class LoadWatch:
    """The web processes while the crowd is there: (second, MiB, CPU seconds so far)."""

    rows: list[tuple[float, float, float]] = field(default_factory=list)

    def growth_mib_per_hour(self) -> float:
        """The slope of a line through the memory once caches are full."""
        rows = np.array(self.rows[int(len(self.rows) * SETTLED_PART) :])
        if len(rows) < 3:
            return 0.0
        return float(np.polyfit(rows[:, 0] / 3600, rows[:, 1], 1)[0])

    def cores(self) -> float:
        first, last = self.rows[0], self.rows[-1]
        return (last[2] - first[2]) / max(1.0, last[0] - first[0])


def run_load(people: int, minutes: float, progress: Progress) -> Outcome:
    """``people`` at once for ``minutes``. Raises NoLocustError, NoPortalError, PartsError."""
    if not LOCUST.exists():
        raise NoLocustError("Locust is not installed: `make load` does that first.")
    with tempfile.TemporaryDirectory() as folder, large_portal(progress, people) as portal:
        known = Path(folder) / "people.json"
        known.write_text(json.dumps([vars(person) for person in portal.people]))
        progress(f"{people} people come within {RAMP_S} s and stay for {minutes:g} min")
        requests, watched = _play(portal, known, people, minutes)
    return Outcome(_figures(requests, watched, people), notes=_notes(requests))


def _play(
    portal: Portal, known: Path, people: int, minutes: float
) -> tuple[list[dict[str, Any]], LoadWatch]:
    command = [
        str(LOCUST), "-f", str(settings.BASE_DIR / "workshop/load/locustfile.py"), "--headless", "--json",
        "--host", portal.base, "-u", str(people), "-r", str(max(1, people // RAMP_S)),
        "-t", f"{round(60 * minutes)}s", "--stop-timeout", "5", "--loglevel", "ERROR",
    ]  # fmt: skip
    environment = {**os.environ, "WEIR_LOAD_PEOPLE": str(known)}
    process = subprocess.Popen(  # noqa: S603 - ourselves
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    watched = _watch(portal, process, 60 * minutes + LONGER_S)
    process.terminate()
    out, err = process.communicate()
    try:
        return json.loads(out[out.index("[") :]), watched
    except ValueError:
        raise NoLocustError(f"Locust said: {err.strip()[-400:] or out[-400:]}") from None


def _watch(portal: Portal, process: subprocess.Popen[str], most_s: float) -> LoadWatch:
    """Until the crowd has gone, ``most_s`` at most; meanwhile the cluster is planned anew as by an engine."""
    watched, began = LoadWatch(), time.monotonic()
    with psycopg.connect(portal.database, autocommit=True) as database:
        while process.poll() is None and time.monotonic() < began + most_s:
            database.execute(
                "UPDATE scheduling_cluster SET revision = revision + 1, planned_at = now()"
            )
            row = (time.monotonic() - began, portal.memory_mib(), portal.cpu_s())
            watched.rows.append(row)
            time.sleep(PLANS_EVERY_S)
    return watched


def _figures(
    requests: Sequence[dict[str, Any]], watched: LoadWatch, people: int
) -> dict[str, float]:
    pages = [row for row in requests if row["name"] != "live stream"]
    times = {float(ms): 0 for row in pages for ms in row["response_times"]}
    for row in pages:
        for ms, count in row["response_times"].items():
            times[float(ms)] += count
    each = np.repeat(np.array(sorted(times)), [times[ms] for ms in sorted(times)])
    p50, p95, p99 = np.percentile(each if len(each) else [0.0], (50, 95, 99))
    streams = [row for row in requests if row["name"] == "live stream"]
    return {
        "people": people,
        "pages": sum(row["num_requests"] for row in pages),
        "errors": sum(row["num_failures"] for row in requests),
        "p50_ms": float(p50),
        "p95_ms": float(p95),
        "p99_ms": float(p99),
        "streams_opened": sum(row["num_requests"] for row in streams),
        "web_mib_first": round(watched.rows[0][1]),
        "web_mib_last": round(watched.rows[-1][1]),
        "web_mib_growth_per_hour": round(watched.growth_mib_per_hour(), 1),
        "web_cores": round(watched.cores(), 2),
    }


def _notes(requests: Sequence[dict[str, Any]]) -> list[str]:
    rows = sorted(requests, key=lambda row: -row["total_response_time"])
    return [
        f"{row['name']}: {row['num_requests']} times, {row['num_failures']} errors, mean "
        f"{row['total_response_time'] / max(1, row['num_requests']):.0f} ms"
        for row in rows
    ]
