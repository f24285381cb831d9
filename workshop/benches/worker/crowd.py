"""A crowd at the portal: signed-in people who ask for one page again as soon as they have it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser

import numpy as np
import requests

TIMEOUT_S = 60.0


@dataclass(slots=True)
class Visits:
    """What a crowd met: seconds of each answer, and what was no page."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def figures(self, name: str, span_s: float) -> dict[str, float]:
        """Percentiles of the answers in ms, answers a second, errors."""
        p50, p95, p99 = np.percentile(self.seconds or [0.0], (50, 95, 99)) * 1000
        return {
            f"{name}_p50_ms": round(float(p50), 1),
            f"{name}_p95_ms": round(float(p95), 1),
            f"{name}_p99_ms": round(float(p99), 1),
            f"{name}_per_s": round(len(self.seconds) / span_s, 1),
            f"{name}_errors": float(len(self.errors)),
        }


class _Fields(HTMLParser):
    """Hidden fields of the forms on a page."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "input" and given.get("type") == "hidden":
            self.hidden[given.get("name") or ""] = given.get("value") or ""


def sign_in(base: str, name: str, password: str) -> requests.Session:
    """A session of its own for ``name``, by the sign-in page. Raises requests.RequestException."""
    session = requests.Session()
    page = session.get(f"{base}/sign-in/", timeout=TIMEOUT_S)
    fields = _Fields()
    fields.feed(page.text)
    form = {**fields.hidden, "username": name, "password": password}
    answer = session.post(
        page.url, data=form, headers={"Referer": page.url}, timeout=TIMEOUT_S, allow_redirects=False
    )
    if answer.status_code != 302:
        raise requests.RequestException(f"{name} could not sign in: {answer.status_code}")
    return session


def add_people(
    base: str, admin: requests.Session, places: Sequence[tuple[str, str]], size: int
) -> list[tuple[str, str]]:
    """Names and passwords of ``size`` people whom ``admin`` adds now, with the (team, persona) of ``places``
    in turn. Raises requests.RequestException."""
    page = f"{base}/people/"
    admin.get(page, timeout=TIMEOUT_S).raise_for_status()
    proof = {"X-CSRFToken": str(admin.cookies.get("csrftoken")), "Referer": page}
    added = []
    for i in range(size):
        name, (team, persona) = f"visitor-{i}", places[i % len(places)]
        made = admin.post(
            f"{base}/api/v1/people", json={"username": name}, headers=proof, timeout=TIMEOUT_S
        )
        made.raise_for_status()
        place = f"{base}/api/v1/teams/{team}/members/{name}"
        admin.put(
            place, json={"persona": persona}, headers=proof, timeout=TIMEOUT_S
        ).raise_for_status()
        added.append((name, made.json()["password"]))
    return added


@contextmanager
def crowd(base: str, people: Iterable[tuple[str, str]]) -> Iterator[Crowd]:
    """A session of each of ``people``, by name and password."""
    sessions = [sign_in(base, *one) for one in people]
    try:
        yield Crowd(base, sessions)
    finally:
        for session in sessions:
            session.close()


@dataclass(frozen=True)
class Crowd:
    base: str
    sessions: list[requests.Session]

    def visit(self, address: str, span_s: float) -> Visits:
        """Everybody asks for ``address`` without a pause between answers, for ``span_s``."""
        visits, until = Visits(), time.monotonic() + span_s
        with ThreadPoolExecutor(len(self.sessions)) as threads:
            for session in self.sessions:
                threads.submit(self._stay, session, self.base + address, until, visits)
        return visits

    def _stay(self, who: requests.Session, url: str, until: float, visits: Visits) -> None:
        while (began := time.monotonic()) < until:
            try:
                answer = who.get(url, timeout=TIMEOUT_S, allow_redirects=False)
                if answer.status_code != 200:
                    visits.errors.append(str(answer.status_code))
            except requests.RequestException as failed:
                visits.errors.append(type(failed).__name__)
            visits.seconds.append(time.monotonic() - began)
