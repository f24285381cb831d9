"""A real server and a real browser.

``live`` serves the test database by uvicorn, as production does, server-sent events and all.
``page`` is a browser tab of that server; ``sign_in(page, user)`` and ``axe(page)`` are plain functions.
"""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from allauth.account.internal.flows.login import record_authentication
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from playwright.sync_api import Page, expect, sync_playwright

from portal.accounts.sessions import SessionStore
from portal.config.handler import OneThreadHandler
from scheduling.models import Cluster, Workload
from scheduling.services.worker import cluster_turns as workers
from tests import browser as chrome
from tests.e2e.firefox import opened
from tests.factories import example_cluster
from tests.portal.kubernetes import serving

# Playwright's sync API runs an event loop in this thread, which Django takes for an async context.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
AXE_RULES = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
}
FAULTS_ALONE = {"resultTypes": ["violations"]}
"""Else axe describes as well each element that is right, which is most of its work."""


FIREFOX = "firefox-esr"
"""As Debian calls it."""
ENDS_S = 5.0
"""What a closed tab had asked for, streams too, is over by then."""
COMES_MS = 60_000
"""What comes is seen at once; that it does not is believed this late."""
expect.set_options(timeout=COMES_MS)


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    left_out = {
        "browser": not chrome.is_required() and chrome.find() is None and chrome.LEFT_OUT,
        "firefox": shutil.which(FIREFOX) is None and f"there is no {FIREFOX}",
    }
    for item in items:
        if here not in item.path.parents:
            continue
        item.add_marker(pytest.mark.e2e)
        for driven, reason in left_out.items():
            if reason and driven in item.fixturenames:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="package")
def server(django_db_setup) -> Iterator[uvicorn.Server]:
    """One for all tests. Files it gives for a minute, as in production: a tab asks once for what every page
    is drawn with."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = uvicorn.Config(OneThreadHandler(), port=port, log_level="error", lifespan="off")
    config.timeout_graceful_shutdown = 1
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield server
    server.should_exit = True
    thread.join(timeout=5)


@pytest.fixture
def live(transactional_db, server):
    """Address of a server over the test database, which answers nobody any more when that is emptied."""
    yield f"http://127.0.0.1:{server.config.port}"
    last = time.monotonic() + ENDS_S
    while server.server_state.tasks and time.monotonic() < last:
        time.sleep(0.01)


@pytest.fixture
def served(live):
    """A cluster whose API answers."""
    cluster = example_cluster()
    Workload.objects.all().delete()
    # The embedded server stamps objects with the wall's time; the row's clock must agree with it.
    Cluster.objects.update(clock_real=None, clock_start=None)
    cluster.refresh_from_db()
    with serving(cluster):
        yield cluster
        workers.close_all()


@pytest.fixture(scope="package")
def browser():
    """Ended with these tests: while Playwright runs, an event loop does in this thread, and no other can."""
    path = chrome.find()
    if path is None:
        pytest.fail(f"{chrome.LEFT_OUT}. {chrome.REMEDY}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def page(live, browser):
    """A fresh tab. A script error or a blocked asset (CSP) fails the test at its end."""
    context = browser.new_context(base_url=live, viewport={"width": 1440, "height": 900})
    context.set_default_timeout(COMES_MS)
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "console",
        lambda message: (
            faults.append(message.text)
            if message.type == "error" and "Content Security Policy" in message.text
            else None
        ),
    )
    yield page
    context.close()
    assert faults == []


@pytest.fixture
def firefox(live, tmp_path):
    """A fresh tab of Firefox. A script error or a blocked asset (CSP) fails the test at its end."""
    with opened(FIREFOX, tmp_path) as tab:
        tab.resize(1280)
        yield tab
        assert tab.faults == []


def session_of(user) -> str:
    """The key of a session of ``user`` who has just signed in, without the sign-in page."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    record_authentication(SimpleNamespace(session=session), user, "password")
    session.save()
    return str(session.session_key)


def sign_in(page: Page, user) -> None:
    """Give the tab a session of ``user``."""
    page.context.add_cookies(
        [
            {
                "name": settings.SESSION_COOKIE_NAME,
                "value": session_of(user),
                "domain": "127.0.0.1",
                "path": "/",
            }
        ]
    )


OF_COLOUR = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
"""What may differ between light and dark."""


def axe(page: Page, options: dict[str, Any] = AXE_RULES) -> list[str]:
    """Faults against WCAG 2.2 AA, one line each; empty when there are none."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    ask = "(options) => axe.run(document, options).then((found) => found.violations)"
    found = page.evaluate(ask, {**options, **FAULTS_ALONE})
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found
        for node in rule["nodes"]
    ]
