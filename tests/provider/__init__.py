"""An OpenID provider on loopback, in a process of its own: django-oauth-toolkit over a database of its own.

Weir speaks to it as to any other: discovery, PKCE, tokens signed by keys that it fetches, userinfo.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import requests

CLIENT_ID, CLIENT_SECRET, PASSWORD = "weir", "provider-and-weir-know-this", "right horse"
START_S = 60.0


@dataclass(frozen=True)
class Provider:
    issuer: str
    folder: Path

    def keep(self, people: Mapping[str, Mapping[str, Any]]) -> None:
        """These are its people: subject -> claims. The password of each is PASSWORD."""
        (self.folder / "people.json").write_text(json.dumps(people))

    def settings(self) -> dict[str, Any]:
        """What Weir's settings make of its environment."""
        import environ

        from portal.accounts.identity import providers

        env = environ.Env()
        env.ENVIRON = {
            "WEIR_OIDC_ISSUER": self.issuer,
            "WEIR_OIDC_CLIENT_ID": CLIENT_ID,
            "WEIR_OIDC_CLIENT_SECRET": CLIENT_SECRET,
            "WEIR_OIDC_NAME": "Example SSO",
        }
        return providers(env)

    def sign_in(self, address: str, person: str, back: str = "/callback/") -> str:
        """What a browser does there: from ``address`` to the address at which it leads back to Weir."""
        with requests.Session() as browser:
            answer = browser.get(address, allow_redirects=False, timeout=10)
            has_tried = False
            while answer.status_code != 302 or back not in answer.headers["Location"]:
                assert answer.is_redirect or not has_tried, f"It does not know {person}."
                if answer.is_redirect:
                    here = urljoin(answer.url, answer.headers["Location"])
                    answer = browser.get(here, allow_redirects=False, timeout=10)
                else:
                    answer, has_tried = _log_in(browser, answer, person), True
            return answer.headers["Location"]


def _log_in(browser: requests.Session, page: requests.Response, person: str) -> requests.Response:
    assert page.status_code == 200, page.text
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
    assert token is not None, page.text
    fields = {"username": person, "password": PASSWORD, "csrfmiddlewaretoken": token[1]}
    return browser.post(page.url, fields, allow_redirects=False, timeout=10)


@contextmanager
def provider(folder: Path, redirects: Sequence[str]) -> Iterator[Provider]:
    """Serves until the end of the block; ``redirects`` are the callbacks that it leads to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder.mkdir(parents=True, exist_ok=True)
    made = Provider(f"http://127.0.0.1:{port}/o", folder)
    made.keep({})
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("DJANGO_")},
        "PROVIDER_FOLDER": str(folder),
        "PROVIDER_PORT": str(port),
        "PROVIDER_REDIRECTS": " ".join(redirects),
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
    }
    with (folder / "log").open("wb") as log:
        command = [sys.executable, "-m", "tests.provider.serve"]
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        _wait(made, process)
        yield made
    finally:
        process.kill()
        process.wait()


def _wait(made: Provider, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        assert process.poll() is None, (made.folder / "log").read_text()
        try:
            url = f"{made.issuer}/.well-known/openid-configuration"
            requests.get(url, timeout=2).raise_for_status()
        except requests.RequestException:
            time.sleep(0.1)
        else:
            return
    raise AssertionError((made.folder / "log").read_text())
