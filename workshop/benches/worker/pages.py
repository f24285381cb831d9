"""Pages of a large organisation before 50 people who read: how long each takes, and how many queries."""

from __future__ import annotations

import random
import re
import time
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import numpy as np
import requests

from workshop.benches.engine.outcomes import Outcome, Progress
from workshop.benches.worker.large import Person, large_portal

CLIENTS = 50
SPAN_S = 60.0
WARM_S = 15.0
READS_S = 5.0
"""Mean time from one page to the next: exponential, each person for themselves."""
LIMIT_MS = 200.0
MOST_QUERIES = 25
"""Of any page; a test holds it for the example organisation."""
TIMEOUT_S = 60.0
YEAR = "from=2026-01-01"
MOST_WORDS = 200
"""Characters of what a page says that is none."""
TIMING = re.compile(r'db;dur=([\d.]+);desc="(\d+)", cpu;dur=([\d.]+)')

COMMON = ("", "work/", "queues/", "queues/{queue}/", "w/{workload}/", "workloads/")
PAGES: Mapping[str, tuple[str, ...]] = {
    "researcher": COMMON,
    "team lead": (*COMMON, "quotas/{department}/", "reports/waits", "reports/utilization"),
    "admin": (
        *COMMON, "nodes/", "reports/utilization?range=30d", "reports/longest", "reports/preemptions",
        "reports/showback", "reports/utilization?from=YEAR",
    ),
}  # fmt: skip
"""Below the cluster's address, by persona; a researcher's way is taken by most."""


@dataclass(slots=True)
class PageTimes:
    """Of one kind of page: seconds to each answer, the most queries, CPU milliseconds."""

    seconds: list[float] = field(default_factory=list)
    queries: int = 0
    cpu_ms: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """What each was that is no page: address, status, and what the answer said first."""


class Readers:
    def __init__(self, base: str, people: list[Person]) -> None:
        self.base, self.people = base, people
        self.seen: dict[str, PageTimes] = defaultdict(PageTimes)
        self._lock = Lock()

    def read(self, span_s: float) -> None:
        """Everybody reads for ``span_s``."""
        until = time.monotonic() + span_s
        with ThreadPoolExecutor(len(self.people)) as threads:
            for i, person in enumerate(self.people):
                threads.submit(self._one, person, _dice(i), until)

    def _one(self, person: Person, dice: random.Random, until: float) -> None:
        session = requests.Session()
        session.cookies.set(person.cookie, person.value)
        time.sleep(dice.uniform(0, READS_S))
        while time.monotonic() < until:
            self._page(session, person, dice.choice(PAGES[person.persona]))
            time.sleep(min(dice.expovariate(1 / READS_S), max(0.0, until - time.monotonic())))

    def _page(self, session: requests.Session, person: Person, page: str) -> None:
        address = person.address(page.replace("from=YEAR", YEAR))
        began = time.monotonic()
        try:
            answer = session.get(f"{self.base}/c/large/{address}", timeout=TIMEOUT_S)
            timing = TIMING.search(answer.headers.get("Server-Timing", ""))
            fault = "" if answer.status_code == 200 else _said(answer)
        except requests.RequestException as failed:
            timing, fault = None, f"{type(failed).__name__}: {failed}"
        with self._lock:
            seen = self.seen[page]
            seen.seconds.append(time.monotonic() - began)
            if fault:
                seen.errors.append(f"{person.user} at {address}: {fault}")
            if timing:
                seen.queries = max(seen.queries, int(timing[2]))
                seen.cpu_ms.append(float(timing[3]))


def _said(answer: requests.Response) -> str:
    """Its status, and the first words on it."""
    words = " ".join(re.sub(r"<[^>]*>", " ", answer.text).split())
    return f"{answer.status_code} {words[:MOST_WORDS]}"


def _dice(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - the same visits each time


def run_pages(_traces: Path, progress: Progress) -> Outcome:
    """50 sessions of a large organisation on PostgreSQL. Raises NoPortalError, PartsError."""
    with large_portal(progress, CLIENTS) as portal:
        readers = Readers(portal.base, portal.people)
        progress(f"{CLIENTS} people read for {WARM_S:.0f} s, unmeasured")
        readers.read(WARM_S)
        readers.seen.clear()
        progress(f"{CLIENTS} people read for {SPAN_S:.0f} s")
        readers.read(SPAN_S)
        memory = portal.memory_mib()
    return Outcome(_figures(readers.seen, memory), notes=_notes(readers.seen))


def _figures(seen: Mapping[str, PageTimes], memory_mib: float) -> dict[str, float]:
    every = np.array([s for one in seen.values() for s in one.seconds]) * 1000
    p50, p95, p99 = np.percentile(every, (50, 95, 99))
    return {
        "clients": CLIENTS,
        "pages": len(every),
        "per_s": round(len(every) / SPAN_S, 1),
        "p50_ms": round(float(p50), 1),
        "p95_ms": round(float(p95), 1),
        "p99_ms": round(float(p99), 1),
        "p95_to_limit": round(float(p95) / LIMIT_MS, 2),
        "max_queries": max(one.queries for one in seen.values()),
        "errors": sum(len(one.errors) for one in seen.values()),
        "web_mib": round(memory_mib),
    }


def _notes(seen: Mapping[str, PageTimes]) -> list[str]:
    """One line a page, the slowest first."""
    rows = sorted(seen.items(), key=lambda pair: -float(np.percentile(pair[1].seconds, 95)))
    return [
        f"limit of p95: {LIMIT_MS:.0f} ms; {READS_S:.0f} s from one page to the next on average",
        *(
            f"{page or 'overview'}: p95 {1000 * np.percentile(one.seconds, 95):.0f} ms of "
            f"{len(one.seconds)}, "
            f"{one.queries} queries at most, {np.mean(one.cpu_ms or [0]):.0f} CPU-ms"
            for page, one in rows
        ),
        *(f"no page: {error}" for one in seen.values() for error in one.errors),
    ]
