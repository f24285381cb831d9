"""What a crowd asks of the engine at once: *Check* of what is typed, and what would start work sooner."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from html.parser import HTMLParser

import requests

from workshop.benches.worker.crowd import TIMEOUT_S, Crowd, Visits

TIMES = 3
"""So often each person asks, one question after the other."""
LOOKS_EVERY_S = 0.3
"""As the page looks whether the engine has planned it."""
VERDICT = re.compile("As configured|would be refused")
OPEN = 'hx-trigger="load'
WORK = re.compile(r'href="(/c/[^"/]+/w/[^"/]+/)"')


class _Form(HTMLParser):
    """What a browser would send of a page: the value of each field, of a list the option chosen or first."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self._list = self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        name, value = given.get("name") or "", given.get("value") or ""
        if tag == "select":
            self._list = name
        elif tag == "textarea":
            self._text = name
        elif (
            tag == "option"
            and self._list
            and ("selected" in given or self._list not in self.values)
        ):
            self.values[self._list] = value
        elif tag == "input" and name and given.get("type") not in ("checkbox", "radio", "submit"):
            self.values[name] = value

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self._list = ""
        elif tag == "textarea":
            self._text = ""

    def handle_data(self, data: str) -> None:
        if self._text:
            self.values[self._text] = self.values.get(self._text, "") + data


def check(people: Crowd, cluster: str) -> Visits:
    """Everybody's *Check* of the form as it begins, of other GPUs each time."""
    page = f"{people.base}/c/{cluster}/submit/"

    def ask(who: requests.Session, visits: Visits) -> None:
        form = _Form()
        form.feed(who.get(page, timeout=TIMEOUT_S).text)
        for gpus in range(1, TIMES + 1):
            typed = {**form.values, "name": f"bench-{gpus}", "gpus_per_pod": str(gpus)}
            _timed(visits, partial(_checked, who, page, typed))

    return _all(people.sessions, ask)


def _checked(who: requests.Session, page: str, typed: dict[str, str]) -> str:
    """Empty, or what was no verdict within the time that a person's browser waits."""
    until = time.monotonic() + TIMEOUT_S
    while time.monotonic() < until:
        answer = who.post(
            f"{page}preview/", data=typed, headers={"Referer": page}, timeout=TIMEOUT_S
        )
        if answer.status_code != 200:
            return str(answer.status_code)
        if VERDICT.search(answer.text):
            return ""
        time.sleep(LOOKS_EVERY_S)
    return "no verdict"


def sooner(people: Crowd, cluster: str) -> Visits:
    """Everybody opens what would start the waiting workloads that they see, each begun at another."""

    def ask(who: requests.Session, visits: Visits) -> None:
        listed = who.get(f"{people.base}/c/{cluster}/workloads/?state=waiting", timeout=TIMEOUT_S)
        works = list(dict.fromkeys(WORK.findall(listed.text)))
        first = people.sessions.index(who)
        for i in range(min(TIMES, len(works))):
            address = f"{people.base}{works[(first + i) % len(works)]}sooner/"
            _timed(visits, partial(_planned, who, address))

    return _all(people.sessions, ask)


def _planned(who: requests.Session, address: str) -> str:
    """Empty, or what was no answer within the time that a person's browser waits."""
    until = time.monotonic() + TIMEOUT_S
    while time.monotonic() < until:
        answer = who.get(address, timeout=TIMEOUT_S)
        if answer.status_code not in (200, 204):
            return str(answer.status_code)
        if OPEN not in answer.text:
            return ""
        time.sleep(LOOKS_EVERY_S)
    return "not planned"


def _timed(visits: Visits, ask: Callable[[], str]) -> None:
    began = time.monotonic()
    try:
        fault = ask()
    except requests.RequestException as failed:
        fault = type(failed).__name__
    visits.seconds.append(time.monotonic() - began)
    if fault:
        visits.errors.append(fault)


def _all(
    sessions: Sequence[requests.Session], ask: Callable[[requests.Session, Visits], None]
) -> Visits:
    visits = Visits()
    with ThreadPoolExecutor(len(sessions)) as threads:
        for visit in [threads.submit(ask, one, visits) for one in sessions]:
            visit.result()
    return visits
