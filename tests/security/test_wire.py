"""Attacks on the server itself, over a socket: what it adds to requests and answers no test client shows."""

import re
import threading
import time
from http.client import HTTPConnection, HTTPResponse
from urllib.parse import urlencode

import pytest
import uvicorn

from portal.accounts.models import SignInTry
from workshop.demo import runner


@pytest.fixture
def port(transactional_db):
    """The demo's server over the test database."""
    listener = runner.listen(0)
    server = uvicorn.Server(runner.server_config())
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield listener.getsockname()[1]
    server.should_exit = True
    thread.join(timeout=10)
    listener.close()


def ask(port, method="GET", body=None, **headers) -> tuple[HTTPResponse, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    connection.request(method, "/sign-in/", body, named)
    answer = connection.getresponse()
    return answer, answer.read().decode()


def guess(port, **headers) -> int:
    page, html = ask(port)
    token = re.search('name="csrfmiddlewaretoken" value="([^"]+)"', html)[1]
    form = {"username": "lead", "password": "wrong", "csrfmiddlewaretoken": token}
    cookie = page.getheader("Set-Cookie").partition(";")[0]
    kind = "application/x-www-form-urlencoded"
    answer, _ = ask(port, "POST", urlencode(form), Cookie=cookie, Content_Type=kind, **headers)
    return answer.status


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP"])
def test_rotating_header_does_not_evade_the_lock_of_a_real_server(port, settings, header):
    name = header.replace("-", "_")
    codes = [guess(port, **{name: f"198.51.100.{i}"}) for i in range(10)]

    assert codes[settings.WEIR_SIGN_IN_TRIES - 1 :] == [429] * 3
    assert set(SignInTry.objects.values_list("address", flat=True)) == {"127.0.0.1"}


def test_server_does_not_name_itself(port):
    answer, _ = ask(port)
    assert answer.getheader("Server") is None
    assert answer.getheader("Cache-Control") == "no-store"
