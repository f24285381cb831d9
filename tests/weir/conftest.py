"""The command line over the portal's own API, in this process: no port, no thread, one transaction."""

import re
from urllib.parse import urlsplit

import pytest
import requests
from click.testing import CliRunner
from django.test import Client

from portal.accounts.models import ApiToken, User
from tests.factories import example_cluster
from tests.portal.kubernetes import serving
from weir.cli import main

SENT = ("Accept", "Authorization", "If-Match", "Idempotency-Key")
SERVER = "https://weir.example.org"


class Portal(requests.adapters.BaseAdapter):
    """What Django answers, as an answer of the network."""

    def send(self, request, **how):
        parts = urlsplit(request.url)
        told = Client().generic(
            request.method,
            f"{parts.path}?{parts.query}",
            request.body or b"",
            content_type=request.headers.get("Content-Type", ""),
            headers={name: request.headers[name] for name in SENT if name in request.headers},
            secure=True,
            SERVER_NAME="testserver",
        )
        answer = requests.Response()
        answer.status_code, answer.url, answer.request = told.status_code, request.url, request
        answer.headers.update(told.headers)
        answer._content = told.content
        return answer

    def close(self):
        pass


class Session(requests.Session):
    def __init__(self):
        super().__init__()
        self.mount(SERVER, Portal())


@pytest.fixture
def cluster(db):
    return example_cluster()


@pytest.fixture
def kube(cluster):
    """The API server behind the cluster, for what is planned live."""
    with serving(cluster) as client:
        yield client


@pytest.fixture
def weir(monkeypatch, tmp_path):
    """``weir("ls", "--mine", user="lead")``: the result of a command run as that person."""
    monkeypatch.setattr("weir.api.requests.Session", Session)
    monkeypatch.setenv("WEIR_CONFIG", str(tmp_path / "account.yaml"))

    def run(*words, user="", input=None):
        if user:
            kept = ApiToken.issue(User.objects.get(username=user), "weir")[1]
            monkeypatch.setenv("WEIR_SERVER", SERVER)
            monkeypatch.setenv("WEIR_TOKEN", kept)
        return CliRunner().invoke(main, words, input=input)

    return run


@pytest.fixture
def token(cluster):
    """Of a researcher."""
    return ApiToken.issue(User.objects.get(username="researcher"), "weir")[1]


def lines(result):
    assert result.exit_code == 0, result.output
    return [re.split(r" {2,}", line.strip()) for line in result.stdout.splitlines()]
