"""Attacks through what surrounds a page: caches, frames, features of the browser, plain HTTP, banners."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import ApiToken
from portal.config.proxies import networks
from tests.factories import make_user
from workshop.demo import runner

pytestmark = pytest.mark.django_db
ROOT = Path(django_settings.BASE_DIR)


def directives(response, header):
    return {part.strip() for part in response.headers.get(header, "").split(",")}


@pytest.mark.parametrize(
    "path", ["/", "/sign-in/", "/account/", "/nowhere", "/api/v1/me", "/static/no.css"]
)
def test_answers_to_nobody_stay_out_of_caches(client, path):
    assert directives(client.get(path), "Cache-Control") == {"no-store"}


def test_answers_to_a_token_stay_out_of_caches():
    _, plain = ApiToken.issue(make_user(), "cli")
    response = APIClient().get("/api/v1/me", headers={"Authorization": f"Bearer {plain}"})
    assert response.status_code == 200
    assert directives(response, "Cache-Control") == {"no-store"}


def test_files_are_cached_and_guarded(client):
    response = client.get("/static/css/tokens.css")
    assert response.status_code == 200
    assert "no-store" not in response.headers["Cache-Control"]
    assert response.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert response.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("path", ["/sign-in/", "/api/v1/me", "/static/css/tokens.css", "/nowhere"])
def test_features_of_the_browser_are_off(client, path):
    response = client.get(path)
    policy = directives(response, "Permissions-Policy")
    assert {"camera=()", "microphone=()", "geolocation=()", "payment=()", "usb=()"} <= policy
    assert all(re.fullmatch(r"[a-z-]+=\(\)", feature) for feature in policy)
    assert response.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert response.headers["Referrer-Policy"] == "same-origin"


def test_page_is_framed_by_nobody(client):
    response = client.get("/sign-in/")
    assert response.headers["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]


def under_tls(settings):
    """What WEIR_TLS sets; the settings themselves are run in test_deployment."""
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_HSTS_SECONDS = 31536000
    settings.SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")


def test_stranger_does_not_pass_for_tls_by_a_header(settings):
    under_tls(settings)
    response = Client().get("/sign-in/", headers={"X-Forwarded-Proto": "https"})
    assert response.status_code == 301
    assert response.headers["Location"].startswith("https://")


def test_trusted_proxy_says_what_came_over_tls(settings):
    under_tls(settings)
    settings.WEIR_TRUSTED_PROXIES = networks(["127.0.0.1"])
    response = Client().get("/sign-in/", headers={"X-Forwarded-Proto": "https"})
    assert response.status_code == 200
    assert response.headers["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains"


@pytest.mark.parametrize("header", ["X-Forwarded-Host", "X-Host", "Forwarded"])
def test_host_is_not_taken_from_a_header(client, header):
    response = client.get("/account/", headers={header: "evil.example"})
    assert "evil.example" not in response.headers["Location"]


def test_unknown_host_is_refused(client):
    assert client.get("/sign-in/", headers={"Host": "evil.example"}).status_code == 400


# What a server itself adds is seen on the wire alone.


def command_of_the_image() -> list[str]:
    text = (ROOT / "docker/Dockerfile").read_text().replace("\\\n", " ")
    found = re.search(r"^CMD (\[.*\])$", text, re.MULTILINE)
    assert found
    return json.loads(found[1])


@pytest.fixture
def served(tmp_path):
    """An answer of the sign-in page by the image's own command, on a port of ours."""
    port = free_port()
    command = [sys.executable, "-m", *command_of_the_image()]
    command[command.index("--host") + 1] = "127.0.0.1"
    command[command.index("--port") + 1] = str(port)
    environment = {**os.environ, "DATABASE_URL": f"sqlite:///{tmp_path / 'weir.sqlite3'}"}
    server = subprocess.Popen(command, cwd=ROOT, env=environment)
    try:
        yield answer_of(port)
    finally:
        server.terminate()
        server.wait(timeout=20)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def answer_of(port: int, patience_s: float = 60) -> HTTPResponse:
    until = time.monotonic() + patience_s
    while True:
        connection = HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("GET", "/static/css/tokens.css", headers={"Host": "localhost"})
            return connection.getresponse()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def test_image_says_nothing_of_its_server(served):
    assert served.status == 200
    assert served.getheader("Server") is None
    assert served.getheader("X-Powered-By") is None
    assert served.getheader("Permissions-Policy")


def test_demo_says_nothing_of_its_server_and_believes_no_header():
    config = runner.server_config()
    config.load()
    assert not any(name.lower() == b"server" for name, _ in config.encoded_headers)
    assert not config.proxy_headers
