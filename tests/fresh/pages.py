"""A person's first visit: sign in, then follow links, thirty pages of different kinds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from http.client import HTTPException
from http.cookiejar import CookieJar
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import HTTPCookieProcessor, ProxyHandler, Request, build_opener

FORM = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
LINK = re.compile(r'href="(/[^"#]*)')
APART = re.compile(r"[0-9a-f-]{32,}|\d+")
"""What differs between two pages of one kind."""
NOT_PAGES = ("/static/", "/api/")
PATIENCE_S = 60


class Visitor:
    """A browser without scripts. ``base`` is http://HOST:PORT."""

    def __init__(self, base: str) -> None:
        self.base = self.at = base
        self._open = build_opener(ProxyHandler({}), HTTPCookieProcessor(CookieJar())).open

    def get(self, path: str, form: dict[str, str] | None = None) -> tuple[int, str]:
        """Status and body of a page; posts where there is a ``form``. 0 where nothing answers."""
        sent = urlencode(form).encode() if form else None
        asked = Request(urljoin(self.base, path), sent, {"Referer": self.base})  # noqa: S310 - http
        try:
            with self._open(asked, timeout=PATIENCE_S) as answer:
                self.at = answer.url
                return answer.status, answer.read().decode(errors="replace")
        except HTTPError as error:
            return error.code, error.read().decode(errors="replace")
        except (URLError, HTTPException, OSError):
            return 0, ""

    def sign_in(self, user: str, password: str) -> tuple[int, str]:
        """Status and body of the first page; 0 while there is none."""
        status, page = self.get("/")
        found = FORM.search(page)
        if status != 200 or found is None:
            return status, ""
        form = {
            "username": user,
            "password": password,
            "csrfmiddlewaretoken": found[1],
            "next": "/",
        }
        return self.get(urlsplit(self.at).path, form)

    def walk(self, page: str, most: int) -> Iterator[tuple[str, int]]:
        """Address and status of ``most`` pages that are reached from ``page``, kinds not seen yet first."""
        seen, kinds = {"/"}, set[str]()
        waiting = [each for each in links(page) if each not in seen]
        while waiting and most:
            path = next((each for each in waiting if kind(each) not in kinds), waiting[0])
            kinds.add(kind(path))
            seen.add(path)
            status, page = self.get(path)
            yield path, status
            most -= 1
            waiting = [each for each in dict.fromkeys([*waiting, *links(page)]) if each not in seen]


def links(page: str) -> list[str]:
    """Addresses of pages that ``page`` leads to, each once."""
    found = (path.replace("&amp;", "&") for path in LINK.findall(page))
    return list(dict.fromkeys(path for path in found if not path.startswith(NOT_PAGES)))


def kind(path: str) -> str:
    """What pages that differ in a number or a choice have in common."""
    return APART.sub("0", urlsplit(path).path)
